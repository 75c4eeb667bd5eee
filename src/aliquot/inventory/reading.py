"""Questions to the file system that are answered and never raise.

pathlib's own ``exists`` and ``is_dir`` raise where a folder above may not be entered, and
``resolve`` where links run in a circle; drivers answer reads of sysfs with EINVAL, EIO or
EPERM. All of these mean that it cannot be told.
"""

import os
import stat
from pathlib import Path


def text_of(path: Path) -> str | None:
    """The text of ``path`` without white space around it; None where it is empty or unreadable."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def is_present(path: Path) -> bool:
    return _mode(path) is not None


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path) or 0)


def entries(folder: Path) -> list[Path]:
    """What lies in ``folder``, by name; nothing where it cannot be listed."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def real(path: Path) -> Path:
    """``path`` with all links followed as far as they lead."""
    return Path(os.path.realpath(path))


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError:
        return None

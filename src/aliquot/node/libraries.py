"""Copies of the native libraries that outlive an upgrade and can be loaded from anywhere.

They go to STATE/lib/HASH, HASH of their content: /run, where shares lie, is often mounted
noexec; the package may lie in a home that a tenant under another uid cannot enter; and an
upgrade must never change a file that a tenant has mapped.
"""

import hashlib
import os
import shutil
from pathlib import Path

from aliquot.node.paths import make_folder, unwritable

_FOLDER_MODE = 0o755


def ensure_copied(source: Path, into: Path) -> Path:
    """The folder under ``into`` with copies of all of ``source``'s files; made if missing.

    Atomic: another process sees the folder whole or not at all. Two that copy at once both
    succeed, and the second's copy is dropped.
    """
    files = sorted(path for path in source.iterdir() if path.is_file())
    folder = into / _hash(files) / source.name
    if folder.is_dir():
        return folder
    make_folder(into.parent, 0o711)
    make_folder(into, _FOLDER_MODE)
    make_folder(folder.parent, _FOLDER_MODE)
    temporary = folder.parent / f".{source.name}.{os.getpid()}"
    try:
        _copy(files, temporary)
        os.rename(temporary, folder)  # noqa: PTH104 - says what it does; Path.rename hides the failure modes
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if not folder.is_dir():
            raise unwritable(folder, error) from error
    return folder


def _hash(files: list[Path]) -> str:
    content = hashlib.sha256()
    for path in files:
        content.update(path.name.encode() + b"\0")
        content.update(path.read_bytes())
    return content.hexdigest()[:16]


def _copy(files: list[Path], folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(_FOLDER_MODE)
    for path in files:
        copied = folder / path.name
        shutil.copyfile(path, copied)
        copied.chmod(0o755)

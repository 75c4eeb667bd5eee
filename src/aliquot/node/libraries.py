"""Copies of the native libraries that outlive an upgrade and can be loaded from anywhere.

They go to STATE/lib/HASH, HASH of their content: /run, where shares lie, is often mounted
noexec; the package may lie in a home that a tenant under another uid cannot enter; and an
upgrade must never change a file that a tenant has mapped.
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from aliquot.node.paths import make_folder, unwritable
from aliquot.node.processes import all_pids, mappings

_FOLDER_MODE = 0o755


def ensure_copied(source: Path, into: Path) -> Path:
    """The folder under ``into`` with copies of all of ``source``'s files; made if missing.

    Atomic: another process sees the folder whole or not at all. Two that copy at once both
    succeed, and the second's copy is dropped.
    """
    files = sorted(path for path in source.iterdir() if path.is_file())
    folder = into / _hash(files) / source.name
    if folder.is_dir():
        with contextlib.suppress(OSError):
            os.utime(folder.parent)  # in use from now on, though nothing leads to it yet: see prune_governors
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


# ---- old ones ----

_YOUNG_S = 3600
"""A version that was asked for within this time may be about to be linked to."""


def prune_governors(libraries: Path, shares: Path) -> tuple[Path, ...]:
    """Remove the versions of the governor that no share leads to and no process has loaded or is told of.

    Each upgrade leaves one, and what runs must keep its own: a program may load it again, and a container's
    mounts come from it. Costs a look at one folder where there are no old ones.
    """
    versions = [folder.parent for folder in libraries.glob("*/governor")]
    if len(versions) < 2:
        return ()
    old = {folder.name: folder for folder in versions if _is_old(folder)}
    for name in _linked(shares, old):
        old.pop(name, None)
    if old:
        for name in _loaded(libraries, old):
            old.pop(name, None)
    for folder in old.values():
        # Out of sight first: nobody sees half of a version.
        hidden = folder.with_name(f".{folder.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            folder.rename(hidden)
            shutil.rmtree(hidden, ignore_errors=True)
    return tuple(old.values())


def _is_old(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime > _YOUNG_S
    except OSError:
        return False


def _linked(shares: Path, names: Iterable[str]) -> set[str]:
    """Of ``names``, those that a share's folder leads to. A share that cannot be read keeps all."""
    found: set[str] = set()
    for link in shares.glob("*/lib/libcuda.so.1"):
        try:
            found.add(link.readlink().parent.parent.name)
        except OSError:
            return set(names)
    return found


def _loaded(libraries: Path, names: Iterable[str]) -> set[str]:
    """Of ``names``, those of which a process has a file mapped, or whose folder stands in its environment. By
    inodes: what is mounted elsewhere has another path."""
    inodes = {str(file.stat().st_ino): name for name in names for file in (libraries / name).glob("*/*")}
    found: set[str] = set()
    for pid in all_pids():
        with contextlib.suppress(OSError):
            found |= {inodes[one.inode] for one in mappings(pid) if one.inode in inodes}
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            found |= {name for name in names if f"/{name}/".encode() in environment}
    return found

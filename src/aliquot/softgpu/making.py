"""How several devices come to exist at once, although each is a folder with a rename of its own.

Prepared devices have dotted names, which nobody takes for devices. Before the first of several is
renamed, ``.making`` names them all, on disk; after the last it is removed, and that is the moment at which
the set exists. While the file is there its devices are not listed. One lock, that of the root folder, is
held by who makes them and ends with the process: a file for which nobody holds the lock is that of a dead
one, and its devices go.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from aliquot.softgpu.devices import MAKING, in_the_making
from aliquot.softgpu.occupied import nobody_on


def new_folder(root: Path, name: str) -> Path:
    """Where the device ``name`` is prepared."""
    return root / f".new-{name}"


def publish(root: Path, names: Sequence[str]) -> None:
    """Give the prepared devices their ``names``: all or none, also where the machine stops in between."""
    if len(names) > 1:
        with (root / MAKING).open("x", encoding="utf-8") as file:
            file.write("".join(f"{name}\n" for name in names))
            file.flush()
            os.fsync(file.fileno())
        sync(root)
    for name in names:
        os.rename(new_folder(root, name), root / name)  # noqa: PTH104 - the step that makes a device
    sync(root)
    forget_making(root)


def forget_making(root: Path) -> None:
    making = root / MAKING
    if making.exists():
        making.unlink()
        sync(root)


def clear_leftovers(root: Path) -> None:
    """Remove what a killed create or remove left, unless one is at it, or ``root`` is not ours to write."""
    try:
        if not any(entry.name.startswith(".") for entry in root.iterdir()):
            return
        with only_one(root, wait=False):
            clear_dead(root)
    except OSError:
        return


def clear_dead(root: Path) -> None:
    """With the lock held: whatever is in the making is of a process that is no more."""
    kept = False
    for name in in_the_making(root):
        kept |= not _taken_back(root / name)
    for entry in root.iterdir():
        if entry.name.startswith((".new-", ".gone-")):
            shutil.rmtree(entry, ignore_errors=True)
    if not kept:
        forget_making(root)


def _taken_back(folder: Path) -> bool:
    """False where a program is on the device: between its rename and now it could be found."""
    if not folder.is_dir():
        return True
    with nobody_on(folder) as free:
        if free:
            shutil.rmtree(folder)
    return free


@contextmanager
def only_one(root: Path, *, wait: bool = True) -> Iterator[None]:
    """One create at a time, so that two never choose the same PCI id. Ends with the process.

    Raises BlockingIOError where it should not ``wait`` and another has it.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

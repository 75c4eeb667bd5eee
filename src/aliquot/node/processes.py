"""What /proc shows of processes, as more than one room here asks it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Mapping(NamedTuple):
    """A line of /proc/PID/maps.

    The file is told by its inode alone: file systems that lie over others show another device there than a
    look at the file does, and what is mounted elsewhere has another path.
    """

    offset: int
    inode: str
    path: str
    """Empty where it is of no file."""


def all_pids() -> Iterator[int]:
    with os.scandir("/proc") as entries:
        yield from [int(entry.name) for entry in entries if entry.name.isdigit()]


def inner_pid(pid: int) -> int:
    """Its name in its own pid namespace. Raises OSError, ValueError."""
    for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def mappings(pid: int) -> Iterator[Mapping]:
    """Raises OSError where the process may not be looked at."""
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        _, _, offset, _, inode, *path = line.split(maxsplit=5)
        yield Mapping(int(offset, 16), inode, path[0] if path else "")

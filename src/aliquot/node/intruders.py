"""Whose hands are on a page of turns: looked for only where nonsense stands on one.

A governor maps the page once and closes its file. A process that has the file open for writing, maps it
more often than it maps governors, or maps it without one, goes at the page by itself.
"""

import contextlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from aliquot.enforcement import read_ledger
from aliquot.model import Lease, LeaseId
from aliquot.node.attesting import pids_of
from aliquot.node.keeper_core import Intruder
from aliquot.node.paths import Paths
from aliquot.node.processes import all_pids, mappings
from aliquot.node.share_folder import ledger_file


def intruders_of(paths: Paths, leases: Iterable[Lease], page: Path) -> tuple[Intruder, ...]:
    """Of ``leases``, the processes that have ``page`` in their hands beside their governor."""
    governors = {str(file.stat().st_ino) for file in paths.libraries.glob("*/governor/libcuda.so.1")}
    suspicious: dict[int, str] = {}
    for pid in all_pids():
        with contextlib.suppress(OSError):
            how = _how(pid, str(page.stat().st_ino), governors) if pid != os.getpid() else None
            if how is not None:
                suspicious[pid] = how
    of: dict[int, LeaseId] = {}
    for lease in leases if suspicious else ():
        ledger = read_ledger(ledger_file(paths, lease.id), devices=len(lease.shares))
        of |= dict.fromkeys(pids_of(lease, ledger, suspicious), lease.id)
    return tuple(Intruder(pid, of[pid], how) for pid, how in sorted(suspicious.items()) if pid in of)


def _how(pid: int, page: str, governors: Collection[str]) -> str | None:
    """``page`` and ``governors`` are inodes. Raises OSError where the process may not be looked at."""
    copies = mapped = 0
    for one in mappings(pid):
        mapped += one.inode == page
        copies += one.inode in governors and not one.offset
    if mapped > copies:
        return "maps it beside its governor" if copies else "maps it without a governor"
    return "has it open for writing" if _holds_open(pid, page) else None


def _holds_open(pid: int, page: str) -> bool:
    for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - names alone
        with contextlib.suppress(FileNotFoundError):
            if str(os.stat(f"/proc/{pid}/fd/{name}").st_ino) != page:  # noqa: PTH116
                continue
            flags = Path(f"/proc/{pid}/fdinfo/{name}").read_text().partition("flags:")[2].split()
            if int(flags[0], 8) & os.O_ACCMODE != os.O_RDONLY:
                return True
    return False

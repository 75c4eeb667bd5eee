"""Which processes of ours the slots of a ledger mean.

A slot names its process as it is called in its own pid namespace. The kernel tells of each process below
ours how it is called there (``NSpid``), so nobody has to ask it: no socket in the share's folder, no call in
the tenant, and a program that gave up its rights is found as well. What a tenant writes into its slot is
believed only where the process that it names has this very ledger mapped.
"""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from aliquot.model import LedgerSlot
from aliquot.node.processes import all_pids, inner_pid, mappings

Known = Mapping[tuple[int, int], int]
"""(slot, start time) → pid in our namespace."""


def outer_pids(slots: Iterable[LedgerSlot], ledger: Path, *, known: Known) -> dict[tuple[int, int], int]:
    """Of the living among ``slots``. ``known`` is what the last call gave: only the rest is looked for.

    Raises OSError where there is no ledger.
    """
    living = {(slot.index, slot.start_time): slot for slot in slots if slot.alive and slot.pid}
    found = {key: pid for key, pid in known.items() if key in living}
    wanted = {key: slot for key, slot in living.items() if key not in found}
    if not wanted:
        return found
    times, inode = {slot.start_time for slot in wanted.values()}, str(ledger.stat().st_ino)
    for pid in all_pids():
        with contextlib.suppress(OSError, ValueError, IndexError):
            if _start_time(pid) not in times:
                continue
            for key, slot in list(wanted.items()):
                if _is(pid, slot) and _maps(pid, inode):
                    found[key] = pid
                    del wanted[key]
    return found


def _maps(pid: int, inode: str) -> bool:
    return any(one.inode == inode and one.path.endswith("/ledger") for one in mappings(pid))


def _is(pid: int, slot: LedgerSlot) -> bool:
    if inner_pid(pid) != slot.pid or _start_time(pid) != slot.start_time:
        return False
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino == slot.pid_namespace


def _start_time(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])

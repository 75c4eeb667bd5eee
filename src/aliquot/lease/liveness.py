"""Is a process still there? Everything here reads /proc, and nothing else does.

A process is named by pid, start time and pid namespace, so that a reused pid is never taken
for it. Where we cannot know, it counts as alive: a share kept for a dead holder costs room
until somebody releases it; a share taken from a living one is handed out twice.
"""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from aliquot.model import LeaseId, ProcessHolder

VARIABLE = "ALIQUOT_LEASE"
"""Set to the lease's id in everything that is started in a share."""

_STATE, _THREADS, _START_TIME, _SIZE, _CODE, _ENVIRONMENT, _ENVIRONMENT_END = 0, 17, 19, 20, 23, 47, 48
"""Fields 3, 20, 22, 23, 26, 50 and 51 of /proc/PID/stat, counted after the command's closing parenthesis."""

_EXEC_TAKES_AT_MOST_S = 2.0
_ROUNDS = 8


def describe(pid: int) -> ProcessHolder:
    """The process that has ``pid`` now. Raises ProcessLookupError where there is none."""
    try:
        start_time = int(_stat(pid)[_START_TIME])
    except FileNotFoundError as error:
        raise ProcessLookupError(f"no process {pid}") from error
    # Of another user's process, or a zombie's, it cannot be read: what we can name by a pid of
    # ours lives in our namespace or below it, and ours is where the pid means something.
    namespace = _namespace(str(pid)) or _namespace("self") or 0
    return ProcessHolder(pid=pid, start_time=start_time, pid_namespace=namespace)


def is_alive(holder: ProcessHolder) -> bool:
    """False only where it is certainly gone. A zombie is gone: it holds no memory and no lock."""
    if holder.pid_namespace != _namespace("self"):
        return True  # its pid is a number of another namespace: here it names nothing
    try:
        fields = _stat(holder.pid)
        if int(fields[_START_TIME]) != holder.start_time:
            return False
        # A main thread that left alone shows as a zombie while the others run on.
        return fields[_STATE] not in ("Z", "X") or int(fields[_THREADS]) > 1
    except (FileNotFoundError, ProcessLookupError):
        return _is_hidden(holder.pid)
    except (OSError, ValueError, IndexError):
        return True


def processes_carrying(leases: Iterable[LeaseId]) -> dict[LeaseId, tuple[int, ...]]:
    """Pids of processes that were started inside each lease; leases without any are left out.

    By their environment as it was at exec, so children, double forks and shells are found and
    a program that clears its environment is not: the ledger's slot locks catch that one.
    Processes whose environment we may not read (another user's) are left out as well.
    """
    wanted = {lease: (f"{VARIABLE}={lease}".encode(), f"/shares/{lease}/lib".encode()) for lease in leases}
    if not wanted:
        return {}
    found: dict[LeaseId, list[int]] = {}
    for pid in _every_pid():
        environment = _environment(pid)
        if b"ALIQUOT_LEASE=" not in environment and b"/shares/" not in environment:
            continue
        items = environment.split(b"\0")
        for lease, (variable, library) in wanted.items():
            if variable in items or any(_leads_to(item, library) for item in items):
                found.setdefault(lease, []).append(pid)
    return {lease: tuple(sorted(pids)) for lease, pids in found.items()}


def _every_pid() -> Iterator[int]:
    """Each process once, those too that were forked while the caller looked at the others.

    Whoever forks and leaves between our list and our look would be missed with its child. Where
    processes come faster than we look it ends all the same.
    """
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        with os.scandir("/proc") as entries:
            new = {int(entry.name) for entry in entries if entry.name.isdigit()} - seen
        if not new:
            return
        yield from sorted(new)
        seen |= new


def _environment(pid: int) -> bytes:
    """Empty where there is none, or none that we may read.

    In the middle of exec a process has none yet, which would hide a program of the share at the
    moment that its shell or fork leaves: looked at again until it has one.
    """
    until = time.monotonic() + _EXEC_TAKES_AT_MOST_S
    try:
        while not (environment := Path(f"/proc/{pid}/environ").read_bytes()):
            if _has_no_environment(pid) or time.monotonic() > until:
                return b""
    except OSError:
        return b""
    return environment


def _has_no_environment(pid: int) -> bool:
    """A kernel thread or a zombie, which has no memory; or a program that was given an empty one.

    exec makes the environment from its begin on, so for a moment it looks empty; only then does it
    say where the code is (create_elf_tables and load_elf_binary in the kernel's fs/binfmt_elf.c).
    """
    fields = _stat(pid)
    begin, end = int(fields[_ENVIRONMENT]), int(fields[_ENVIRONMENT_END])
    return int(fields[_SIZE]) == 0 or (begin == end != 0 and fields[_CODE] != "0")


def _leads_to(item: bytes, library: bytes) -> bool:
    """Whether a library path leads into a share, though our variable was unset.

    Such a program may load the governor later, and would fall through to the system's libcuda if
    the folder had gone with the lease.
    """
    return item.startswith(b"LD_LIBRARY_PATH=") and library in item


def _stat(pid: int) -> list[str]:
    """The fields from the third on; the command before them may hold spaces and parentheses."""
    text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    return text.rpartition(")")[2].split()


def _namespace(process: str) -> int | None:
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return None


def _is_hidden(pid: int) -> bool:
    """Whether a process without an entry in /proc may exist all the same (hidepid, no /proc)."""
    if not Path("/proc/self/stat").exists():
        return True
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return False  # it came after our look: another process

"""Who uses a share's GPU without its governor: what the driver lists beside what the ledger says.

A process of the share that is on the GPU and attests nothing went round the governor: it opened
the driver's own file, brought one of its own, or lost its library path. It is named, in
``aliquot show`` and in the lease's story; nothing here stops it.

That a process is of the share is known from what it cannot easily change: its ancestors, its
container's cgroup, its pid namespace; and from its environment. One that is an orphan, outside a
container, with an environment of its own making, is of nobody: its memory is then the card's
"outside" memory. A process that lies in the ledger is believed; what it uses is still listed.
"""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aliquot.enforcement import build_of
from aliquot.lease import Book, describe, processes_carrying
from aliquot.model import Bytes, Gpu, GpuProcess, GpuUuid, Lease, Ledger, LedgerSlot, ProcessHolder
from aliquot.node.paths import Paths
from aliquot.node.processes import inner_pid
from aliquot.node.using import container_ids

WHAT = "ungoverned"
"""Of the line in a lease's story."""


@dataclass(frozen=True, slots=True)
class Ungoverned:
    """A process of a share that uses its GPU and is not known to be held."""

    pid: int
    gpu: GpuUuid
    memory: Bytes | None
    """What the driver says that it has."""
    command: str | None
    why: str
    """One clause."""

    @property
    def sentence(self) -> str:
        """Without what changes from look to look: the same process gives the same sentence."""
        return f"process {self.pid} ({self.command or '?'}) uses {self.gpu} and {self.why}"


def ungoverned_of(
    paths: Paths,
    lease: Lease,
    ledger: Ledger | None,
    gpus: Mapping[GpuUuid, Gpu],
    *,
    containers: tuple[str, ...] | None = None,
) -> tuple[Ungoverned, ...] | None:
    """Of a governed lease's GPUs, the processes that are the lease's and attest nothing.

    ``containers``: ids of the lease's, where the caller knows them; else its engine is asked.
    None where it cannot be known: the ledger cannot be read, or a driver lists no processes.
    """
    if not lease.governed:
        return ()
    listed = [(share.gpu, gpus[share.gpu].processes if share.gpu in gpus else None) for share in lease.shares]
    if ledger is None or any(processes is None for _, processes in listed):
        return None
    seen = {process.pid: _process(process.pid) for _, processes in listed for process in processes or ()}
    known = {pid: process for pid, process in seen.items() if process is not None}
    mine = _mine(lease, ledger, known, container_ids(lease) if containers is None else containers)
    builds = known_builds(paths)
    found: list[Ungoverned] = []
    for gpu, processes in listed:
        for process in processes or ():
            why = _why(seen[process.pid], ledger, builds) if process.pid in mine else None
            if why is not None:
                found.append(Ungoverned(process.pid, gpu, process.memory, _shown(process), why))
    return tuple(found)


def known_builds(paths: Paths) -> frozenset[str]:
    """Builds of every governor that was ever put in front of a program here."""
    libraries = paths.libraries.glob("*/governor/libcuda.so.1")
    return frozenset(build for library in libraries if (build := build_of(library)) is not None)


def _shown(process: GpuProcess) -> str | None:
    return None if process.command is None else process.command[:60]


@dataclass(frozen=True, slots=True)
class _Process:
    """As /proc shows it; the names of the same process in the ledger and in an engine."""

    here: ProcessHolder
    inner_pid: int
    """In its own pid namespace."""
    ancestors: frozenset[int]
    cgroup: str


def _process(pid: int) -> _Process | None:
    try:
        here = describe(pid)
        return _Process(here, inner_pid(pid), _ancestors(pid), Path(f"/proc/{pid}/cgroup").read_text())
    except (OSError, ValueError, IndexError):  # gone by now, or hidden
        return None


def _ancestors(pid: int) -> frozenset[int]:
    found: set[int] = set()
    while pid > 1 and pid not in found:
        found.add(pid)
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        pid = int(fields[1])
    return frozenset(found)


def pids_of(lease: Lease, ledger: Ledger | None, pids: Iterable[int]) -> frozenset[int]:
    """Those of ``pids`` that are the lease's."""
    seen = {pid: process for pid in pids if (process := _process(pid)) is not None}
    return _mine(lease, ledger, seen, container_ids(lease))


def _mine(
    lease: Lease, ledger: Ledger | None, processes: Mapping[int, _Process], containers: tuple[str, ...]
) -> frozenset[int]:
    holder = lease.holder.pid if isinstance(lease.holder, ProcessHolder) else None
    carrying = processes_carrying([lease.id]).get(lease.id, ())
    here = _own_namespace()
    # Of a container: whoever shares its pid namespace with a process that the ledger knows.
    slots = ledger.slots if ledger is not None else ()
    namespaces = {slot.pid_namespace for slot in slots if slot.alive} - {0, here}
    return frozenset(
        pid
        for pid, process in processes.items()
        if pid in carrying
        or holder in process.ancestors
        or any(container in process.cgroup for container in containers)
        or process.here.pid_namespace in namespaces
    )


def _own_namespace() -> int:
    with contextlib.suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino
    return 0


def _why(process: _Process | None, ledger: Ledger, builds: Collection[str]) -> str | None:
    slot = _slot_of(process, ledger.slots) if process is not None else None
    if slot is None:
        return "is not in the share's ledger"
    if slot.attestation is None:
        return "does not say which governor it runs"
    if slot.attestation.build not in builds:
        return f"runs a governor that Aliquot did not put there ({slot.attestation.build})"
    return None


def _slot_of(process: _Process, slots: Iterable[LedgerSlot]) -> LedgerSlot | None:
    for slot in slots:
        same = slot.pid == process.inner_pid and slot.pid_namespace == process.here.pid_namespace
        if slot.alive and same and slot.start_time == process.here.start_time:
            return slot
    return None


def watch_attestation(
    paths: Paths,
    book: Book,
    lease: Lease,
    ledger: Ledger | None,
    gpus: Mapping[GpuUuid, Gpu],
    *,
    at: int,
    containers: tuple[str, ...] | None = None,
) -> tuple[Ungoverned, ...] | None:
    """``ungoverned_of``, each written into the story of the live ``lease`` when first seen."""
    found = ungoverned_of(paths, lease, ledger, gpus, containers=containers)
    for process in found or ():
        book.flag(lease.id, WHAT, process.sentence, at=at)
    return found

"""One look at the machine, with what the book knows added to what the driver says."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from aliquot.inventory import driver_files, look
from aliquot.model import Bytes, DriverFiles, Gpu, GpuUuid, Lease, LeaseId, Snapshot, Vendor
from aliquot.node.libraries import ensure_copied
from aliquot.node.paths import Paths
from aliquot.placement import IDLE_MEMORY


def look_here(paths: Paths) -> Snapshot:
    """GPUs as the drivers tell them; nothing of the book yet."""
    return look(softgpu_root=paths.softgpu)


def by_uuid(snapshot: Snapshot) -> dict[GpuUuid, Gpu]:
    return {gpu.uuid: gpu for gpu in snapshot.gpus}


def with_book(
    snapshot: Snapshot,
    *,
    cordoned: Mapping[GpuUuid, str | None],
    inside: Collection[int],
    over: Mapping[GpuUuid, int] | None = None,
) -> Snapshot:
    """``snapshot`` with cordons, and with the memory that processes outside the book hold.

    ``inside``: host pids of the live leases' processes. ``over``: bytes that leases use beyond
    what they have, which are as gone as those outside.
    """
    return replace(
        snapshot,
        gpus=tuple(
            replace(
                gpu,
                cordoned=gpu.uuid in cordoned,
                outside_memory=_with(outside_memory(gpu, inside), over, gpu),
            )
            for gpu in snapshot.gpus
        ),
    )


def _with(outside: Bytes | None, over: Mapping[GpuUuid, int] | None, gpu: Gpu) -> Bytes | None:
    return None if outside is None else Bytes(outside + (over or {}).get(gpu.uuid, 0))


def outside_memory(gpu: Gpu, inside: Collection[int]) -> Bytes | None:
    """What is in use on ``gpu`` less what leases' processes hold; None where unknown.

    All that is used counts, not only what the driver lists by process: memory of graphics,
    of MPS, or of processes in namespaces that the driver does not show is just as gone.
    """
    if gpu.memory_used is None:
        return None
    processes = gpu.processes or ()
    ours = sum(process.memory or 0 for process in processes if process.pid in inside)
    others = max(0, gpu.memory_used - ours)
    if others <= IDLE_MEMORY and all(process.pid in inside for process in processes):
        # Some MiB that an idle driver shows as used and no process has: four times `1/4` must
        # fit on an idle card.
        return Bytes(0)
    return Bytes(others)


def pids_inside(
    leases: Iterable[Lease],
    carrying: Mapping[LeaseId, tuple[int, ...]],
    slots: Mapping[LeaseId, tuple[int, ...]],
) -> frozenset[int]:
    """Pids of all processes of ``leases``, from their environment and their ledger slots."""
    found: set[int] = set()
    for lease in leases:
        found.update(carrying.get(lease.id, ()))
        found.update(slots.get(lease.id, ()))
    return frozenset(found)


def driver_for(paths: Paths, vendor: Vendor) -> DriverFiles | None:
    """The driver's files; the software GPU's are first copied to where a tenant can load them."""
    if vendor is Vendor.SOFTWARE:
        from aliquot.softgpu import library_folder

        copied = ensure_copied(library_folder(), paths.libraries)
        return driver_files(vendor, softgpu_library_folder=copied, softgpu_root=paths.softgpu)
    return driver_files(vendor)


def pid_namespace() -> int:
    """Inode of our own pid namespace; pids in other namespaces are not comparable."""
    return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - Path.stat would do the same


def boot_id(proc: Path = Path("/proc")) -> str | None:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None

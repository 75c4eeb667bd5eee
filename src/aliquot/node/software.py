"""Software GPUs by what a user calls them, and their removal: never one that a lease or a process is on.

``softgpu`` is imported by who needs it: its TOML reader is paid only then.
"""

import os
from collections.abc import Sequence

from aliquot.lease import Book
from aliquot.model import AliquotError, Gpu, GpuUuid, Reason, Snapshot, Vendor
from aliquot.node.paths import Paths


def finish_software_gpus(paths: Paths) -> None:
    """Remove what a killed create or remove left; free of cost where nothing is."""
    try:
        left = any(name.startswith(".") for name in os.listdir(paths.softgpu))  # noqa: PTH208 - names alone
    except OSError:
        return
    if left:
        from aliquot.softgpu import clear_leftovers

        clear_leftovers(paths.softgpu)


def select_software_gpus(snapshot: Snapshot, selectors: Sequence[str]) -> tuple[Gpu, ...]:
    """What ``selectors`` name, each once: a set, an index, a UUID or its beginning, a PCI id, ``all``.

    Raises AliquotError: NOT_FOUND, AMBIGUOUS.
    """
    ours = [gpu for gpu in snapshot.gpus if gpu.vendor is Vendor.SOFTWARE]
    chosen = {gpu.uuid: gpu for selector in selectors for gpu in _named(ours, selector)}
    return tuple(sorted(chosen.values(), key=lambda gpu: gpu.index))


def _named(ours: Sequence[Gpu], selector: str) -> Sequence[Gpu]:
    if selector == "all" and ours:
        return ours
    members = [gpu for gpu in ours if gpu.set_name == selector]
    exact = members or [gpu for gpu in ours if selector in (str(gpu.index), gpu.uuid, gpu.pci_id)]
    start = selector.casefold().removeprefix("gpu-")
    found = exact or [gpu for gpu in ours if len(start) >= 2 and gpu.uuid[len("GPU-") :].startswith(start)]
    if members or len(found) == 1:
        return found
    raise AliquotError(
        Reason.AMBIGUOUS if found else Reason.NOT_FOUND,
        f"`{selector}` is the start of several software GPUs' UUIDs"
        if found
        else f"no software GPU or set of them here is `{selector}`",
        facts=[f"{gpu.index}  {gpu.uuid}  {gpu.name}" for gpu in found or ours],
        next=[("aliquot softgpu list -o wide", "lists them, with their sets")],
    )


def remove_software_gpus(paths: Paths, book: Book, snapshot: Snapshot, selector: str) -> tuple[Gpu, ...]:
    """The GPUs removed. ``selector``: a set, an index, a UUID or its beginning, a PCI id, or ``all``.

    Of several the first that is in use stops it; what was removed before stays removed.
    Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE.
    """
    from aliquot.softgpu import list_devices, remove

    known = {gpu.uuid: gpu for gpu in snapshot.gpus}
    busy = {gpu.uuid: [process.pid for process in gpu.processes or ()] for gpu in snapshot.gpus}
    devices = list_devices(paths.softgpu)
    ours = [device.uuid for device in devices]
    members = [device.uuid for device in devices if device.set_name == selector]
    by_index = [gpu.uuid for gpu in snapshot.gpus if str(gpu.index) == selector and gpu.uuid in ours]
    wanted: Sequence[str] = ours if selector == "all" else members or by_index or [selector]
    if not wanted:
        raise AliquotError(
            Reason.NOT_FOUND,
            "there is no software GPU to remove",
            next=[("aliquot softgpu create T4", "makes one")],
        )
    removed: list[Gpu] = []
    for name in wanted:
        meant = [uuid for uuid in ours if uuid.startswith((name, f"GPU-{name}"))]
        if len(meant) == 1:  # else `remove` says what is wrong with the name
            _refuse_leased(book, meant[0])
        device = remove(paths.softgpu, name, busy=busy)
        gone = known.get(device.uuid)
        removed.append(
            gone
            or Gpu(
                uuid=device.uuid,
                index=-1,
                vendor=Vendor.SOFTWARE,
                name=device.name or "a broken software GPU",
                pci_id=device.pci_id or "",
            )
        )
    return tuple(removed)


def _refuse_leased(book: Book, gpu: GpuUuid) -> None:
    for lease in book.leases(live=True):
        if any(share.gpu == gpu for share in lease.shares):
            raise AliquotError(
                Reason.SOFTGPU_BUSY,
                f"lease {lease.id} holds a share of that software GPU",
                next=[
                    (f"aliquot show {lease.id}", "shows who uses it"),
                    (f"aliquot release {lease.id}", "ends it; --force its programs as well"),
                ],
            )

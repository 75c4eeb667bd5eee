"""Removing software GPUs: never one that a lease or a process is on."""

from collections.abc import Sequence

from aliquot.lease import Book
from aliquot.model import AliquotError, Gpu, GpuUuid, Reason, Snapshot, Vendor
from aliquot.node.paths import Paths
from aliquot.softgpu import list_devices, remove


def remove_software_gpus(paths: Paths, book: Book, snapshot: Snapshot, selector: str) -> tuple[Gpu, ...]:
    """The GPUs removed. ``selector``: an index, a UUID or its beginning, a PCI id, or ``all``.

    With ``all`` the first that is in use stops it; what was removed before stays removed.
    Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE.
    """
    known = {gpu.uuid: gpu for gpu in snapshot.gpus}
    busy = {gpu.uuid: [process.pid for process in gpu.processes or ()] for gpu in snapshot.gpus}
    ours = [device.uuid for device in list_devices(paths.softgpu)]
    by_index = [gpu.uuid for gpu in snapshot.gpus if str(gpu.index) == selector and gpu.uuid in ours]
    wanted: Sequence[str] = ours if selector == "all" else by_index or [selector]
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

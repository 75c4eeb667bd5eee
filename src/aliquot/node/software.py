"""Removing software GPUs: never one that a lease or a process is on."""

from aliquot.lease import Book
from aliquot.model import AliquotError, Gpu, Reason, Snapshot, Vendor
from aliquot.node.paths import Paths
from aliquot.softgpu import list_devices, remove


def remove_software_gpus(paths: Paths, book: Book, snapshot: Snapshot, selector: str) -> tuple[Gpu, ...]:
    """The GPUs removed. ``selector``: a UUID, the beginning of one, a PCI id, or ``all``.

    With ``all`` the first that is in use stops it; what was removed before stays removed.
    Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE.
    """
    known = {gpu.uuid: gpu for gpu in snapshot.gpus}
    busy = {gpu.uuid: [process.pid for process in gpu.processes or ()] for gpu in snapshot.gpus}
    wanted = [device.uuid for device in list_devices(paths.softgpu)] if selector == "all" else [selector]
    if not wanted:
        raise AliquotError(
            Reason.NOT_FOUND,
            "there is no software GPU to remove",
            next=[("aliquot softgpu create T4", "makes one")],
        )
    removed: list[Gpu] = []
    for name in wanted:
        _refuse_leased(book, [gpu for gpu in known if gpu == name or gpu.startswith((name, f"GPU-{name}"))])
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


def _refuse_leased(book: Book, candidates: list[str]) -> None:
    for lease in book.leases(live=True):
        if any(share.gpu in candidates for share in lease.shares):
            raise AliquotError(
                Reason.SOFTGPU_BUSY,
                f"lease {lease.id} holds a share of that software GPU",
                next=[(f"aliquot release {lease.id}", "ends it first")],
            )

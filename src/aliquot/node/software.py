"""Software GPUs by what a user calls them, and their removal: never one that a lease or a process is on.

``softgpu`` is imported by who needs it: its TOML reader is paid only then.
"""

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from aliquot.lease import Book
from aliquot.model import AliquotError, Gpu, GpuUuid, Reason, Snapshot, Vendor
from aliquot.node.paths import Paths

if TYPE_CHECKING:
    from aliquot.softgpu import SoftGpu

_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHORTEST_START = 2
"""Letters of a UUID that name a GPU to look at; what is removed wants more of them."""


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


def chose_software_gpus(visible: str, snapshot: Snapshot) -> bool:
    """Whether ``visible``, of CUDA_VISIBLE_DEVICES, is a choice of software GPUs, gone ones too: UUIDs, of
    which none is a card's."""
    chosen = [one.strip() for one in visible.split(",") if one.strip()]
    cards = {gpu.uuid for gpu in snapshot.gpus if gpu.vendor is not Vendor.SOFTWARE}
    return bool(chosen) and all(_UUID.fullmatch(one) and one not in cards for one in chosen)


def _named(ours: Sequence[Gpu], selector: str) -> Sequence[Gpu]:
    if selector == "all":
        return ours or _none_here()
    members = [gpu for gpu in ours if gpu.set_name == selector]
    exact = members or [gpu for gpu in ours if selector in (str(gpu.index), gpu.uuid, gpu.pci_id)]
    start = selector.casefold().removeprefix("gpu-")
    found = exact or [
        gpu for gpu in ours if len(start) >= _SHORTEST_START and gpu.uuid[len("GPU-") :].startswith(start)
    ]
    if members or len(found) == 1:
        return found
    raise AliquotError(
        Reason.AMBIGUOUS if found else Reason.NOT_FOUND,
        f"`{selector}` is the start of several software GPUs' UUIDs"
        if found
        else f"no software GPU or set of them here is `{selector}`: write the name of a set, an index, "
        f"a UUID or at least {_SHORTEST_START} letters of it, or a PCI bus id",
        facts=[f"{gpu.index}  {gpu.uuid}  {gpu.name}" for gpu in found or ours],
        next=[("aliquot softgpu list -o wide", "lists them, with their sets")],
    )


def remove_software_gpus(
    paths: Paths, book: Book, snapshot: Snapshot, selectors: Sequence[str]
) -> tuple[Gpu, ...]:
    """The GPUs removed. ``selectors``: each a set, an index, a UUID or its beginning, a PCI id, or ``all``.

    All or none: every one is looked at before the first goes. Only a process that comes onto one
    between the two stops it midway.
    Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE.
    """
    from aliquot.softgpu import list_devices, refuse_busy, remove

    busy = {gpu.uuid: [process.pid for process in gpu.processes or ()] for gpu in snapshot.gpus}
    there = list_devices(paths.softgpu)
    devices = {device.uuid: device for device in there}
    wanted = list(dict.fromkeys(uuid for one in selectors for uuid in _removable(there, snapshot, one)))
    for uuid in wanted:
        _refuse_leased(book, uuid)
        refuse_busy(devices[uuid], busy)
    known = {gpu.uuid: gpu for gpu in snapshot.gpus}
    for uuid in wanted:
        remove(paths.softgpu, uuid, busy=busy)
    return tuple(known.get(uuid) or _broken(devices[uuid]) for uuid in wanted)


def _removable(devices: "tuple[SoftGpu, ...]", snapshot: Snapshot, selector: str) -> list[GpuUuid]:
    """Also broken devices, which no snapshot has."""
    from aliquot.softgpu.removing import the_one

    if selector == "all":
        return [device.uuid for device in devices or _none_here()]
    ours = {device.uuid for device in devices}
    members = [device.uuid for device in devices if device.set_name == selector]
    by_index = [gpu.uuid for gpu in snapshot.gpus if str(gpu.index) == selector and gpu.uuid in ours]
    return members or by_index or [the_one(devices, selector).uuid]


def _none_here() -> NoReturn:
    raise AliquotError(
        Reason.NOT_FOUND,
        "there is no software GPU here",
        next=[("aliquot softgpu create T4", "makes one")],
    )


def _broken(device: "SoftGpu") -> Gpu:
    return Gpu(
        uuid=device.uuid,
        index=-1,
        vendor=Vendor.SOFTWARE,
        name=device.name or "a broken software GPU",
        pci_id=device.pci_id or "",
    )


def _refuse_leased(book: Book, gpu: GpuUuid) -> None:
    for lease in book.leases(live=True):
        if any(share.gpu == gpu for share in lease.shares):
            raise AliquotError(
                Reason.SOFTGPU_BUSY,
                f"lease {lease.id} holds a share of {gpu}: nothing was removed",
                next=[
                    (f"aliquot show {lease.id}", "shows who uses it"),
                    (f"aliquot release {lease.id}", "ends it; --force its programs as well"),
                ],
            )

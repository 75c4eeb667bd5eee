"""Removing a software GPU, unless somebody is on it."""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from aliquot.model import AliquotError, GpuUuid, Reason
from aliquot.softgpu.devices import SoftGpu, list_devices
from aliquot.softgpu.occupied import nobody_on

_SHORTEST_PREFIX = 4


def remove(root: Path, selector: str, *, busy: Mapping[GpuUuid, Collection[int]] | None = None) -> SoftGpu:
    """Remove the one device that ``selector`` names, and return what it was.

    selector: a UUID or the first letters of one (with or without ``GPU-``), or a PCI bus id.
    Never a number: ordinals differ between lists. A broken device is removed like a sound one.
    busy: pids of the processes on each device, where the caller knows them; they are named in
    the refusal. Whether or not it knows, the locks that the software GPU's driver holds on
    ``state`` while a process lives are looked at here.

    Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE.
    """
    device = the_one(list_devices(root), selector)
    refuse_named(device, busy or {})
    gone = root / f".gone-{device.folder.name}"
    try:
        with nobody_on(device.folder) as free:
            if not free:
                raise _busy(device, ())
            os.rename(device.folder, gone)  # noqa: PTH104 - the step that makes it not exist
        gone.unlink() if gone.is_symlink() else shutil.rmtree(gone)
    except OSError as error:
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            f"{error.filename or device.folder} cannot be removed: {error.strerror or error}",
            next=[(f"ls -la {root}", "shows whose it is")],
        ) from error
    return device


def refuse_busy(device: SoftGpu, busy: Mapping[GpuUuid, Collection[int]]) -> None:
    """Raises AliquotError(SOFTGPU_BUSY) where a process is on the device at this moment."""
    refuse_named(device, busy)
    with nobody_on(device.folder) as free:
        if not free:
            raise _busy(device, ())


def refuse_named(device: SoftGpu, busy: Mapping[GpuUuid, Collection[int]]) -> None:
    pids = tuple(busy.get(device.uuid, ()))
    if pids:
        raise _busy(device, pids)


def the_one(devices: tuple[SoftGpu, ...], selector: str) -> SoftGpu:
    exact = [one for one in devices if selector in (one.uuid, one.folder.name, one.pci_id)]
    found = exact or [one for one in devices if _matches(one, selector)]
    if len(found) == 1:
        return found[0]
    facts = [f"{one.uuid}  {one.name or one.fault}" for one in found or devices]
    if found:
        raise AliquotError(
            Reason.AMBIGUOUS, f"{selector!r} is the start of several software GPUs", facts=facts
        )
    raise AliquotError(
        Reason.NOT_FOUND,
        f"there is no software GPU {selector!r}: write the name of a set, a UUID, at least "
        f"{_SHORTEST_PREFIX} letters of its start, an index, or a PCI bus id",
        facts=facts,
        next=[("aliquot softgpu list", "shows those there are")],
    )


def _matches(device: SoftGpu, selector: str) -> bool:
    start = selector.casefold().removeprefix("gpu-")
    return len(start) >= _SHORTEST_PREFIX and device.uuid.casefold().removeprefix("gpu-").startswith(start)


def _busy(device: SoftGpu, pids: Collection[int]) -> AliquotError:
    who = f"process {', '.join(map(str, sorted(pids)))}" if pids else "a process"
    return AliquotError(
        Reason.SOFTGPU_BUSY,
        f"{device.name or device.uuid} is in use by {who}",
        facts=[f"{device.uuid}  {device.pci_id or ''}".rstrip()],
        next=[(f"aliquot show {device.uuid}", "names its processes")],
    )

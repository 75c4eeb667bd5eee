"""Failures and accounts of one software GPU."""

import time

from aliquot.model import AliquotError, GpuUuid, Reason
from aliquot.node.paths import Paths
from aliquot.softgpu import list_devices
from aliquot.softgpu.busy import Busy, read_busy
from aliquot.softgpu.devices import SoftGpu
from aliquot.softgpu.failing import Failure, clear_failures, order_failures, parse_failures, read_failures
from aliquot.softgpu.removing import the_one


def fail_software_gpu(paths: Paths, gpu: GpuUuid, text: str | None, *, clear: bool) -> tuple[Failure, ...]:
    """What the device is told from now on. Without ``text`` nothing is added; with ``clear`` what ``text``
    names is taken back, everything where there is none.

    Raises AliquotError: BAD_USAGE, NOT_FOUND, FILES_UNWRITABLE.
    """
    device = _device(paths, gpu)
    if clear:
        return clear_failures(device, text)
    wanted = () if text is None else parse_failures(text)
    if not wanted:
        return read_failures(device)
    told = order_failures(device, wanted, at=time.time_ns())
    read_busy(device)  # whoever looks first tells NVML's listeners of an event
    return told


def failures_of_all(paths: Paths) -> dict[GpuUuid, tuple[str, ...]]:
    return {
        device.uuid: tuple(str(failure) for failure in read_failures(device))
        for device in list_devices(paths.softgpu)
    }


def times_of_all(paths: Paths) -> dict[GpuUuid, tuple[str | None, str | None]]:
    """What passes for time on each, and the slice of a process beside others: as they were created."""
    return {device.uuid: (device.time, device.time_slice) for device in list_devices(paths.softgpu)}


def software_gpu_busy(paths: Paths, gpu: GpuUuid) -> Busy:
    return read_busy(_device(paths, gpu))


def software_gpu_log(paths: Paths, gpu: GpuUuid) -> tuple[str, ...]:
    """Lines that the driver wrote: what programs asked for in vain, and how kernels failed.

    Raises AliquotError(FAILED).
    """
    path = _device(paths, gpu).folder / "log"
    try:
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError as error:
        raise AliquotError(
            Reason.FAILED,
            f"{path} cannot be read: {error.strerror or error}",
            next=[(f"ls -la {path.parent}", "shows whose it is")],
        ) from error


def _device(paths: Paths, gpu: GpuUuid) -> SoftGpu:
    return the_one(list_devices(paths.softgpu), gpu)

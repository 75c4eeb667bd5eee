"""Software GPUs: read with the code that reads NVIDIA's, from a library of NVML's interface."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from aliquot.inventory import notices
from aliquot.inventory.nvidia import NvmlError
from aliquot.inventory.nvidia_health import with_xids
from aliquot.inventory.nvml_report import read_report
from aliquot.inventory.reading import entries, is_folder, is_present, text_of
from aliquot.model import Bytes, Gpu, HealthState, Notice, Vendor

_LIBRARY = "libnvidia-ml.so.1"

_FAILURES = "failures"
"""What `softgpu.failing` told a device to do wrong."""
_XID = re.compile(r"^\s*xid=([1-9]\d{0,2})(?!\S)", re.MULTILINE)

PACKAGED_LIBRARY_FOLDER = Path(__file__).parent.parent / "_native" / "softgpu"


@dataclass(frozen=True, slots=True)
class SoftwareGpus:
    gpus: tuple[Gpu, ...] = ()
    notices: tuple[Notice, ...] = ()
    cuda_version: tuple[int, int] | None = None


def see_software(devices: Path, library_folder: Path, proc: Path) -> SoftwareGpus:
    """All that lie in ``devices``. Never raises; without any, no library is loaded."""
    names = _device_names(devices)
    if not names:
        return SoftwareGpus()
    library = library_folder / _LIBRARY
    if not is_present(library):
        return SoftwareGpus(notices=(notices.software_library_missing(library_folder),))
    try:
        with _devices_in(devices):
            report = read_report(library, vendor=Vendor.SOFTWARE, proc=proc)
    except NvmlError as failure:
        return SoftwareGpus(notices=(notices.software_failed(failure, devices),))
    gpus = tuple(_completed(gpu, devices) for gpu in report.gpus if gpu.uuid in names)
    sound = {gpu.uuid for gpu in gpus if gpu.health.state is HealthState.HEALTHY}
    told_to_fail = {name for name in names if is_present(devices / name / _FAILURES)}
    broken = sorted(names - sound - told_to_fail)
    return SoftwareGpus(
        gpus, tuple(notices.software_device_broken(name) for name in broken), report.cuda_version
    )


def _device_names(devices: Path) -> set[str]:
    """Names of the devices' folders; one that is being made or removed has a dot in front, and those of a
    set that is not whole are named in ``.making``."""
    hidden = (text_of(devices / ".making") or "").split()
    found = {entry.name for entry in entries(devices) if entry.name[0] != "." and is_folder(entry)}
    return found.difference(hidden)


@contextmanager
def _devices_in(devices: Path) -> Iterator[None]:
    """Let the library look where we do, whatever state folder this process was started with.

    It asks the environment for the user's state folder, as every program's does.
    """
    before = os.environ.get("ALIQUOT_STATE_DIR")
    os.environ["ALIQUOT_STATE_DIR"] = str(devices.parent)
    try:
        yield
    finally:
        if before is None:
            del os.environ["ALIQUOT_STATE_DIR"]
        else:
            os.environ["ALIQUOT_STATE_DIR"] = before


def _completed(gpu: Gpu, devices: Path) -> Gpu:
    """With what NVML has no question for, what a context costs, the set and XIDs; the device's files tell."""
    lines = (text_of(devices / gpu.uuid / "device") or "").splitlines()
    pairs = dict(line.strip().partition(" ")[::2] for line in lines)
    value = pairs.get("context_bytes", "")
    cost = Bytes(int(value)) if value.isascii() and value.isdigit() else None
    completed = replace(gpu, context_bytes=cost, set_name=pairs.get("set"))
    return with_xids(completed, _xids(devices / gpu.uuid), where="told by aliquot softgpu fail")


def _xids(device: Path) -> tuple[int, ...]:
    """Those in force, oldest first: a software GPU has no kernel log, and taking one back is its reset."""
    return tuple(int(number) for number in _XID.findall(text_of(device / _FAILURES) or ""))

"""Everything one NVML library tells: the driver's, or with the same code the software GPU's."""

from dataclasses import dataclass
from pathlib import Path

from aliquot.inventory.nvidia import Card, Nvml, NvmlError, opened
from aliquot.inventory.nvidia_card import gpu_of
from aliquot.inventory.nvidia_health import recovery_action
from aliquot.model import Gpu, Vendor


@dataclass(frozen=True, slots=True)
class NvmlReport:
    gpus: tuple[Gpu, ...]
    """In NVML's order, their indexes NVML's."""
    recovery_actions: tuple[int | None, ...]
    """By GPU: see ``nvidia_health``."""
    unreachable: tuple[NvmlError, ...]
    """One for each GPU that NVML counts and gives no handle for. It does not say which."""
    driver_version: str | None
    cuda_version: tuple[int, int] | None


def read_report(library: Path, *, vendor: Vendor, proc: Path) -> NvmlReport:
    """Raises NvmlError where the library cannot be loaded, initialised or count its GPUs."""
    with opened(library) as nvml:
        gpus, actions, unreachable = [], [], []
        for index in range(int(nvml.call("nvmlDeviceGetCount"))):
            try:
                card = Card(nvml, nvml.call("nvmlDeviceGetHandleByIndex", index))
            except NvmlError as failure:
                unreachable.append(failure)
                continue
            gpus.append(gpu_of(card, nvml_index=index, vendor=vendor, proc=proc))
            actions.append(recovery_action(card))
        return NvmlReport(
            gpus=tuple(gpus),
            recovery_actions=tuple(actions),
            unreachable=tuple(unreachable),
            driver_version=_text(nvml, "nvmlSystemGetDriverVersion"),
            cuda_version=_cuda_version(nvml),
        )


def _text(nvml: Nvml, function: str) -> str | None:
    try:
        return str(nvml.call(function)) or None
    except NvmlError:
        return None


def _cuda_version(nvml: Nvml) -> tuple[int, int] | None:
    """12040 is 12.4; 0 is what a library says that does not know."""
    for function in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
        try:
            number = int(nvml.call(function))
        except NvmlError:
            continue
        if number > 0:
            return number // 1000, number % 1000 // 10
    return None

"""One GPU as NVML tells it: every field asked for by itself, so that none spoils another."""

from pathlib import Path

from aliquot.inventory.nvidia import Card, NvmlCode
from aliquot.inventory.nvidia_health import health_of
from aliquot.inventory.nvidia_processes import processes_of
from aliquot.inventory.other_vendors import synthesised_uuid
from aliquot.inventory.pci import normal_pci_id
from aliquot.model import Bytes, Gpu, GpuUuid, Mig, Vendor

_CORES_PER_MULTIPROCESSOR = {
    (3, 0): 192,
    (3, 5): 192,
    (3, 7): 192,
    (5, 0): 128,
    (5, 2): 128,
    (6, 0): 64,
    (6, 1): 128,
    (7, 0): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 7): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 3): 128,
    (12, 0): 128,
    (12, 1): 128,
}
"""CUDA cores (FP32 lanes), by compute capability: CUDA C++ Programming Guide, "Compute
Capabilities". NVML counts cores, and multiprocessors only on cards that can do MIG."""


def gpu_of(card: Card, *, nvml_index: int, vendor: Vendor, proc: Path) -> Gpu:
    """The GPU behind ``card``, with ``nvml_index`` as its index until the snapshot orders it."""
    name = card.ask("nvmlDeviceGetName")
    pci_id = _pci_id(card) or f"nvml:{nvml_index}"
    uuid = card.ask("nvmlDeviceGetUUID")
    memory, reserved, used = _memory(card)
    capability = card.ask("nvmlDeviceGetCudaComputeCapability")
    rates = card.ask("nvmlDeviceGetUtilizationRates")
    return Gpu(
        uuid=GpuUuid(uuid) if uuid else synthesised_uuid(vendor, pci_id),
        index=nvml_index,
        vendor=vendor,
        name=name or "NVIDIA GPU",
        pci_id=pci_id,
        memory=memory,
        memory_reserved=reserved,
        memory_used=used,
        compute_capability=None if capability is None else (int(capability[0]), int(capability[1])),
        multiprocessors=_multiprocessors(card, capability),
        utilisation=None if rates is None else int(rates.gpu),
        temperature=card.ask("nvmlDeviceGetTemperature", card.constant("NVML_TEMPERATURE_GPU")),
        mig=_mig(card),
        processes=processes_of(card, proc),
        minor=card.ask("nvmlDeviceGetMinorNumber"),
        health=health_of(card),  # last: it also judges what the calls above were answered
    )


def _pci_id(card: Card) -> str | None:
    info = card.ask("nvmlDeviceGetPciInfo")
    if info is None:
        return None
    text = info.busId or info.busIdLegacy
    return normal_pci_id(text.decode("ascii", "replace") if isinstance(text, bytes) else str(text))


def _memory(card: Card) -> tuple[Bytes | None, Bytes | None, Bytes | None]:
    """All, reserved by the driver, used by processes.

    Drivers before 510 have only the first form of the call: it does not tell the reserved
    part and counts it as used, so that capacity and use still add up.
    """
    newer = card.ask("nvmlDeviceGetMemoryInfo", card.constant("nvmlMemory_v2"))
    if newer is not None:
        return Bytes(newer.total), Bytes(newer.reserved), Bytes(newer.used)
    older = card.ask("nvmlDeviceGetMemoryInfo")
    if older is not None:
        return Bytes(older.total), None, Bytes(older.used)
    return None, None, None


def _multiprocessors(card: Card, capability: tuple[int, int] | None) -> int | None:
    attributes = card.ask("nvmlDeviceGetAttributes")
    if attributes is not None and attributes.multiprocessorCount:
        return int(attributes.multiprocessorCount)
    cores = card.ask("nvmlDeviceGetNumGpuCores")
    each = _CORES_PER_MULTIPROCESSOR.get(tuple(capability)) if capability else None  # type: ignore[arg-type]
    return None if not cores or not each or cores % each else int(cores) // each


def _mig(card: Card) -> Mig | None:
    modes = card.ask("nvmlDeviceGetMigMode")
    if modes is not None:
        return Mig.ENABLED if modes[0] else Mig.DISABLED
    unsupported = card.refusals["nvmlDeviceGetMigMode"] is NvmlCode.NOT_SUPPORTED
    return Mig.UNSUPPORTED if unsupported else None

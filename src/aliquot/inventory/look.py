"""One look at the machine: every GPU of every vendor, in one order, and what is wrong."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from aliquot.inventory import notices
from aliquot.inventory.nvidia_machine import Places, see_nvidia
from aliquot.inventory.other_vendors import other_cards
from aliquot.inventory.pci import bus_order, cards
from aliquot.inventory.reading import text_of
from aliquot.inventory.software import PACKAGED_LIBRARY_FOLDER, SoftwareGpus, see_software
from aliquot.model import Gpu, Node, Snapshot


def look(
    *,
    softgpu_root: Path | None = None,
    softgpu_library_folder: Path = PACKAGED_LIBRARY_FOLDER,
    nvml_path: Path | None = None,
    sysfs: Path = Path("/sys"),
    proc: Path = Path("/proc"),
    dev: Path = Path("/dev"),
    root: Path = Path("/"),
) -> Snapshot:
    """What GPUs are here, and in what state. Never raises for what it finds.

    softgpu_root: STATE/softgpu, where the software GPUs lie; None leaves them out.
    softgpu_library_folder: of their libnvidia-ml.so.1. nvml_path: the driver's NVML, instead
    of the one that the loader would find. The others are for tests and mounted images.

    Costs: with no GPU, a walk over sysfs; with one, 20 ms to import the NVML binding.
    """
    bus = cards(sysfs)
    nvidia = see_nvidia(bus, Places(proc=proc, dev=dev, root=root), nvml_path)
    software = SoftwareGpus()
    if softgpu_root is not None:
        software = see_software(softgpu_root, softgpu_library_folder, proc)
    gpus = _ordered([*nvidia.gpus, *software.gpus, *other_cards(bus, root)])
    told = [*nvidia.notices, *software.notices]
    if not gpus:
        told.append(notices.no_gpu())
    return Snapshot(
        node=Node(
            name=os.uname().nodename,
            boot_id=text_of(proc / "sys/kernel/random/boot_id"),
            driver_version=nvidia.driver_version,
            cuda_version=nvidia.cuda_version or software.cuda_version,
        ),
        gpus=gpus,
        notices=tuple(told),
    )


def _ordered(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """By PCI bus id, and numbered so. A UUID that two would have is kept by the first alone."""
    by_uuid: dict[str, Gpu] = {}
    for gpu in sorted(gpus, key=lambda gpu: (bus_order(gpu.pci_id), gpu.pci_id)):
        by_uuid.setdefault(gpu.uuid, gpu)
    return tuple(replace(gpu, index=index) for index, gpu in enumerate(by_uuid.values()))

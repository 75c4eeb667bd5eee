"""NVIDIA's side of one look: what the driver tells, what the bus shows beyond it, and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aliquot.inventory import notices
from aliquot.inventory.kernel_log import xids
from aliquot.inventory.kernel_module import kernel_card, library_version, module_version
from aliquot.inventory.nvidia import NvmlCode, NvmlError
from aliquot.inventory.nvidia_health import with_xids
from aliquot.inventory.nvml_report import NvmlReport, read_report
from aliquot.inventory.other_vendors import NVIDIA, synthesised_uuid
from aliquot.inventory.pci import PciCard
from aliquot.inventory.pci_names import device_name
from aliquot.inventory.reading import is_present
from aliquot.inventory.shared_libraries import find_library
from aliquot.model import Gpu, GpuUuid, Health, HealthState, Notice, Vendor

_DRIVER = "nvidia"
_FOR_VIRTUAL_MACHINES = ("vfio-pci", "pciback")
_OFF_THE_BUS = Health(HealthState.LOST, "it has fallen off the bus")


@dataclass(frozen=True, slots=True)
class NvidiaMachine:
    gpus: tuple[Gpu, ...] = ()
    notices: tuple[Notice, ...] = ()
    driver_version: str | None = None
    cuda_version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look; another root in tests, or of a mounted image."""

    proc: Path
    dev: Path
    root: Path


def see_nvidia(bus: Iterable[PciCard], places: Places, nvml_path: Path | None) -> NvidiaMachine:
    """Never raises: a broken driver is a notice, and its cards are listed as out of service."""
    cards = [card for card in bus if card.vendor == NVIDIA]
    library = nvml_path or find_library("libnvidia-ml.so.1", places.root)
    if library is None:
        return _without_library(cards, places)
    try:
        report = read_report(library, vendor=Vendor.NVIDIA, proc=places.proc)
    except NvmlError as failure:
        return _with_broken_driver(cards, places, library, failure)
    return _with_driver(cards, places, report)


def _with_driver(cards: Sequence[PciCard], places: Places, report: NvmlReport) -> NvidiaMachine:
    logged = xids(places.dev / "kmsg")
    gpus = [
        with_xids(gpu, logged.get(gpu.pci_id.rpartition(".")[0], ()), action=action)
        for gpu, action in zip(report.gpus, report.recovery_actions, strict=True)
    ]
    read = {gpu.pci_id for gpu in gpus}
    rest = [card for card in cards if card.pci_id not in read]
    bound = [card for card in rest if card.driver == _DRIVER]
    found = [_out_of_reach(card, places, report.unreachable) for card in bound]
    out_of_reach = [gpu for gpu in found if gpu is not None]
    others, why = _not_ours([card for card in rest if card.driver != _DRIVER], places, report.driver_version)
    nowhere = report.unreachable[len(out_of_reach) :]
    return NvidiaMachine(
        gpus=(*gpus, *out_of_reach, *others),
        notices=(
            *why,
            *(notices.unreachable(failure.words) for failure in nowhere),
            *notices.of_health([*gpus, *out_of_reach]),
        ),
        driver_version=report.driver_version,
        cuda_version=report.cuda_version,
    )


def _out_of_reach(card: PciCard, places: Places, unreachable: Sequence[NvmlError]) -> Gpu | None:
    """A card that the driver drives and NVML did not give a handle for; None where it is not ours."""
    if not _is_visible(card, places):
        return None
    if card.off_the_bus:
        return _unread(card, places, _OFF_THE_BUS)
    if unreachable:
        worst = next((one for one in unreachable if one.code is NvmlCode.GPU_IS_LOST), unreachable[0])
        lost = worst.code is NvmlCode.GPU_IS_LOST
        state = HealthState.LOST if lost else HealthState.UNHEALTHY
        return _unread(card, places, Health(state, f"the driver says: {worst.words}"))
    if kernel_card(card.pci_id, places.proc) is None:
        return None
    return _unread(card, places, Health(HealthState.UNHEALTHY, "the driver does not list it"))


def _is_visible(card: PciCard, places: Places) -> bool:
    """Whether the card is this container's: sysfs shows all of the machine's.

    A container that was given some has device nodes of these alone, and where NVIDIA's toolkit
    started it also a /proc/driver/nvidia of these alone. Where the module tells nothing, all are.
    """
    if not is_present(places.proc / "driver/nvidia/gpus") or card.driver != _DRIVER:
        return True
    known = kernel_card(card.pci_id, places.proc)
    return known is not None and (known.minor is None or is_present(places.dev / f"nvidia{known.minor}"))


def _not_ours(
    cards: Sequence[PciCard], places: Places, version: str | None
) -> tuple[list[Gpu], list[Notice]]:
    """NVIDIA's cards on the bus that NVIDIA's driver does not drive."""
    gpus, why = [], []
    for card in cards:
        shown = _shown(card, places)
        if card.driver == "nouveau":
            text, notice = "driven by nouveau", notices.driver_nouveau(shown)
        elif card.driver in _FOR_VIRTUAL_MACHINES:
            text, notice = (
                f"bound to {card.driver}",
                notices.passed_through(shown, card.pci_id, str(card.driver)),
            )
        else:
            text, notice = "not driven by NVIDIA's driver", notices.unsupported(shown, version)
        gpus.append(_unread(card, places, Health(HealthState.UNHEALTHY, text)))
        why.append(notice)
    return gpus, why


def _without_library(cards: Sequence[PciCard], places: Places) -> NvidiaMachine:
    loaded = module_version(places.proc) is not None
    wsl = not cards and is_present(places.dev / "dxg")
    named = [card for card in cards if card.driver in ("nouveau", *_FOR_VIRTUAL_MACHINES)]
    gpus, why = _not_ours(named, places, None)
    rest = [card for card in cards if card not in named and _is_visible(card, places)]
    if rest or loaded or wsl:
        shown = ", ".join(_shown(card, places) for card in rest) or "its cards are not shown here"
        why.append(notices.driver_missing(shown, module_loaded=loaded, wsl=wsl))
    gpus += [_unread(card, places, Health(HealthState.UNHEALTHY, "no driver")) for card in rest]
    return NvidiaMachine(tuple(gpus), tuple(why), driver_version=module_version(places.proc))


def _with_broken_driver(
    cards: Sequence[PciCard], places: Places, library: Path, failure: NvmlError
) -> NvidiaMachine:
    loaded = module_version(places.proc)
    named = [card for card in cards if card.driver in ("nouveau", *_FOR_VIRTUAL_MACHINES)]
    gpus, why = _not_ours(named, places, None)
    rest = [card for card in cards if card not in named and _is_visible(card, places)]
    # A library without any card is no fault: images of CUDA carry one.
    idle = failure.code is NvmlCode.DRIVER_NOT_LOADED and loaded is None
    if rest or not (cards or idle):
        why.append(
            notices.driver_failed(
                failure,
                library=library,
                library_version=library_version(library),
                module_version=loaded,
                dev=places.dev,
            )
        )
    lost = [_unread(card, places, _OFF_THE_BUS) for card in rest if card.off_the_bus]
    failed = Health(HealthState.UNHEALTHY, f"its driver fails: {failure.words}")
    gpus += [_unread(card, places, failed) for card in rest if not card.off_the_bus]
    return NvidiaMachine((*gpus, *lost), (*why, *notices.of_health(lost)), driver_version=loaded)


def _unread(card: PciCard, places: Places, health: Health) -> Gpu:
    """A card of which only the bus and the kernel module tell."""
    known = kernel_card(card.pci_id, places.proc)
    uuid = known.uuid if known else None
    return Gpu(
        uuid=GpuUuid(uuid) if uuid else synthesised_uuid(Vendor.NVIDIA, card.pci_id),
        index=0,
        vendor=Vendor.NVIDIA,
        name=(known and known.model) or _name(card, places),
        pci_id=card.pci_id,
        minor=known.minor if known else None,
        health=health,
    )


def _name(card: PciCard, places: Places) -> str:
    return device_name(NVIDIA, card.device, places.root) or f"NVIDIA GPU {card.device:04x}"


def _shown(card: PciCard, places: Places) -> str:
    return f"{_name(card, places)} at {card.pci_id}"

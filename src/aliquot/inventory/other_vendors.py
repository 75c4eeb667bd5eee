"""AMD, Intel and FPGA cards: listed from sysfs as whole devices.

Their UUIDs are ours: derived from the card's own serial number where its driver exports one
(amdgpu's ``unique_id``), so that the card keeps it in another slot, else from vendor and
PCI bus id. The prefix names the vendor, so that nobody takes one for a driver's own.
"""

from collections.abc import Iterable
from pathlib import Path

from aliquot.inventory.pci import PciCard
from aliquot.inventory.pci_names import device_name
from aliquot.model import Bytes, Gpu, GpuUuid, Health, HealthState, Vendor

NVIDIA, AMD, INTEL, XILINX, ALTERA = 0x10DE, 0x1002, 0x8086, 0x10EE, 0x1172

_ACCELERATOR = 0x12
_NAMESPACE = "6f0f6a52-7f6a-5c1e-9d55-8f0b2b6b1f0a"
"""Of the derived UUIDs. Ours, drawn once; another value would rename every card."""

_INTEL_FPGAS = {
    0x09C4: "Intel Programmable Acceleration Card with Arria 10 GX",
    0x0B2B: "Intel FPGA Programmable Acceleration Card D5005",
    0x0B30: "Intel FPGA Programmable Acceleration Card N3000",
    0xBCCE: "Intel FPGA SmartNIC N6000",
}
"""Device ids of Linux's dfl-pci driver; Intel's other accelerators (NPU, QAT, DSA) are none."""

_VENDOR_NAMES = {
    Vendor.AMD: "AMD GPU",
    Vendor.INTEL: "Intel GPU",
    Vendor.XILINX: "Xilinx FPGA",
    Vendor.ALTERA: "Altera FPGA",
}


def other_cards(cards: Iterable[PciCard], root: Path) -> list[Gpu]:
    """The cards among ``cards`` that we list; display chips of servers and VMs are not.

    A card with several functions (an Alveo has one to manage and one to use) is one device.
    """
    found: dict[tuple[Vendor, str], Gpu] = {}
    for card in cards:
        vendor = _vendor(card)
        if vendor is not None:
            found.setdefault((vendor, card.pci_id.rpartition(".")[0]), _gpu(card, vendor, root))
    return list(found.values())


def synthesised_uuid(vendor: Vendor, serial: str) -> GpuUuid:
    from uuid import UUID, uuid5  # 3 ms that a machine without such cards need not spend

    return GpuUuid(f"{vendor.name}-{uuid5(UUID(_NAMESPACE), f'{vendor.value}:{serial}')}")


def _vendor(card: PciCard) -> Vendor | None:
    match card.vendor:
        case _ if card.vendor == AMD:
            return Vendor.AMD
        case _ if card.vendor == INTEL and card.device in _INTEL_FPGAS:
            return Vendor.ALTERA
        case _ if card.vendor == INTEL and card.base_class != _ACCELERATOR and _discrete(card):
            return Vendor.INTEL
        case _ if card.vendor == XILINX and card.base_class == _ACCELERATOR:
            return Vendor.XILINX
        case _ if card.vendor == ALTERA and card.base_class == _ACCELERATOR:
            return Vendor.ALTERA
    return None


def _discrete(card: PciCard) -> bool:
    """Intel's integrated GPUs sit on bus 0 of the processor, and have no memory of their own."""
    return _intel_memory(card) is not None or card.pci_id.split(":")[1] != "00"


def _gpu(card: PciCard, vendor: Vendor, root: Path) -> Gpu:
    serial = (card.text("unique_id") if vendor is Vendor.AMD else None) or card.pci_id
    driven = card.driver is not None
    return Gpu(
        uuid=synthesised_uuid(vendor, serial),
        index=0,
        vendor=vendor,
        name=_name(card, vendor, root),
        pci_id=card.pci_id,
        memory=_bytes(_intel_memory(card) if vendor is Vendor.INTEL else card.number("mem_info_vram_total")),
        memory_used=_bytes(card.number("mem_info_vram_used")),
        utilisation=card.number("gpu_busy_percent"),
        temperature=_temperature(card),
        health=Health(HealthState.UNKNOWN) if driven else Health(HealthState.UNHEALTHY, "no kernel driver"),
        minor=_render_minor(card),
    )


def _name(card: PciCard, vendor: Vendor, root: Path) -> str:
    told = card.text("product_name") or (_INTEL_FPGAS.get(card.device) if vendor is Vendor.ALTERA else None)
    return told or device_name(card.vendor, card.device, root) or f"{_VENDOR_NAMES[vendor]} {card.device:04x}"


def _intel_memory(card: PciCard) -> int | None:
    """i915 exports all local memory for the card, xe (where it does) one amount a tile."""
    for total in card.folder.glob("drm/card*/lmem_total_bytes"):
        return card.number(str(total.relative_to(card.folder)))
    tiles = [
        card.number(str(tile.relative_to(card.folder)))
        for tile in card.folder.glob("tile*/physical_vram_size_bytes")
    ]
    known = [size for size in tiles if size is not None]
    return sum(known) if known and len(known) == len(tiles) else None


def _temperature(card: PciCard) -> int | None:
    """The first sensor of the card's hardware monitor, which gives thousandths of a degree."""
    for sensor in sorted(card.folder.glob("hwmon/hwmon*/temp1_input")):
        reading = card.number(str(sensor.relative_to(card.folder)))
        return None if reading is None else reading // 1000
    return None


def _render_minor(card: PciCard) -> int | None:
    """128 for ``/dev/dri/renderD128``: the node that compute programs open."""
    for node in sorted(card.folder.glob("drm/renderD*")):
        number = node.name.removeprefix("renderD")
        return int(number) if number.isdigit() else None
    return None


def _bytes(number: int | None) -> Bytes | None:
    return None if number is None else Bytes(number)

"""Cards on the PCI bus as the kernel exports them in sysfs, without any driver's help."""

import re
from dataclasses import dataclass
from pathlib import Path

from aliquot.inventory.reading import entries, is_present, real, text_of

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_DISPLAY, _ACCELERATOR = 0x03, 0x12
"""Base classes of the PCI Code and ID Assignment Specification; compute cards have either."""


@dataclass(frozen=True, slots=True)
class PciCard:
    """A display controller or processing accelerator."""

    pci_id: str
    vendor: int
    device: int
    base_class: int
    driver: str | None
    """The kernel driver it is bound to."""
    folder: Path
    """Its folder in sysfs."""

    def text(self, attribute: str) -> str | None:
        """What the driver exports under that name; None where it does not."""
        return text_of(self.folder / attribute)

    def number(self, attribute: str) -> int | None:
        """A decimal or ``0x`` number that the driver exports."""
        try:
            return int(self.text(attribute) or "", 0)
        except ValueError:
            return None

    @property
    def off_the_bus(self) -> bool:
        """Whether the card no longer answers: its configuration space then reads all ones.

        Wakes a sleeping card, so it is asked only where something already is wrong.
        """
        try:
            with (self.folder / "config").open("rb") as config:
                return config.read(4) == b"\xff\xff\xff\xff"
        except OSError:
            return False


def cards(sysfs: Path) -> tuple[PciCard, ...]:
    """All cards by PCI bus id; empty where there is no PCI bus.

    Virtual functions are left out where their physical card is here too: the card is
    listed once, as a whole. In a virtual machine they are all there is, and are listed.
    """
    folders = entries(sysfs / "bus/pci/devices")
    found = [card for card in map(_card, folders) if card is not None]
    return tuple(sorted(found, key=lambda card: bus_order(card.pci_id)))


def normal_pci_id(text: str) -> str:
    """``00000000:3B:00.0``, as NVML writes it, as the kernel writes it: ``0000:3b:00.0``."""
    domain, _, rest = text.strip().lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}"
    except ValueError:
        return text.strip().lower()


def bus_order(pci_id: str) -> tuple[int, ...]:
    """A key that sorts by domain, bus, device, function; what is no PCI bus id comes last."""
    match = _ADDRESS.fullmatch(pci_id)
    return tuple(int(part, 16) for part in match.groups()) if match else (1 << 32,)


def _card(folder: Path) -> PciCard | None:
    code = text_of(folder / "class")
    try:
        base_class = int(code or "", 16) >> 16
        if base_class not in (_DISPLAY, _ACCELERATOR) or not _ADDRESS.fullmatch(folder.name):
            return None
        vendor, device = (int(text_of(folder / name) or "", 16) for name in ("vendor", "device"))
    except ValueError:
        return None
    if is_present(folder / "physfn"):
        return None
    driver = folder / "driver"
    name = real(driver).name if driver.is_symlink() else None
    return PciCard(folder.name, vendor, device, base_class, name, folder)

"""Names of PCI devices from the list that distributions carry (pci-ids.ucw.cz)."""

from pathlib import Path

_PLACES = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids")


def device_name(vendor: int, device: int, root: Path) -> str | None:
    """The name that the list gives; None where there is no list or no such line.

    A device's line is ``\\tDEVICE  NAME`` below its vendor's ``VENDOR  NAME``.
    """
    for place in _PLACES:
        try:
            with (root / place).open(encoding="utf-8", errors="replace") as lines:
                ours = False
                for line in lines:
                    if line[:1].strip() and not line.startswith("#"):
                        if ours:
                            break
                        ours = line.startswith(f"{vendor:04x} ")
                    elif ours and line.startswith(f"\t{device:04x} "):
                        return line[5:].strip() or None
        except OSError:
            continue
    return None

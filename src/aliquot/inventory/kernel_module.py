"""What NVIDIA's kernel module tells in /proc, also when the library cannot reach it."""

import re
from dataclasses import dataclass
from pathlib import Path

from aliquot.inventory.reading import real, text_of

_VERSION = re.compile(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_LIBRARY = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)?)$")


@dataclass(frozen=True, slots=True)
class KernelCard:
    """One card as the module knows it. The UUID is None until the card was first opened."""

    model: str | None
    uuid: str | None
    minor: int | None


def module_version(proc: Path) -> str | None:
    """Version of the loaded module, such as ``550.54.15``; None where none is loaded."""
    match = _VERSION.search(text_of(proc / "driver/nvidia/version") or "")
    return match.group(1) if match else None


def library_version(library: Path) -> str | None:
    """The version in the name of the file behind ``libnvidia-ml.so.1``."""
    match = _LIBRARY.search(real(library).name)
    return match.group(1) if match else None


def kernel_card(pci_id: str, proc: Path) -> KernelCard | None:
    text = text_of(proc / "driver/nvidia/gpus" / pci_id / "information")
    if not text:
        return None
    pairs = dict(line.partition(":")[::2] for line in text.splitlines())
    told = {key.strip(): value.strip() for key, value in pairs.items()}
    uuid, minor = told.get("GPU UUID", ""), told.get("Device Minor", "")
    return KernelCard(
        model=told.get("Model") if told.get("Model") != "Unknown" else None,
        uuid=uuid if uuid.startswith("GPU-") and "?" not in uuid else None,
        minor=int(minor) if minor.isdigit() else None,
    )

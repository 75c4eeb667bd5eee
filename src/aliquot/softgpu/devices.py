"""The folder of a software GPU: what lies in it, and reading what is there."""

import re
from dataclasses import dataclass
from pathlib import Path

from aliquot.model import Bytes, GpuUuid
from aliquot.softgpu.profile import Profile
from aliquot.softgpu.timing import Timing, timing_words

DEVICE_FILE = "device"
SHARED_FILES = ("arena", "state", "log")
"""Written by every program that uses the device, whatever uid it has: 0666, made in advance,
because a tenant must not be able to create anything in the folder."""

MAKING = ".making"
"""Names the devices of a set that is being made, one a line: see ``making``."""

_UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PCI_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


_NEEDED = (
    "memory_bytes",
    "compute_major",
    "compute_minor",
    "multiprocessors",
    "shared_per_block_bytes",
    "registers_per_block",
    "threads_per_multiprocessor",
)
"""Numbers without which the driver passes a device over: native/softgpu/device/facts.c."""


@dataclass(frozen=True, slots=True)
class SoftGpu:
    """One device on disk. ``None`` where its file does not tell; ``fault`` then says why."""

    uuid: GpuUuid
    """Name of its folder."""
    folder: Path
    name: str | None = None
    profile: str | None = None
    pci_id: str | None = None
    set_name: str | None = None
    """Of the set that it was made in."""
    memory: Bytes | None = None
    memory_reserved: Bytes | None = None
    context_bytes: Bytes | None = None
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    time: str | None = None
    """``real``, ``scaled=FACTOR`` or ``virtual``."""
    time_slice: str | None = None
    """Of a process beside others, such as ``2ms``."""
    created_at: int | None = None
    """Nanoseconds since the epoch, UTC."""
    fault: str | None = None
    """What is wrong with the folder; such a device can only be removed."""


def list_devices(root: Path) -> tuple[SoftGpu, ...]:
    """All devices under ``root`` by PCI bus id, broken ones last; empty where nothing was made.

    Never raises for what lies there: a file that cannot be read is that device's ``fault``.
    A root that itself cannot be read counts as empty: it is then not ours to list.
    """
    try:
        hidden = in_the_making(root)
        folders = [
            entry
            for entry in root.iterdir()
            if not entry.name.startswith(".") and entry.name not in hidden and entry.is_dir()
        ]
    except OSError:
        return ()
    devices = [_read(folder) for folder in folders]
    return tuple(sorted(devices, key=lambda one: (one.fault is not None, one.pci_id or "", one.uuid)))


def in_the_making(root: Path) -> frozenset[str]:
    """Names of devices that are there but do not count: of a set that is not whole."""
    try:
        return frozenset((root / MAKING).read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def device_text(
    *,
    uuid: GpuUuid,
    pci_id: str,
    profile: Profile,
    created_at: int,
    set_name: str | None = None,
    timing: Timing | None = None,
) -> str:
    """The device file: the keys of ARCHITECTURE.md, one ``key value`` pair a line."""
    major, minor = profile.compute_capability
    lines: list[tuple[str, object]] = [
        ("uuid", uuid),
        ("name", profile.name),
        ("profile", profile.profile),
        ("pci_id", pci_id),
        ("created_ns", created_at),
        *([] if set_name is None else [("set", set_name)]),
        ("memory_bytes", profile.memory),
        ("memory_reserved_bytes", profile.memory_reserved),
        ("context_bytes", profile.context_bytes),
        ("compute_major", major),
        ("compute_minor", minor),
        ("multiprocessors", profile.multiprocessors),
        *profile.figures,
        *(timing.pairs if timing is not None else ()),
    ]
    return "# A software GPU of Aliquot. Written once; do not edit while it is in use.\n" + "".join(
        f"{key} {value}\n" for key, value in lines
    )


def parse_device_text(text: str) -> dict[str, str]:
    """Pairs of a device file; comments, empty lines and lines without a value are left out."""
    pairs = {}
    for line in text.splitlines():
        key, _, value = line.strip().partition(" ")
        if value and not key.startswith("#"):
            pairs[key] = value.strip()
    return pairs


def _read(folder: Path) -> SoftGpu:
    uuid = GpuUuid(folder.name)
    try:
        pairs = parse_device_text((folder / DEVICE_FILE).read_text(encoding="utf-8"))
        fault = _fault(folder, pairs)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        return SoftGpu(uuid, folder, fault=f"its file `device` cannot be read: {why}")
    major, minor = _number(pairs, "compute_major"), _number(pairs, "compute_minor")
    time, time_slice = timing_words(pairs)
    return SoftGpu(
        uuid=uuid,
        folder=folder,
        name=pairs.get("name"),
        profile=pairs.get("profile"),
        pci_id=pairs.get("pci_id"),
        set_name=pairs.get("set"),
        memory=_bytes(pairs, "memory_bytes"),
        memory_reserved=_bytes(pairs, "memory_reserved_bytes"),
        context_bytes=_bytes(pairs, "context_bytes"),
        compute_capability=None if major is None or minor is None else (major, minor),
        multiprocessors=_number(pairs, "multiprocessors"),
        time=time,
        time_slice=time_slice,
        created_at=_number(pairs, "created_ns"),
        fault=fault,
    )


def _fault(folder: Path, pairs: dict[str, str]) -> str | None:
    if not _UUID.fullmatch(folder.name):
        return "its folder's name is not a UUID"
    if pairs.get("uuid") != folder.name:
        return f"its file `device` says uuid {pairs.get('uuid')}, not its folder's name"
    if not _PCI_ID.fullmatch(pairs.get("pci_id", "")):
        return f"its file `device` says pci_id {pairs.get('pci_id')}, which is none"
    for key in _NEEDED:
        if _number(pairs, key) is None:
            return f"its file `device` does not say {key}"
    memory = _number(pairs, "memory_bytes")
    for name in SHARED_FILES:
        if not (folder / name).is_file():
            return f"its file `{name}` is missing"
    size = (folder / "arena").stat().st_size
    return None if size == memory else f"its file `arena` has {size} bytes, not {memory}"


def _number(pairs: dict[str, str], key: str) -> int | None:
    text = pairs.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _bytes(pairs: dict[str, str], key: str) -> Bytes | None:
    number = _number(pairs, key)
    return None if number is None else Bytes(number)

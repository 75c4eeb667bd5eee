"""Making software GPUs: all of those asked for, or none."""

import errno
import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from aliquot.model import AliquotError, Bytes, GpuUuid, Reason, format_bytes
from aliquot.softgpu.devices import DEVICE_FILE, SHARED_FILES, SoftGpu, device_text, list_devices
from aliquot.softgpu.profile import Profile, read_profile

MOST_DEVICES = 64
"""SG_MAXIMUM_DEVICES of native/softgpu/device/device.h: the driver shows no more."""

_HIGHEST_BUS = 0xFF
_DEVICES_PER_BUS = 32


def create(
    root: Path,
    *,
    profile: str,
    count: int = 1,
    memory: Bytes | None = None,
    at: int,
    entropy: Callable[[], int],
    taken_pci_ids: Collection[str] = (),
) -> tuple[SoftGpu, ...]:
    """Make ``count`` devices under ``root`` and return them; on any error none is left.

    memory: bytes of each instead of the profile's; at least 64 MiB, in steps of 2 MiB.
    at: nanoseconds since the epoch. entropy: draws a number of at least 122 random bits.
    taken_pci_ids: of the machine's real cards; the new devices get others.

    Raises AliquotError: BAD_PROFILE, BAD_USAGE (memory, count), FILES_UNWRITABLE.
    """
    figures = read_profile(profile)
    if memory is not None:
        figures = figures.scaled(memory)
    if count < 1:
        raise AliquotError(Reason.BAD_USAGE, f"{count} software GPUs cannot be made: at least 1")
    with _unwritable(root, figures.memory):
        _make_root(root)
        with _only_one(root):
            return _create_all(root, figures, count, at, entropy, set(taken_pci_ids))


def _create_all(
    root: Path, figures: Profile, count: int, at: int, entropy: Callable[[], int], taken: set[str]
) -> tuple[SoftGpu, ...]:
    _clear_leftovers(root)
    taken |= {device.pci_id for device in list_devices(root) if device.pci_id is not None}
    pci_ids = _free_pci_ids(taken, count)
    made: list[Path] = []
    try:
        for pci_id in pci_ids:
            identity = GpuUuid(f"GPU-{uuid.UUID(int=entropy() % (1 << 128), version=4)}")
            made.append(_create_one(root, identity, pci_id, figures, at))
        _sync(root)
    except BaseException:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return tuple(device for device in list_devices(root) if device.folder in made)


def _create_one(root: Path, identity: GpuUuid, pci_id: str, figures: Profile, at: int) -> Path:
    folder, temporary = root / identity, root / f".new-{identity}"
    temporary.mkdir()
    try:
        temporary.chmod(0o755)
        text = device_text(uuid=identity, pci_id=pci_id, profile=figures, created_at=at)
        _write(temporary / DEVICE_FILE, text.encode(), mode=0o644)
        for name in SHARED_FILES:
            _write(temporary / name, b"", mode=0o666, size=figures.memory if name == "arena" else 0)
        _sync(temporary)
        os.rename(temporary, folder)  # noqa: PTH104 - the step that makes the device exist
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return folder


def _write(path: Path, content: bytes, *, mode: int, size: int = 0) -> None:
    """``size``: the file is that long, with nothing behind it until it is written to."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)  # whatever the umask made of it
        while content:
            content = content[os.write(descriptor, content) :]
        if size:
            os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_root(root: Path) -> None:
    """0700: whoever may enter it could write every device's memory."""
    root.parent.mkdir(parents=True, exist_ok=True)
    try:
        root.mkdir(mode=0o700)
    except FileExistsError:
        return
    root.chmod(0o700)


def _free_pci_ids(taken: set[str], count: int) -> list[str]:
    """From bus ff down, where firmware rarely puts a card; a hole is filled first."""
    places = (
        f"0000:{_HIGHEST_BUS - place // _DEVICES_PER_BUS:02x}:{place % _DEVICES_PER_BUS:02x}.0"
        for place in range(MOST_DEVICES)
    )
    free = [pci_id for pci_id in places if pci_id not in taken]
    if count > len(free):
        raise AliquotError(
            Reason.BAD_USAGE,
            f"{count} more software GPUs cannot be made: {MOST_DEVICES} is the most, {len(free)} are left",
            next=[("aliquot softgpu list", "shows those there are")],
        )
    return free[:count]


def _clear_leftovers(root: Path) -> None:
    """Remove what a killed create or remove left; the lock says that nobody is at it."""
    for entry in root.iterdir():
        if entry.name.startswith((".new-", ".gone-")):
            shutil.rmtree(entry, ignore_errors=True)


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """One create at a time, so that two never choose the same PCI id. Ends with the process."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _unwritable(root: Path, memory: Bytes) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError) as error:
        message = f"{root} cannot be written: {getattr(error, 'strerror', None) or error}"
        if isinstance(error, OverflowError) or error.errno == errno.EFBIG:
            message = f"the file system of {root} cannot hold a file of {format_bytes(memory)}"
        raise AliquotError(
            Reason.FILES_UNWRITABLE,
            message,
            facts=["no software GPU was made"],
            next=[(f"df -hT {root.parent}; ls -ld {root.parent}", "shows the space and the permissions")],
        ) from error

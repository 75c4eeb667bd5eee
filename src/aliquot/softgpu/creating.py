"""Making software GPUs: all of those asked for, or none."""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from aliquot.model import AliquotError, Bytes, GpuUuid, Reason, format_bytes
from aliquot.softgpu.devices import DEVICE_FILE, SHARED_FILES, SoftGpu, device_text, list_devices
from aliquot.softgpu.making import clear_dead, forget_making, new_folder, only_one, publish, sync
from aliquot.softgpu.profile import Profile, read_profile
from aliquot.softgpu.timing import Timing

MOST_DEVICES = 64
"""SG_MAXIMUM_DEVICES of native/softgpu/device/device.h: the driver shows no more."""

_SET_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
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
    """``create_set`` of one profile, without a name."""
    wanted = [(count, profile)]
    return create_set(root, wanted, memory=memory, at=at, entropy=entropy, taken_pci_ids=taken_pci_ids)


def create_set(
    root: Path,
    wanted: Sequence[tuple[int, str]],
    *,
    name: str | None = None,
    memory: Bytes | None = None,
    at: int,
    entropy: Callable[[], int],
    taken_pci_ids: Collection[str] = (),
    timing: Timing | None = None,
) -> tuple[SoftGpu, ...]:
    """Make the devices ``wanted`` (how many, of which profile) under ``root`` and return them.

    All or none: on any error none is left, and of a create that was killed the next command leaves none.
    name: of the set that they are; a later command selects them all by it.
    memory: bytes of each instead of the profile's; at least 64 MiB, in steps of 2 MiB.
    at: nanoseconds since the epoch. entropy: draws a number of at least 122 random bits.
    timing: what passes for time on them; real time where it is not given.
    taken_pci_ids: of the machine's real cards; the new devices get others.

    Raises AliquotError: BAD_PROFILE, BAD_USAGE (memory, count, name), FILES_UNWRITABLE.
    """
    figures = [_sized(read_profile(profile), memory) for _, profile in wanted]
    if name is not None:
        check_set_name(name)
    for count, profile in wanted:
        if count < 1:
            raise AliquotError(Reason.BAD_USAGE, f"{count} of {profile} cannot be made: at least 1")
    each = [one for (count, _), one in zip(wanted, figures, strict=True) for _ in range(count)]
    with _unwritable(root, max((one.memory for one in each), default=Bytes(0))):
        _make_root(root)
        with only_one(root):
            clear_dead(root)
            if name is not None:
                _refuse_taken(root, name)
            return _create_all(root, each, (name, timing or Timing()), at, entropy, set(taken_pci_ids))


def _sized(profile: Profile, memory: Bytes | None) -> Profile:
    return profile if memory is None else profile.scaled(memory)


def _create_all(
    root: Path,
    each: Sequence[Profile],
    common: tuple[str | None, Timing],
    at: int,
    entropy: Callable[[], int],
    taken: set[str],
) -> tuple[SoftGpu, ...]:
    """Made under dotted names first: what takes time and space and can fail comes before anything shows."""
    name, timing = common
    taken |= {device.pci_id for device in list_devices(root) if device.pci_id is not None}
    made: list[Path] = []
    try:
        for pci_id, figures in zip(_free_pci_ids(taken, len(each)), each, strict=True):
            identity = GpuUuid(f"GPU-{uuid.UUID(int=entropy() % (1 << 128), version=4)}")
            if (root / identity).exists():
                raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
            made.append(root / identity)
            text = device_text(
                uuid=identity, pci_id=pci_id, profile=figures, created_at=at, set_name=name, timing=timing
            )
            _prepare(root, identity, text, figures.memory)
        publish(root, [folder.name for folder in made])
    except BaseException:
        for folder in made:
            shutil.rmtree(new_folder(root, folder.name), ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
        forget_making(root)
        raise
    return tuple(device for device in list_devices(root) if device.folder in made)


def _prepare(root: Path, identity: GpuUuid, text: str, memory: Bytes) -> None:
    folder = new_folder(root, identity)
    folder.mkdir()
    folder.chmod(0o755)
    _write(folder / DEVICE_FILE, text.encode(), mode=0o644)
    for name in SHARED_FILES:
        _write(folder / name, b"", mode=0o666, size=memory if name == "arena" else 0)
    sync(folder)


def check_set_name(name: str) -> None:
    """Raises AliquotError(BAD_USAGE) where a later command could take ``name`` for something else."""
    rule = None
    if not _SET_NAME.fullmatch(name):
        rule = "1 to 32 small letters, digits and -, a letter first"
    elif name == "all":
        rule = "`all` means every software GPU"
    elif re.fullmatch("[0-9a-f-]*|gpu-.*", name):
        rule = "it could be the beginning of a UUID; use a letter from g to z, not `gpu-` in front"
    if rule is not None:
        raise AliquotError(
            Reason.BAD_USAGE,
            f"a set of software GPUs cannot be called {name!r}: {rule}",
            next=[("aliquot softgpu create 2xT4 --name lab", "an example")],
        )


def _refuse_taken(root: Path, name: str) -> None:
    taken = [device for device in list_devices(root) if device.set_name == name]
    if taken:
        raise AliquotError(
            Reason.BAD_USAGE,
            f"there is a set {name!r} already: of {len(taken)} software GPUs",
            facts=[f"{device.uuid}  {device.name}" for device in taken],
            next=[(f"aliquot softgpu remove {name}", "removes it")],
        )


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

"""The limits file: what a tenant may have, readable by it and writable only by us.

Made once, complete, by rename; afterwards changed in place. A rename would leave running tenants
with a mapping of the old file, so a change goes through the sequence lock instead: readers take
values only between two equal, even readings of ``sequence``.
"""

import fcntl
import mmap
import os
import struct
from collections.abc import Mapping
from pathlib import Path

from aliquot.enforcement import abi
from aliquot.enforcement.files import put, unwritable, write_whole
from aliquot.model import AliquotError, Gpu, GpuUuid, Lease, Policy, Reason, Share, Unknown

_NO_LIMIT = (1 << 64) - 1
_WHOLE = 1
_PAUSED = 1
_UNKNOWN_PASSES = 2
_POLICIES = {Policy.FAIR: 0, Policy.CAP: 1, Policy.PRIORITY: 2}


def write_limits(
    path: Path,
    *,
    lease: Lease,
    gpus: Mapping[GpuUuid, Gpu],
    paused: bool = False,
    keeper_from: int | None = None,
) -> None:
    """Make ``path`` (0444), or bring an existing one to ``lease``'s present shares and policy.

    ``gpus`` gives each device's context cost; a card that does not tell charges nothing. While
    ``paused``, launches of the share's processes wait; what runs already ends. Made with
    ``keeper_from`` (CLOCK_MONOTONIC, nanoseconds), they are stale from ten seconds later on where no
    keeper looks (``keeping``); a change leaves that as it is.
    Raises AliquotError: FILES_UNWRITABLE, or FAILED where ``path`` belongs to another lease.
    """
    wanted = _limits(lease, gpus, paused=paused)
    try:
        if path.exists():
            _change(path, wanted)
        else:
            write_whole(path, _kept(wanted, keeper_from or 0), mode=0o444)
    except OSError as error:
        raise unwritable(path, error) from error


def limits_agree(path: Path, lease: Lease) -> bool | None:
    """Whether ``path`` says what ``lease`` has, of all that a change changes; None where it cannot be read.

    Where a change was killed while the file was open to its owner, it does not. What each context charges
    is the card's, and not compared.
    """
    try:
        found = path.read_bytes()
        writable = path.stat().st_mode & 0o222
    except OSError:
        return None
    if len(found) < abi.Limits.RECORD_SIZE or not found.startswith(abi.LIMITS_MAGIC):
        return None
    wanted = _limits(lease, {}, paused=lease.paused_at is not None)
    sequence = struct.unpack_from("<I", found, abi.Limits.SEQUENCE.offset)[0]
    places = [(abi.Limits.FLAGS.offset, abi.Limits.FLAGS)]
    for index in range(len(lease.shares)):
        base = abi.Limits.DEVICES.offset + index * abi.LimitsDevice.RECORD_SIZE
        for field in (abi.LimitsDevice.MEMORY, abi.LimitsDevice.COMPUTE, abi.LimitsDevice.POLICY):
            places.append((base + field.offset, field))
    return (
        not writable
        and sequence % 2 == 0
        and all(found[at : at + field.size] == wanted[at : at + field.size] for at, field in places)
    )


def _limits(lease: Lease, gpus: Mapping[GpuUuid, Gpu], *, paused: bool) -> bytes:
    if not 0 < len(lease.shares) <= abi.DEVICES_MAX:
        raise AliquotError(
            Reason.FAILED,
            f"a lease of {len(lease.shares)} GPUs cannot be held; a governor holds 1 to {abi.DEVICES_MAX}",
        )
    file = bytearray(abi.Limits.RECORD_SIZE)
    put(file, 0, abi.Limits.MAGIC, abi.LIMITS_MAGIC)
    put(file, 0, abi.Limits.VERSION, abi.VERSION)
    put(file, 0, abi.Limits.SIZE, abi.Limits.RECORD_SIZE)
    put(file, 0, abi.Limits.MINIMUM_READER, abi.MINIMUM_READER)
    put(file, 0, abi.Limits.LEASE, lease.id.encode())
    put(file, 0, abi.Limits.DEVICE_COUNT, len(lease.shares))
    passes = _UNKNOWN_PASSES if lease.unknown is Unknown.PASS else 0
    put(file, 0, abi.Limits.FLAGS, passes | (_PAUSED if paused else 0))
    for index, share in enumerate(lease.shares):
        base = abi.Limits.DEVICES.offset + index * abi.LimitsDevice.RECORD_SIZE
        _put_device(file, base, share, gpus)
        put(file, base, abi.LimitsDevice.POLICY, _POLICIES[lease.policy])
        put(file, base, abi.LimitsDevice.RANK, 1 if lease.policy is Policy.PRIORITY else 0)
    return bytes(file)


def _kept(wanted: bytes, looked: int) -> bytes:
    file = bytearray(wanted)
    for index in range(abi.DEVICES_MAX):
        base = abi.Limits.DEVICES.offset + index * abi.LimitsDevice.RECORD_SIZE
        put(file, base, abi.LimitsDevice.KEPT, looked)
    return bytes(file)


def _put_device(file: bytearray, base: int, share: Share, gpus: Mapping[GpuUuid, Gpu]) -> None:
    gpu = gpus.get(share.gpu)
    uuid = share.gpu.encode()
    if len(uuid) >= abi.UUID_BYTES:
        raise AliquotError(
            Reason.FAILED, f"the GPU UUID {share.gpu} is longer than {abi.UUID_BYTES - 1} bytes"
        )
    put(file, base, abi.LimitsDevice.UUID, uuid)
    put(file, base, abi.LimitsDevice.MEMORY, _NO_LIMIT if share.memory is None else share.memory)
    put(file, base, abi.LimitsDevice.CONTEXT_BYTES, (gpu.context_bytes if gpu is not None else None) or 0)
    put(file, base, abi.LimitsDevice.COMPUTE, share.compute)
    put(file, base, abi.LimitsDevice.FLAGS, _WHOLE if share.whole else 0)


def open_limits(path: Path) -> int:
    """To be changed. The owner's own bit is opened for as long as the file is opened; the tenant's are
    never: a governor that starts in this moment refuses only what others may write. Raises OSError."""
    path.chmod(0o644)
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    finally:
        path.chmod(0o444)


def _change(path: Path, wanted: bytes) -> None:
    descriptor = open_limits(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_size < len(wanted):
            raise AliquotError(Reason.FAILED, f"{path} is too short for a limits file")
        with mmap.mmap(descriptor, len(wanted)) as file:
            _check_same_lease(path, file[: len(wanted)], wanted)
            _replace(file, wanted)
    finally:
        os.close(descriptor)


def _check_same_lease(path: Path, found: bytes, wanted: bytes) -> None:
    lease = abi.Limits.LEASE
    same = (
        found[:8] == wanted[:8]
        and found[lease.offset :][: lease.count] == wanted[lease.offset :][: lease.count]
    )
    for index in range(abi.DEVICES_MAX):
        at = abi.Limits.DEVICES.offset + index * abi.LimitsDevice.RECORD_SIZE
        same = same and found[at : at + abi.UUID_BYTES] == wanted[at : at + abi.UUID_BYTES]
    if not same:
        raise AliquotError(
            Reason.FAILED, f"{path} belongs to another lease or names other GPUs; nothing was changed"
        )


def _replace(file: mmap.mmap, wanted: bytes) -> None:
    """The values. A sequence that a killed writer left odd is taken over from there."""
    at = abi.Limits.SEQUENCE.offset
    (sequence,) = struct.unpack_from("<I", file, at)
    busy = (sequence | 1) & 0xFFFFFFFF
    struct.pack_into("<I", file, at, busy)
    _copy(file, wanted, abi.Limits.FLAGS.offset, abi.Limits.FLAGS)
    device = abi.LimitsDevice
    for index in range(abi.DEVICES_MAX):
        base = abi.Limits.DEVICES.offset + index * device.RECORD_SIZE
        for field in (
            device.MEMORY,
            device.CONTEXT_BYTES,
            device.COMPUTE,
            device.FLAGS,
            device.POLICY,
            device.RANK,
        ):
            _copy(file, wanted, base + field.offset, field)
    struct.pack_into("<I", file, at, (busy + 1) & 0xFFFFFFFF)


def _copy(file: mmap.mmap, wanted: bytes, at: int, field: abi.Field) -> None:
    """One value at once: a reader never sees half of it."""
    struct.pack_into(field.code, file, at, *struct.unpack_from(field.code, wanted, at))

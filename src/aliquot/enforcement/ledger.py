"""The ledger: what a tenant has, in its own words.

Its processes write it, so nothing in it is believed further than it can be checked: sizes and
counts are fixed by the layout, a number that cannot be is None, and who is alive is asked of the
kernel (the lock on the slot's first byte), not of the file. It is read with read(2): a mapping would
let a tenant that truncates the file end the reader with SIGBUS.
"""

import fcntl
import os
import re
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from aliquot.enforcement import abi
from aliquot.enforcement.exports import exported, orphaned
from aliquot.enforcement.files import number, put, unwritable, write_whole
from aliquot.model import Attestation, Bytes, Ledger, LedgerDevice, LedgerSlot

_BYTES_MAX = 1 << 50
"""1 PiB: more than any card has; larger numbers are nonsense."""
_BYTE_SECONDS_MAX = 1e24
_DENIED_MAX = 1 << 53
"""A refusal takes a microsecond: 285 years of them, and still exact in every JSON reader."""
_COMPUTE_NS_MAX = 1 << 62
"""146 years of a device's time."""
_COUNT_MAX = (1 << 63) - 1
_PID_MAX = (1 << 31) - 1
_WRITTEN = 2
_C_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_LEAST = abi.Ledger.INTENTS.offset
"""The first ledgers ended with the slots."""
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, pid."""


def create_ledger(path: Path, *, devices: int) -> None:
    """Make an empty ledger, writable by every uid (0666): the tenant's is not known beforehand.

    One that exists stays: processes of the share may have it mapped.
    Raises AliquotError(FILES_UNWRITABLE).
    """
    if not 0 < devices <= abi.DEVICES_MAX:
        raise ValueError(f"a ledger is of 1 to {abi.DEVICES_MAX} devices, not {devices}")
    file = bytearray(abi.Ledger.RECORD_SIZE)
    put(file, 0, abi.Ledger.MAGIC, abi.LEDGER_MAGIC)
    put(file, 0, abi.Ledger.VERSION, abi.VERSION)
    put(file, 0, abi.Ledger.SIZE, abi.Ledger.RECORD_SIZE)
    put(file, 0, abi.Ledger.MINIMUM_READER, abi.MINIMUM_READER)
    put(file, 0, abi.Ledger.SLOT_COUNT, abi.SLOTS_MAX)
    put(file, 0, abi.Ledger.DEVICE_COUNT, devices)
    try:
        if not path.exists():
            write_whole(path, bytes(file), mode=0o666)
    except OSError as error:
        raise unwritable(path, error) from error


def read_ledger(path: Path, *, devices: int | None = None) -> Ledger | None:
    """The ledger at this moment; None where it is missing, may not be read, or is not a ledger
    that this Aliquot can read (cut short, overwritten, of a newer layout). Unknown, never zeros.

    ``devices`` is how many the share has, where the caller knows: the file's own count is its
    tenant's word.

    Bytes in use are those of live processes. Byte-seconds run up to now, also for a process that
    died: when it did is not known, so its bytes count until its slot is cleared or the share is
    released. So the last read before a release is the lease's final account. Nothing is changed.
    Numbers that cannot be are None, and so is a sum of which one is; nothing in the file makes
    this raise.
    """
    descriptor = _opened(path)
    if descriptor is None:
        return None
    try:
        file = os.pread(descriptor, abi.Ledger.RECORD_SIZE, 0)
        now = time.monotonic_ns()
        alive = _locked_slots(descriptor)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not _is_readable(file):
        return None
    file = file.ljust(abi.Ledger.RECORD_SIZE, b"\0")
    count = devices if devices is not None else number(file, 0, abi.Ledger.DEVICE_COUNT)
    bases = {index: abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE for index in range(abi.SLOTS_MAX)}
    written = {
        index: base
        for index, base in bases.items()
        if index in alive or any(file[base : base + abi.Slot.RECORD_SIZE])
    }
    slots = {index: _slot(file, index, base, count, alive=index in alive) for index, base in written.items()}
    kept = {index: slot for index, slot in slots.items() if slot.alive or slot.pid or any(_used(slot))}
    return Ledger(
        devices=tuple(
            _device(file, device, kept, [written[index] for index in kept], now) for device in range(count)
        ),
        slots=tuple(kept.values()),
        exports=exported(file),
        unknown=tuple(sorted(_unknown(file))),
    )


def live_slots(path: Path) -> int | None:
    """How many processes live in the share, asked of the kernel alone: no content of the file, and
    no cut of it, hides one. None where the file is missing or may not be opened."""
    descriptor = _opened(path)
    if descriptor is None:
        return None
    try:
        return len(_locked_slots(descriptor))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


def _is_readable(file: bytes) -> bool:
    """Whole, a ledger, and of a layout that we know: newer ones say who may still read them."""
    if len(file) < _LEAST or not file.startswith(abi.LEDGER_MAGIC):
        return False
    version, least, size, slots, devices = (
        number(file, 0, field)
        for field in (
            abi.Ledger.VERSION,
            abi.Ledger.MINIMUM_READER,
            abi.Ledger.SIZE,
            abi.Ledger.SLOT_COUNT,
            abi.Ledger.DEVICE_COUNT,
        )
    )
    known = 0 < least <= abi.VERSION and version >= least
    # A layout grows only at the end: a newer one is larger, and leases of before an upgrade are smaller.
    right_size = _LEAST <= size <= len(file) or (version > abi.VERSION and size >= abi.Ledger.RECORD_SIZE)
    return known and right_size and slots == abi.SLOTS_MAX and 0 < devices <= abi.DEVICES_MAX


def _slot(file: bytes, index: int, base: int, devices: int, *, alive: bool) -> LedgerSlot:
    start_time = min(number(file, base, abi.Slot.START_TIME), _COUNT_MAX)
    outside = abi.Ledger.OUTSIDES.offset + index * abi.Outside.RECORD_SIZE
    outer = number(file, outside, abi.Outside.PID)
    known = 0 < outer <= _PID_MAX and number(file, outside, abi.Outside.START_TIME) == start_time
    return LedgerSlot(
        pid=min(number(file, base, abi.Slot.PID), _PID_MAX),
        start_time=start_time,
        pid_namespace=min(number(file, base, abi.Slot.PID_NAMESPACE), _COUNT_MAX),
        alive=alive,
        used=tuple(_bytes(file, base, abi.Slot.USED, device) for device in range(devices)),
        compute_ns=_compute(file, base, abi.Slot.COMPUTE),
        attestation=_attestation(file, base),
        index=index,
        outer_pid=outer if known else None,
        taken=tuple(_bytes(file, outside, abi.Outside.TAKEN, device) for device in range(devices)),
    )


def _attestation(file: bytes, base: int) -> Attestation | None:
    build = number(file, base, abi.Slot.GOVERNOR_BUILD)
    if build == 0:
        return None
    version = number(file, base, abi.Slot.GOVERNOR_VERSION)
    enforces = number(file, base, abi.Slot.ENFORCES)
    return Attestation(
        build=f"{build:016x}",
        version=f"{version >> 16}.{version >> 8 & 255}.{version & 255}",
        memory=bool(enforces & abi.ENFORCES_MEMORY),
        compute=bool(enforces & abi.ENFORCES_COMPUTE),
        limits_seen=min(number(file, base, abi.Slot.LIMITS_SEEN), _COUNT_MAX),
    )


def _unknown(file: bytes) -> set[str]:
    """Names as C has them; what a tenant wrote instead is none."""
    names = set()
    for index in range(abi.UNKNOWNS_MAX):
        base = abi.Ledger.UNKNOWNS.offset + index * abi.Unknown.RECORD_SIZE
        at = base + abi.Unknown.NAME.offset
        name = file[at : at + abi.Unknown.NAME.count].partition(b"\0")[0]
        if number(file, base, abi.Unknown.STATE) == _WRITTEN and _C_NAME.fullmatch(name):
            names.add(name.decode())
    return names


def _used(slot: LedgerSlot) -> Iterable[bool]:
    """Whether it says that it has any, by device; nonsense is something too."""
    return (used != 0 for used in slot.used)


def _device(
    file: bytes, device: int, slots: Mapping[int, LedgerSlot], bases: Iterable[int], now: int
) -> LedgerDevice:
    alive = {index: slot for index, slot in slots.items() if slot.alive}
    shared = list(orphaned(file, device, alive))
    base = abi.Ledger.DEVICES.offset + device * abi.LedgerDevice.RECORD_SIZE
    used = _sum([*(slot.used[device] for slot in alive.values()), *(size for size, _ in shared)])
    denied = number(file, base, abi.LedgerDevice.DENIED)
    byte_seconds = _sum(
        [
            _seconds(file, base, abi.LedgerDevice.RETIRED, 0),
            *(_slot_byte_seconds(file, slot, device, now) for slot in bases),
            *(size * max(0, now - since) / 1e9 for size, since in shared if since),
        ]
    )
    return LedgerDevice(
        used=None if used is None or used > _BYTES_MAX else Bytes(int(used)),
        peak=_bytes(file, base, abi.LedgerDevice.PEAK, 0),
        byte_seconds=None
        if byte_seconds is None or byte_seconds > _BYTE_SECONDS_MAX
        else float(byte_seconds),
        denied=denied if denied <= _DENIED_MAX else None,
        compute_ns=_compute(file, base, abi.LedgerDevice.COMPUTE),
    )


def _slot_byte_seconds(file: bytes, base: int, device: int, now: int) -> float | None:
    used = _bytes(file, base, abi.Slot.USED, device)
    past = _seconds(file, base, abi.Slot.BYTE_SECONDS, device)
    if used is None or past is None:
        return None
    changed = number(file, base, abi.Slot.CHANGED, device)
    return past + (used * max(0, now - changed) / 1e9 if used and changed else 0.0)


def _sum(numbers: Iterable[float | None]) -> float | None:
    """Exact for integers. None where one is not known: the others alone would be too few."""
    total: float = 0
    for one in numbers:
        if one is None:
            return None
        total += one
    return total


def _locked_slots(descriptor: int) -> set[int]:
    """The slots whose first byte somebody holds, whatever the file says of them."""
    first, size = abi.Ledger.SLOTS.offset, abi.Slot.RECORD_SIZE
    found: set[int] = set()
    ranges = [(first, first + abi.SLOTS_MAX * size)]
    while ranges:
        start, end = ranges.pop()
        lock = _any_lock(descriptor, start, end) if start < end else None
        if lock is None:
            continue
        begin, stop = max(lock[0], start), min(lock[1], end)
        # Nobody but a tenant at play locks more than one byte; what it covers counts as held.
        found.update(range(-(-(begin - first) // size), -(-(stop - first) // size)))
        ranges += [(start, begin), (stop, end)]
    return found


def _any_lock(descriptor: int, start: int, end: int) -> tuple[int, int] | None:
    """Some lock in [start, end), as [start, end); F_OFD_GETLK gives any one, not the first."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, end - start, 0)
    kind, _, begin, length, _ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    if kind == fcntl.F_UNLCK:
        return None
    return begin, begin + length if length else end  # a length of 0 reaches to the end of the file


def _bytes(file: bytes, base: int, field: abi.Field, index: int) -> Bytes | None:
    value = number(file, base, field, index)
    return Bytes(value) if value <= _BYTES_MAX else None


def _compute(file: bytes, base: int, field: abi.Field) -> int | None:
    value = number(file, base, field)
    return value if value <= _COMPUTE_NS_MAX else None


def _seconds(file: bytes, base: int, field: abi.Field, index: int) -> float | None:
    (value,) = struct.unpack_from(field.code, file, base + field.offset + index * field.size)
    return float(value) if 0 <= value <= _BYTE_SECONDS_MAX else None  # a NaN fails both

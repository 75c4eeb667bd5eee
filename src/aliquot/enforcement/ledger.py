"""The ledger: what a tenant has, in its own words.

Its processes write it, so nothing in it is believed further than it can be checked: sizes and
counts are fixed by the layout, every number is clamped, and who is alive is asked of the kernel
(the lock on the slot's first byte), not of the file. It is read with read(2): a mapping would
let a tenant that truncates the file end the reader with SIGBUS.
"""

import fcntl
import math
import os
import struct
import time
from pathlib import Path

from aliquot.enforcement import abi
from aliquot.enforcement.files import put, unwritable, write_whole
from aliquot.model import Bytes, Ledger, LedgerDevice, LedgerSlot

_BYTES_MAX = 1 << 50
"""1 PiB: more than any card has; larger numbers are nonsense."""
_BYTE_SECONDS_MAX = 1e24
_COUNT_MAX = (1 << 63) - 1
_PID_MAX = (1 << 31) - 1
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
    """The ledger at this moment; None where it is missing or may not be read.

    ``devices`` is how many the share has, where the caller knows: the file's own count is its
    tenant's word.

    Bytes in use are those of live processes. Byte-seconds run up to now, also for a process that
    died: when it did is not known, so its bytes count until its slot is cleared or the share is
    released. So the last read before a release is the lease's final account. Nothing is changed.
    Numbers that cannot be are clamped; nothing in the file makes this raise.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        file = os.pread(descriptor, abi.Ledger.RECORD_SIZE, 0)
        file += bytes(abi.Ledger.RECORD_SIZE - len(file))
        count = (
            devices if devices is not None else _whole(file, 0, abi.Ledger.DEVICE_COUNT, most=abi.DEVICES_MAX)
        )
        now = time.monotonic_ns()
        alive = _locked_slots(descriptor)
        slots, integrals = [], [0.0] * count
        for index in range(abi.SLOTS_MAX):
            base = abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE
            if index not in alive and not any(file[base : base + abi.Slot.RECORD_SIZE]):
                continue
            slot = _slot(file, base, count, alive=index in alive)
            if slot.alive or slot.pid or any(slot.used):
                slots.append(slot)
                for device in range(count):
                    integrals[device] += _slot_byte_seconds(file, base, device, now)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    shares = tuple(_device(file, device, slots, integrals[device]) for device in range(count))
    return Ledger(devices=shares, slots=tuple(slots))


def _slot(file: bytes, base: int, devices: int, *, alive: bool) -> LedgerSlot:
    return LedgerSlot(
        pid=_whole(file, base, abi.Slot.PID, most=_PID_MAX),
        start_time=_whole(file, base, abi.Slot.START_TIME, most=_COUNT_MAX),
        pid_namespace=_whole(file, base, abi.Slot.PID_NAMESPACE, most=_COUNT_MAX),
        alive=alive,
        used=tuple(_bytes(file, base, abi.Slot.USED, device) for device in range(devices)),
    )


def _slot_byte_seconds(file: bytes, base: int, device: int, now: int) -> float:
    used = _bytes(file, base, abi.Slot.USED, device)
    changed = _whole(file, base, abi.Slot.CHANGED, device, most=_COUNT_MAX)
    running = used * max(0, now - changed) / 1e9 if used and changed else 0.0
    return _seconds(file, base, abi.Slot.BYTE_SECONDS, device) + running


def _device(file: bytes, device: int, slots: list[LedgerSlot], integral: float) -> LedgerDevice:
    base = abi.Ledger.DEVICES.offset + device * abi.LedgerDevice.RECORD_SIZE
    used = sum(slot.used[device] for slot in slots if slot.alive)
    return LedgerDevice(
        used=Bytes(min(used, _BYTES_MAX)),
        peak=_bytes(file, base, abi.LedgerDevice.PEAK, 0),
        byte_seconds=min(_seconds(file, base, abi.LedgerDevice.RETIRED, 0) + integral, _BYTE_SECONDS_MAX),
        denied=_whole(file, base, abi.LedgerDevice.DENIED, most=_COUNT_MAX),
    )


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


def _whole(file: bytes, base: int, field: abi.Field, index: int = 0, *, most: int) -> int:
    (value,) = struct.unpack_from(field.code, file, base + field.offset + index * field.size)
    return min(int(value), most)


def _bytes(file: bytes, base: int, field: abi.Field, index: int) -> Bytes:
    return Bytes(_whole(file, base, field, index, most=_BYTES_MAX))


def _seconds(file: bytes, base: int, field: abi.Field, index: int) -> float:
    (value,) = struct.unpack_from(field.code, file, base + field.offset + index * field.size)
    return min(value, _BYTE_SECONDS_MAX) if math.isfinite(value) and value > 0 else 0.0

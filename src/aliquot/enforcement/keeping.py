"""What a share's keeper writes for its governors: that it is there, and what it sees from outside.

That it is there stands in the limits, which a tenant cannot write: a governor that finds it stale holds
every policy as a cap. What it sees of a process (its pid in our namespace, bytes that the driver has for
it and that nobody charged) stands in the ledger, beside the process's slot; the process takes it from there.
"""

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from aliquot.enforcement import abi
from aliquot.enforcement.files import number, word
from aliquot.enforcement.limits import open_limits
from aliquot.model import Bytes

_FNV_BASIS, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


class Keeping(Enum):
    """Whether a share's keeper is at work."""

    KEPT = "kept"
    GONE = "gone"
    """It has not looked for ten seconds: `fair` and `priority` act as `cap`."""
    NEVER = "never"
    """None is expected: the limits are of an Aliquot without keepers."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the limits say of the keeper. Times are of CLOCK_MONOTONIC, in nanoseconds."""

    looked: int
    """Last; the making of the share counts as a look. 0: none is expected."""
    began: int
    """0: none did yet."""

    def keeping(self, now: int) -> Keeping:
        """The governor's own rule (share_keeper_gone of native/governor/share.c)."""
        if self.looked == 0:
            return Keeping.NEVER
        patience = abi.KEEPER_PATIENCE_MS * 1_000_000
        return Keeping.GONE if now > self.looked + patience else Keeping.KEPT


def read_kept(limits: Path) -> Kept | None:
    """None where the limits cannot be read."""
    try:
        file = limits.read_bytes()
    except OSError:
        return None
    if len(file) < abi.Limits.RECORD_SIZE or not file.startswith(abi.LIMITS_MAGIC):
        return None
    base = abi.Limits.DEVICES.offset
    return Kept(number(file, base, abi.LimitsDevice.KEPT), number(file, base, abi.LimitsDevice.KEEPER))


class Beats:
    """The limits of one share, held open to say that its keeper looks. Raises OSError if there are none."""

    def __init__(self, limits: Path) -> None:
        self._descriptor = open_limits(limits)

    def beat(self, at: int, *, began: int) -> None:
        for index in range(abi.DEVICES_MAX):
            base = abi.Limits.DEVICES.offset + index * abi.LimitsDevice.RECORD_SIZE
            both = word(at) + word(began)  # the two lie together
            os.pwrite(self._descriptor, both, base + abi.LimitsDevice.KEPT.offset)

    @property
    def removed(self) -> bool:
        """Whether the share is gone: its limits have no name any more."""
        return os.fstat(self._descriptor).st_nlink == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def process_number(pid: int, start_time: int, pid_namespace: int) -> int:
    """By which a process sits on the page of its first device; one more on each further one.

    As slots_own_number of native/governor/slots.c makes it.
    """
    return _fnv(word(pid) + word(start_time) + word(pid_namespace))


def lease_number(lease: str) -> int:
    """By which all processes of a lease sit on a page: share_lease_number of native/governor/share.c."""
    return _fnv(lease.encode()[: abi.LEASE_BYTES])


def _fnv(text: bytes) -> int:
    """FNV-1a of 64 bits, never 0."""
    value = _FNV_BASIS
    for byte in text:
        value = (value ^ byte) * _FNV_PRIME & _MASK
    return value or 1


def process_numbers(ledger: Path, *, device: int) -> frozenset[int] | None:
    """Of all processes that a ledger names, on the page of ``device``. None where they cannot be known: of a
    ledger that cannot be read, or is of governors that drew their numbers."""
    try:
        with ledger.open("rb") as file:
            if os.fstat(file.fileno()).st_size < abi.Ledger.RECORD_SIZE:
                return None
            content = file.read(abi.Ledger.SLOTS.offset + abi.SLOTS_MAX * abi.Slot.RECORD_SIZE)
    except OSError:
        return None
    found = set()
    for index in range(abi.SLOTS_MAX):
        base = abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE
        if base + abi.Slot.RECORD_SIZE > len(content):
            break
        pid = number(content, base, abi.Slot.PID)
        if pid:
            start = number(content, base, abi.Slot.START_TIME)
            found.add(
                process_number(pid, start, number(content, base, abi.Slot.PID_NAMESPACE)) + device & _MASK
            )
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Outside:
    """What a keeper says of the process in one slot."""

    slot: int
    start_time: int
    """As the slot has it: of a process that began at another time it says nothing."""
    pid: int
    """In the keeper's pid namespace."""
    beyond: tuple[Bytes, ...]
    """What the driver has for it beyond what it is charged otherwise, by device of the share."""


def tell_outside(ledger: Path, said: Outside) -> None:
    """Raises OSError where the ledger cannot be written."""
    descriptor = os.open(ledger, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        base = abi.Ledger.OUTSIDES.offset + said.slot * abi.Outside.RECORD_SIZE
        if os.fstat(descriptor).st_size < base + abi.Outside.RECORD_SIZE:
            return  # of an Aliquot without keepers, or cut short: nobody reads it there
        bytes_ = b"".join(word(beyond) for beyond in said.beyond)
        os.pwrite(descriptor, bytes_, base + abi.Outside.BEYOND.offset)
        os.pwrite(descriptor, word(said.pid) + word(said.start_time), base + abi.Outside.PID.offset)
    finally:
        os.close(descriptor)

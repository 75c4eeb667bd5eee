"""The page of turns as its keepers look at it: what on it cannot be, and how it is put right.

Every tenant of a device writes the page, so each governor checks what it reads and nobody needs it to be
right (native/governor/turns.h). What is found here is what no governor of Aliquot writes.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aliquot.enforcement import abi
from aliquot.enforcement.files import number, word
from aliquot.enforcement.turns import empty_page

_MILLISECOND = 1_000_000
_SECOND = 1_000 * _MILLISECOND
_EARLY = 5 * _MILLISECOND
"""A moment that lies further than this after our look was not yet: the writer's clock is ours."""
_RECENT = _SECOND
"""A seat whose owner did not look for this long is free, whatever stands in it."""
_LONGEST_TURN = _SECOND
_LONGEST_WORK = 3600 * _SECOND
_SPARE = "where nothing is"
_NOBODYS = "is nobody's and not empty"
_FORGED = "and is none of its processes"
_NAMES = abi.Seat.RANK.offset
"""Its owner and its share lie before: its owner writes the rest all the time, and these never."""
_HIGHEST_RANK = 255
"""Of a share that is owed its floor (turns.c)."""
_SEAT_BITS = 0xFF


@dataclass(frozen=True, slots=True)
class Sitter:
    """A lease that has a share of the device, as its seats must say."""

    lease: str
    numbers: frozenset[int] | None
    """By which its processes sit; None where that is not known, as of older governors."""


@dataclass(frozen=True, slots=True)
class Nonsense:
    """One stretch of the page that holds what cannot be there."""

    at: int
    found: bytes
    """By which it is told; it may be longer."""
    wanted: bytes
    what: str
    """A clause."""
    victim: str | None = None
    """The lease whose seat it is; None where it is nobody's, or everybody's."""
    living: int | None = None
    """When who sits there last looked, where it is nonsense only of one who lives: the seat of a process that
    died a moment ago looks the same."""
    residue: bool = False
    """A repair may have left it: who writes into a seat that was taken from him learns so when he looks."""


def read_page(path: Path) -> bytes | None:
    """None where it is missing, cut short, or may not be read."""
    try:
        with path.open("rb", buffering=0) as file:
            page = file.read(abi.Turns.RECORD_SIZE)
    except OSError:
        return None
    return page if len(page) == abi.Turns.RECORD_SIZE else None


def nonsense_of(
    page: bytes, sitters: Mapping[int, Sitter], *, now: int | None, newer: bool = False
) -> tuple[Nonsense, ...]:
    """What on ``page`` no governor writes. ``sitters``: by the number of their lease; ``now``: of the
    device's clock, read after the page; None where it is not known, and times are not looked at. ``newer``:
    governors younger than us may be there, and use what is spare to us."""
    found = (
        *_head(page, now),
        *(one for seat in range(abi.SEATS_MAX) for one in _seat(page, seat, sitters, now)),
    )
    return tuple(one for one in found if not (newer and one.what.endswith(_SPARE)))


def strangers_on(page: bytes, sitters: Mapping[int, Sitter], *, now: int | None) -> bool:
    """Whether somebody sits there of a lease that is none of ``sitters``, or sat a moment ago."""
    bases = (abi.Turns.SEATS.offset + seat * abi.Seat.RECORD_SIZE for seat in range(abi.SEATS_MAX))
    return any(
        number(page, base, abi.Seat.OWNER) != 0
        and number(page, base, abi.Seat.SHARE) not in sitters
        and (now is None or number(page, base, abi.Seat.LOOKED) + 2 * _RECENT > now)
        for base in bases
    )


def repair(path: Path, nonsense: Nonsense) -> None:
    """Where what tells it still stands there: a governor may have written something right meanwhile.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if os.pread(descriptor, len(nonsense.found), nonsense.at) == nonsense.found:
            os.pwrite(descriptor, nonsense.wanted, nonsense.at)
    finally:
        os.close(descriptor)


def _head(page: bytes, now: int | None) -> Iterator[Nonsense]:
    right = empty_page()
    turn = abi.Turns.TURN.offset
    for begin, end, what in (
        (0, turn, "its head is not a page's"),
        (abi.Turns.PAD.offset, abi.Turns.SEATS.offset, f"something stands {_SPARE}"),
    ):
        if page[begin:end] != right[begin:end]:
            yield Nonsense(begin, page[begin:end], right[begin:end], what)
    value = number(page, 0, abi.Turns.TURN)
    until = value & ~_SEAT_BITS
    if value & _SEAT_BITS > abi.SEATS_MAX:
        yield Nonsense(
            turn, word(value), word(0), f"its turn is of seat {(value & _SEAT_BITS) - 1}, which there is not"
        )
    elif now is not None and until > now + _LONGEST_TURN + _EARLY:
        yield Nonsense(turn, word(value), word(0), "its turn lasts longer than any may")
    for field in (abi.Turns.WAITED, abi.Turns.HURRIED, abi.Turns.QUIET):
        moment = number(page, 0, field)
        if now is not None and moment > now + _EARLY:
            yield Nonsense(field.offset, word(moment), word(0), "somebody waited or worked in the future")


def _seat(page: bytes, seat: int, sitters: Mapping[int, Sitter], now: int | None) -> Iterator[Nonsense]:
    base = abi.Turns.SEATS.offset + seat * abi.Seat.RECORD_SIZE
    whole = page[base : base + abi.Seat.RECORD_SIZE]
    spare = abi.Seat.RESERVED.offset
    if any(whole[spare:]):
        # By itself: its owner writes the rest of the seat all the time, and this never.
        what = f"seat {seat} holds something {_SPARE}"
        yield Nonsense(
            base + spare, whole[spare:], bytes(len(whole) - spare), what, _victim(page, base, sitters)
        )
    what_else = _wrong(page, base, whole[:spare], sitters, now)
    if what_else is None:
        return
    residue, forged = what_else == _NOBODYS, what_else.endswith(_FORGED)
    yield Nonsense(
        base,
        whole[:spare] if residue else whole[:_NAMES],
        bytes(spare),
        f"seat {seat} {what_else}",
        _victim(page, base, sitters),
        living=number(page, base, abi.Seat.LOOKED) if forged else None,
        residue=residue,
    )


def _wrong(
    page: bytes, base: int, whole: bytes, sitters: Mapping[int, Sitter], now: int | None
) -> str | None:
    """What is wrong with the seat at ``base``; None where nothing is, as far as can be told."""
    seat = abi.Seat
    owner, looked = number(page, base, seat.OWNER), number(page, base, seat.LOOKED)
    if owner == 0:
        # Nobody ever frees a seat, so that one is either new or was emptied by somebody else.
        return _NOBODYS if any(_without_wake(whole)) else None
    if now is None:
        return None
    if looked > now + _EARLY:
        return "looks on in the future"
    if looked == 0 or looked + _RECENT < now:
        return None  # free, or being taken
    return _says_wrong(page, base, owner, sitters, now)


def _says_wrong(page: bytes, base: int, owner: int, sitters: Mapping[int, Sitter], now: int) -> str | None:
    seat = abi.Seat
    weight, rank = number(page, base, seat.WEIGHT), number(page, base, seat.RANK)
    waits, horizon = number(page, base, seat.WAITS), number(page, base, seat.HORIZON)
    if not 0 < weight <= 1000 or rank > _HIGHEST_RANK:
        return f"claims a weight of {weight} and a rank of {rank}"
    if waits > now + _EARLY or horizon > now + _LONGEST_WORK:
        return "waits or works in a future that is too far"
    sitter = sitters.get(number(page, base, seat.SHARE))
    if sitter is not None and sitter.numbers is not None and owner not in sitter.numbers:
        return f"claims to be of lease {sitter.lease} {_FORGED}"
    return None


def _without_wake(whole: bytes) -> bytes:
    """Neighbours count a seat's wake up, also after it was emptied."""
    at = abi.Seat.WAKE.offset
    return whole[:at] + whole[at + 4 :]


def _victim(page: bytes, base: int, sitters: Mapping[int, Sitter]) -> str | None:
    owner, share = number(page, base, abi.Seat.OWNER), number(page, base, abi.Seat.SHARE)
    for sitter in sitters.values():
        if sitter.numbers is not None and owner in sitter.numbers:
            return sitter.lease
    known = sitters.get(share)
    return known.lease if known is not None else None

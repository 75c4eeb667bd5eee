"""A page of turns as keepers look at it: what governors write is right, what else stands there is found."""

from pathlib import Path

import pytest

from aliquot.enforcement import (
    Sitter,
    abi,
    create_turns,
    lease_number,
    nonsense_of,
    read_page,
    repair,
    strangers_on,
)
from aliquot.enforcement.files import put

NOW = 1_000_000_000_000
SECOND = 1_000_000_000
SEAT = abi.Seat
LEASE = lease_number("k7wpq")
SITTERS = {LEASE: Sitter("k7wpq", frozenset({77})), lease_number("older"): Sitter("older", None)}


@pytest.fixture
def page(tmp_path: Path) -> bytearray:
    """Two seats of two leases, and one that a dead process left, as governors write them."""
    create_turns(tmp_path / "page")
    made = bytearray((tmp_path / "page").read_bytes())
    put(made, 0, abi.Turns.TURN, (NOW + SECOND // 100 & ~0xFF) | 1)
    put(made, 0, abi.Turns.WAITED, NOW)
    _sit(made, 0, owner=77, share=LEASE, looked=NOW, weight=300, horizon=NOW + 10 * SECOND, wake=5)
    _sit(made, 1, owner=5, share=lease_number("older"), looked=NOW - 5, weight=700, rank=255, waits=NOW - 9)
    _sit(made, 2, owner=9, share=123, looked=NOW - 2 * SECOND, weight=4000)
    _sit(made, 3, wake=1)
    return made


def _sit(page: bytearray, seat: int, **values: int) -> None:
    for name, value in values.items():
        put(page, abi.Turns.SEATS.offset + seat * SEAT.RECORD_SIZE, getattr(SEAT, name.upper()), value)


def _found(page: bytearray, now: int | None = NOW) -> list[tuple[str, str | None]]:
    return [(one.what, one.victim) for one in nonsense_of(bytes(page), SITTERS, now=now)]


def test_what_governors_write_is_no_nonsense(page: bytearray) -> None:
    assert _found(page) == []
    assert _found(page, None) == []


@pytest.mark.parametrize(
    ("seat", "values", "what", "victim"),
    [
        (0, {"looked": NOW + SECOND}, "seat 0 looks on in the future", "k7wpq"),
        (0, {"weight": 0}, "seat 0 claims a weight of 0 and a rank of 0", "k7wpq"),
        (0, {"weight": 1001}, "seat 0 claims a weight of 1001 and a rank of 0", "k7wpq"),
        (1, {"rank": 256}, "seat 1 claims a weight of 700 and a rank of 256", "older"),
        (1, {"waits": NOW + SECOND}, "seat 1 waits or works in a future that is too far", "older"),
        (0, {"horizon": NOW + 4000 * SECOND}, "seat 0 waits or works in a future that is too far", "k7wpq"),
        (0, {"owner": 78}, "seat 0 claims to be of lease k7wpq and is none of its processes", "k7wpq"),
        (0, {"owner": 0}, "seat 0 is nobody's and not empty", "k7wpq"),
        (9, {"charged": 1}, "seat 9 is nobody's and not empty", None),
    ],
)
def test_what_no_governor_writes_is_found(
    page: bytearray, seat: int, values: dict[str, int], what: str, victim: str | None
) -> None:
    _sit(page, seat, **values)
    assert _found(page) == [(what, victim)]


def test_what_lies_where_nothing_is_belongs_to_nobody(page: bytearray) -> None:
    page[abi.Turns.SEATS.offset + SEAT.RESERVED.offset + 3] = 1
    page[abi.Turns.PAD.offset] = 1
    page[0] = 0
    assert _found(page, None) == [
        ("its head is not a page's", None),
        ("something stands where nothing is", None),
        ("seat 0 holds something where nothing is", "k7wpq"),
    ]


@pytest.mark.parametrize(
    ("turn", "what"),
    [
        (NOW & ~0xFF | 200, "its turn is of seat 199, which there is not"),
        ((1 << 64) - 1 & ~0xFF, "its turn lasts longer than any may"),
        (NOW + 2 * SECOND & ~0xFF | 1, "its turn lasts longer than any may"),
    ],
)
def test_a_turn_that_cannot_be_is_found(page: bytearray, turn: int, what: str) -> None:
    put(page, 0, abi.Turns.TURN, turn)
    assert _found(page) == [(what, None)]


@pytest.mark.parametrize("field", [abi.Turns.WAITED, abi.Turns.HURRIED, abi.Turns.QUIET])
def test_a_moment_in_the_future_is_found(page: bytearray, field: abi.Field) -> None:
    put(page, 0, field, NOW + SECOND)
    assert _found(page) == [("somebody waited or worked in the future", None)]


def test_who_is_of_a_lease_that_may_just_have_ended_is_a_stranger_and_no_nonsense(page: bytearray) -> None:
    assert not strangers_on(bytes(page), SITTERS, now=NOW + SECOND)
    _sit(page, 0, share=1)
    assert _found(page) == []
    assert strangers_on(bytes(page), SITTERS, now=NOW + SECOND)
    assert not strangers_on(bytes(page), SITTERS, now=NOW + 5 * SECOND), "he is long gone"


def test_a_seat_of_no_process_is_nonsense_only_of_one_who_lives(page: bytearray) -> None:
    """A process that died a moment ago has left its slot, and its seat still looks taken."""
    _sit(page, 0, owner=78)
    (found,) = nonsense_of(bytes(page), SITTERS, now=NOW)
    assert found.living == NOW
    _sit(page, 0, owner=77, weight=0)
    (found,) = nonsense_of(bytes(page), SITTERS, now=NOW)
    assert found.living is None


def test_governors_that_are_newer_may_use_what_is_spare(page: bytearray) -> None:
    page[abi.Turns.SEATS.offset + SEAT.RESERVED.offset] = 1
    page[abi.Turns.PAD.offset] = 1
    assert len(nonsense_of(bytes(page), SITTERS, now=NOW)) == 2
    assert nonsense_of(bytes(page), SITTERS, now=NOW, newer=True) == ()


def test_without_the_device_s_clock_times_are_not_judged(page: bytearray) -> None:
    put(page, 0, abi.Turns.TURN, (1 << 64) - 1 & ~0xFF | 1)
    _sit(page, 0, looked=NOW + SECOND, share=1)
    assert _found(page, None) == []


def test_a_repair_makes_it_right_and_spares_what_was_written_meanwhile(
    page: bytearray, tmp_path: Path
) -> None:
    path = tmp_path / "page"
    _sit(page, 0, looked=NOW + SECOND)
    _sit(page, 9, charged=1)
    page[0] = 0
    path.write_bytes(page)
    found = nonsense_of(bytes(page), SITTERS, now=NOW)
    _sit(page, 0, charged=7)  # its owner wrote on
    _sit(page, 9, owner=4)  # somebody took it
    path.write_bytes(page)
    for one in found:
        repair(path, one)
    repaired = read_page(path)
    assert repaired is not None
    assert nonsense_of(repaired, SITTERS, now=NOW) == ()
    assert not any(repaired[abi.Turns.SEATS.offset :][: SEAT.RECORD_SIZE]), (
        "told by its owner, who stays the same"
    )
    assert repaired[abi.Turns.SEATS.offset + 9 * SEAT.RECORD_SIZE :][:8] == (4).to_bytes(8, "little")


@pytest.mark.parametrize("size", [0, 64, abi.Turns.RECORD_SIZE - 1])
def test_a_page_that_is_cut_short_is_none(tmp_path: Path, size: int) -> None:
    (tmp_path / "page").write_bytes(bytes(size))
    assert read_page(tmp_path / "page") is None
    assert read_page(tmp_path / "nothing") is None

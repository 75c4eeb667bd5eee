"""What a keeper writes for governors, and what it says of itself."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.native.governor.shares import UUIDS, a_lease

from aliquot.enforcement import (
    Beats,
    Keeping,
    Kept,
    Outside,
    abi,
    create_ledger,
    lease_number,
    process_number,
    process_numbers,
    read_kept,
    read_ledger,
    tell_outside,
    write_limits,
)
from aliquot.model import GIB, Bytes, LeaseId, LedgerSlot, Policy

LEASE = a_lease({UUIDS[0]: GIB, UUIDS[3]: None})
SECOND = 1_000_000_000


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    write_limits(tmp_path / "limits", lease=LEASE, gpus={})
    return tmp_path / "limits"


@pytest.mark.parametrize(
    ("kept", "now", "keeping"),
    [
        (Kept(0, 0), 100 * SECOND, Keeping.NEVER),
        (Kept(50 * SECOND, 0), 60 * SECOND, Keeping.KEPT),
        (Kept(50 * SECOND, 7), 60 * SECOND + 1, Keeping.GONE),
        (Kept(50 * SECOND, 7), 40 * SECOND, Keeping.KEPT),
    ],
)
def test_ten_seconds_without_a_look_are_gone(kept: Kept, now: int, keeping: Keeping) -> None:
    assert kept.keeping(now) is keeping


def test_limits_as_they_are_made_expect_nobody(limits: Path) -> None:
    assert read_kept(limits) == Kept(0, 0)


def test_a_beat_survives_a_change_of_the_limits_and_changes_nothing_else(limits: Path) -> None:
    before = limits.read_bytes()
    limits.unlink()
    write_limits(limits, lease=LEASE, gpus={}, keeper_from=7)
    assert read_kept(limits) == Kept(7, 0)
    with Beats(limits) as beats:
        beats.beat(9, began=8)
        write_limits(limits, lease=replace(LEASE, policy=Policy.CAP), gpus={}, paused=True)
        assert read_kept(limits) == Kept(9, 8)
        write_limits(limits, lease=LEASE, gpus={})
        beats.beat(0, began=0)
        after = bytearray(limits.read_bytes())
        sequence = slice(abi.Limits.SEQUENCE.offset, abi.Limits.SEQUENCE.offset + 4)
        after[sequence] = before[sequence]
        assert after == before
        limits.unlink()
        assert beats.removed
    assert read_kept(limits) is None


def test_nobody_but_us_may_write_the_beat(limits: Path) -> None:
    with Beats(limits):
        assert limits.stat().st_mode & 0o777 == 0o444


def test_what_is_said_of_a_slot_is_read_where_it_is_of_the_same_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=2)
    _slot(path, 3, pid=7, start=55)
    tell_outside(path, Outside(3, 55, 4711, (Bytes(5), Bytes(6))))
    assert [(slot.index, slot.outer_pid) for slot in _slots(path)] == [(3, 4711)]
    _slot(path, 3, pid=7, start=56)
    assert [(slot.index, slot.outer_pid) for slot in _slots(path)] == [(3, None)]


def test_a_ledger_of_before_there_were_keepers_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=1)
    _slot(path, 0, pid=7, start=55)
    content = path.read_bytes()[: abi.Ledger.OUTSIDES.offset]
    size = abi.Ledger.SIZE.offset
    path.write_bytes(content[:size] + len(content).to_bytes(4, "little") + content[size + 4 :])
    before = path.read_bytes()
    tell_outside(path, Outside(0, 55, 4711, (Bytes(5),)))
    assert path.read_bytes() == before
    assert [slot.outer_pid for slot in _slots(path)] == [None]
    assert process_numbers(path, device=0) is None, "its governors drew their numbers"


def test_the_numbers_are_those_of_the_slots_and_differ_by_device(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    create_ledger(path, devices=2)
    assert process_numbers(path, device=0) == frozenset()
    _slot(path, 3, pid=7, start=55)
    assert process_numbers(path, device=0) == frozenset([process_number(7, 55, 0)])
    assert process_numbers(path, device=1) == frozenset([process_number(7, 55, 0) + 1])
    assert process_numbers(tmp_path / "none", device=0) is None


def test_leases_have_numbers_of_their_own() -> None:
    assert lease_number(LeaseId("k7wpq")) != lease_number(LeaseId("k7wpr"))


def _slot(path: Path, index: int, *, pid: int, start: int) -> None:
    with path.open("r+b") as file:
        file.seek(abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE)
        file.write(pid.to_bytes(8, "little") + start.to_bytes(8, "little"))


def _slots(path: Path) -> tuple[LedgerSlot, ...]:
    ledger = read_ledger(path)
    assert ledger is not None
    return ledger.slots

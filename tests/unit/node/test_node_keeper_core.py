"""What a keeper decides, without a clock, a file or a process."""

from dataclasses import replace

import pytest

from aliquot.enforcement import Nonsense
from aliquot.model import MIB, Bytes, GpuUuid, LeaseId, LedgerSlot
from aliquot.node.keeper_core import (
    REPAIRED,
    SCRIBBLED,
    Beat,
    Command,
    End,
    Event,
    Flag,
    Intruder,
    Keeper,
    LookAtLease,
    LookAtPages,
    LookAtProcesses,
    Reap,
    Repair,
    SawLease,
    SawPage,
    SawProcesses,
    Tell,
    Woke,
    begin,
    step,
)

SECOND = 1_000_000_000
GPU = GpuUuid("GPU-a")
A, B, C = LeaseId("aaaaa"), LeaseId("bbbbb"), LeaseId("ccccc")
SLOT = LedgerSlot(pid=7, start_time=55, pid_namespace=9, alive=True, used=(Bytes(100 * MIB),), index=3)


def after(*events: Event, keeper: Keeper | None = None) -> tuple[Keeper, tuple[Command, ...]]:
    """The commands are those of the last event."""
    now = keeper if keeper is not None else begin(0)
    commands: tuple[Command, ...] = ()
    for event in events:
        now, commands = step(now, event)
    return now, commands


# ---- when it does what ----


def test_it_says_that_it_is_there_at_every_look_before_anything_that_may_take_long() -> None:
    keeper = begin(0)
    for second in range(30):
        keeper, commands = step(keeper, Woke(second * SECOND))
        assert commands[0] == Beat(second * SECOND)
        assert LookAtPages() in commands
        assert (LookAtProcesses() in commands) == (LookAtLease() in commands) == (second % 5 == 0)


@pytest.mark.parametrize(
    ("event", "commands"),
    [
        (SawLease(live=True), ()),
        (SawLease(live=True, over=True), (Reap(),)),
        (SawLease(live=False), (End(),)),
    ],
)
def test_it_ends_with_its_lease(event: SawLease, commands: tuple[Command, ...]) -> None:
    assert after(event)[1] == commands


# ---- what the driver has beyond what is charged ----


def seen(has: int, slot: LedgerSlot = SLOT, **more: object) -> SawProcesses:
    event = SawProcesses((slot,), {3: 4711}, {(4711, 0): Bytes(has)}, (Bytes(1024 * MIB),))
    return replace(event, **more)  # type: ignore[arg-type]


def beyond(commands: tuple[Command, ...]) -> list[int]:
    return [command.said.beyond[0] for command in commands if isinstance(command, Tell)]


def test_a_process_is_named_at_once_and_a_difference_is_told_at_the_second_look() -> None:
    keeper, commands = after(seen(130 * MIB))
    (tell,) = commands
    assert isinstance(tell, Tell)
    assert (tell.said.slot, tell.said.start_time, tell.said.pid) == (3, 55, 4711)
    assert beyond(commands) == [0]
    keeper, commands = after(seen(130 * MIB), keeper=keeper)
    assert beyond(commands) == [30 * MIB]
    # It is charged now, so the same difference is there no more, and nothing new is told.
    charged = replace(SLOT, used=(Bytes(130 * MIB),), taken=(Bytes(30 * MIB),))
    keeper, commands = after(seen(130 * MIB, charged), seen(130 * MIB, charged), keeper=keeper)
    assert commands == ()
    # The driver gave some of it back.
    keeper, commands = after(seen(110 * MIB, charged), seen(110 * MIB, charged), keeper=keeper)
    assert beyond(commands) == [10 * MIB]


def test_an_allocation_under_way_is_no_difference() -> None:
    larger = replace(SLOT, used=(Bytes(600 * MIB),))
    keeper, _ = after(seen(100 * MIB), seen(100 * MIB, larger), seen(600 * MIB, larger))
    keeper, commands = after(seen(600 * MIB), seen(100 * MIB), keeper=keeper)  # freed, and still listed
    assert beyond(commands) == []


@pytest.mark.parametrize(
    ("has", "told"),
    [(101 * MIB, 0), (60 * MIB, 0), (400 * MIB, 300 * MIB), (9_000 * MIB, 512 * MIB)],
)
def test_a_rounding_is_nothing_and_nonsense_takes_half_of_the_share_at_most(has: int, told: int) -> None:
    first, at_once = after(seen(has))
    _, commands = after(seen(has), keeper=first)
    assert (beyond(at_once) + beyond(commands))[-1] == told


def test_where_the_driver_does_not_say_or_memory_is_shared_nothing_new_is_told() -> None:
    for event in (seen(0, memory={}), seen(0, outer={}), seen(900 * MIB, exports=True)):
        _, commands = after(event, event)
        assert beyond(commands) == []


def test_another_process_in_the_slot_begins_anew() -> None:
    keeper, _ = after(seen(130 * MIB), seen(130 * MIB))
    other = replace(SLOT, start_time=56)
    keeper, commands = after(seen(130 * MIB, other), keeper=keeper)
    assert beyond(commands) == [0]


# ---- nonsense on a page ----


def nonsense(*victims: LeaseId | None) -> tuple[Nonsense, ...]:
    return tuple(Nonsense(64, b"x", b"y", "something", victim) for victim in victims)


def page(
    victims: tuple[LeaseId | None, ...], *sitting: LeaseId, intruders: tuple[Intruder, ...] = ()
) -> SawPage:
    return SawPage(GPU, nonsense(*victims), intruders, frozenset(sitting))


def flags(commands: tuple[Command, ...]) -> list[tuple[LeaseId | None, str]]:
    return [(command.lease, command.what) for command in commands if isinstance(command, Flag)]


def test_all_that_is_found_is_repaired() -> None:
    event = page((A, None), A, B, C)
    assert [command for command in after(event)[1] if isinstance(command, Repair)] == [
        Repair(GPU, found) for found in event.nonsense
    ]
    assert after(page((), A, B))[1] == ()


def test_who_has_the_page_in_his_hands_is_named_whoever_was_hurt() -> None:
    intruder = Intruder(99, B, "has it open for writing")
    _, commands = after(page((B,), A, B, C, intruders=(intruder,)))
    assert flags(commands) == [(B, SCRIBBLED)]
    assert "process 99 has it open for writing" in str(commands)


def test_of_two_the_one_who_was_not_hurt_is_named() -> None:
    assert flags(after(page((A, None), A, B))[1]) == [(B, SCRIBBLED)]


def test_who_is_alone_on_the_device_is_named() -> None:
    assert flags(after(page((None,), A))[1]) == [(A, SCRIBBLED)]


def test_where_several_are_left_it_is_said_of_whom_and_time_tells() -> None:
    keeper, commands = after(page((A,), A, B, C))
    assert flags(commands) == [(None, REPAIRED)]
    assert "one of bbbbb, ccccc" in str(commands)
    _, commands = after(page((B,), A, B, C), keeper=keeper)
    assert flags(commands) == [(C, SCRIBBLED)]


def test_who_went_since_the_last_look_may_have_been_the_one() -> None:
    keeper, commands = after(page((), A, B), page((None,), A))
    assert flags(commands) == [(None, REPAIRED)]
    _, commands = after(page((None,), A), keeper=keeper)
    assert flags(commands) == [(A, SCRIBBLED)], "twice, and there was nobody else"


def test_where_a_stranger_was_nobody_is_named() -> None:
    event = replace(page((A,), A, B), strangers=True)
    assert flags(after(event)[1]) == [(None, REPAIRED)]


def test_what_a_repair_may_have_left_is_put_right_and_held_against_nobody() -> None:
    left = replace(nonsense(None)[0], residue=True)
    event = replace(page((), A), nonsense=(left,))
    assert after(event)[1] == (Repair(GPU, left),)


def test_a_seat_of_no_process_counts_once_its_sitter_is_seen_to_live() -> None:
    first, later = (replace(nonsense(A)[0], living=looked) for looked in (1, 2))
    keeper, commands = after(replace(page((), A, B), nonsense=(first,)))
    assert commands == ()
    assert after(replace(page((), A, B), nonsense=(first,)), keeper=keeper)[1] == (), "it looked no more"
    _, commands = after(replace(page((), A, B), nonsense=(later,)), keeper=keeper)
    assert commands[0] == Repair(GPU, later)
    assert flags(commands) == [(B, SCRIBBLED)]


def test_where_all_are_hurt_nobody_is_named() -> None:
    _, commands = after(page((A, B), A, B))
    assert flags(commands) == [(None, REPAIRED)]
    assert "not known" in str(commands)

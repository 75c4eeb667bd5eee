"""The life of a lease: which steps there are, and what is to be done after each."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from aliquot.lease import Book, Command, IllegalStepError, StaleDecisionError, step
from aliquot.lease.lifecycle import BootSet, Ended, Event, ExpirySet, Held, HolderSet, ReleaseBegun
from aliquot.model import (
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    ProcessHolder,
    Reason,
    Share,
    Thousandths,
)

WORKER = ProcessHolder(pid=7, start_time=70, pid_namespace=1)
CHILD = ProcessHolder(pid=8, start_time=80, pid_namespace=1)

PREPARING = Lease(
    id=LeaseId("kx7f2"),
    state=LeaseState.PREPARING,
    ask="1/4",
    shares=(Share(GpuUuid("GPU-a"), None, Thousandths(250)),),
    policy=Policy.FAIR,
    isolation=Isolation.SOFT,
    holder=WORKER,
    user="ann",
    command=None,
    created_at=1,
    worker=WORKER,
)
IN_STATE = {
    LeaseState.PREPARING: PREPARING,
    LeaseState.HELD: replace(PREPARING, state=LeaseState.HELD, held_at=2, worker=None),
    LeaseState.RELEASING: replace(PREPARING, state=LeaseState.RELEASING, held_at=2),
    LeaseState.ENDED: replace(
        PREPARING, state=LeaseState.ENDED, held_at=2, ended_at=3, end_why="expired", worker=None
    ),
}
EVENTS: dict[str, Event] = {
    "held": Held(at=9, holder=CHILD),
    "release": ReleaseBegun(at=9, worker=WORKER, why="expired"),
    "end": Ended(at=9, why="released"),
    "holder": HolderSet(at=9, holder=CHILD),
    "expiry": ExpirySet(at=9, expires_at=99),
    "boot": BootSet(at=9, boot_id="b"),
}
ALLOWED = {
    LeaseState.PREPARING: {"held", "release", "holder", "expiry", "boot"},
    LeaseState.HELD: {"release", "holder", "expiry", "boot"},
    LeaseState.RELEASING: {"release", "end"},
    LeaseState.ENDED: set(),
}


def test_a_whole_life_asks_for_each_effect_once_and_in_order() -> None:
    commands: list[Command] = []
    lease = PREPARING
    for event in (EVENTS["held"], EVENTS["release"], EVENTS["end"]):
        lease, wanted = step(lease, event)
        commands.extend(wanted)
    assert commands == [
        Command.START_HOLDER,
        Command.STOP_NEW_WORK,
        Command.SETTLE,
        Command.REMOVE_FILES,
    ]
    assert (lease.state, lease.held_at, lease.ended_at) == (LeaseState.ENDED, 9, 9)
    assert (lease.end_why, lease.worker) == ("released", None)


@pytest.mark.parametrize("state", LeaseState)
@pytest.mark.parametrize("name", EVENTS)
def test_only_the_listed_steps_are_taken(state: LeaseState, name: str) -> None:
    lease = IN_STATE[state]
    if name in ALLOWED[state]:
        after, _ = step(lease, EVENTS[name])
        assert list(LeaseState).index(after.state) >= list(LeaseState).index(state)
    else:
        with pytest.raises(IllegalStepError) as refused:
            step(lease, EVENTS[name])
        assert refused.value.reason is (Reason.LEASE_ENDED if state is LeaseState.ENDED else Reason.FAILED)
        assert "kx7f2" in refused.value.message


def test_a_lease_whose_preparation_failed_is_released_without_ever_being_held() -> None:
    after, wanted = step(PREPARING, EVENTS["release"])
    assert after.held_at is None
    assert Command.SETTLE in wanted


def test_held_without_a_holder_keeps_the_one_it_was_drafted_with() -> None:
    assert step(PREPARING, Held(at=2))[0].holder == WORKER
    assert step(PREPARING, Held(at=2, holder=NobodyHolder()))[0].holder == NobodyHolder()


def test_who_takes_a_release_over_keeps_why_it_began() -> None:
    began, _ = step(IN_STATE[LeaseState.HELD], ReleaseBegun(at=3, worker=WORKER, why="expired"))
    taken_over, _ = step(began, ReleaseBegun(at=4, worker=CHILD))
    assert (taken_over.end_why, taken_over.worker) == ("expired", CHILD)


def test_an_illegal_step_in_the_book_tells_the_story_and_changes_nothing(
    book: Book, reserve: Callable[..., Lease]
) -> None:
    lease = reserve(book)
    book.advance(lease.id, LeaseState.HELD, at=2_000)
    with pytest.raises(IllegalStepError) as refused:
        book.advance(lease.id, LeaseState.HELD, at=3_000)
    assert [line.split()[1] for line in refused.value.facts] == ["preparing", "held"]
    assert book.find(lease.id).state is LeaseState.HELD
    assert [event.what for event in book.events(lease.id)] == ["preparing", "held"]


def test_an_end_at_once_passes_through_releasing_in_one_commit(
    book: Book, reserve: Callable[..., Lease]
) -> None:
    lease = reserve(book)
    held = book.advance(lease.id, LeaseState.HELD, at=2_000)
    ended = book.end(lease.id, at=3_000, why="holder gone", usages=(), seen=held)
    assert (ended.state, ended.ended_at, ended.end_why) == (LeaseState.ENDED, 3_000, "holder gone")
    assert [event.what for event in book.events(lease.id)] == ["preparing", "held", "releasing", "ended"]
    with pytest.raises(IllegalStepError):
        book.end(lease.id, at=4_000, why="again", usages=())


def test_an_end_that_rests_on_an_old_look_is_refused(book: Book, reserve: Callable[..., Lease]) -> None:
    seen = reserve(book)
    book.advance(seen.id, LeaseState.HELD, at=2_000)
    with pytest.raises(StaleDecisionError):
        book.end(seen.id, at=3_000, why="holder gone", usages=(), seen=seen)
    assert book.find(seen.id).state is LeaseState.HELD

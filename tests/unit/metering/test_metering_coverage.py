"""Over any span, leased plus unleased is exactly the card."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from aliquot.metering import Coverage, coverage, settle, tally
from aliquot.model import (
    Bytes,
    GpuUuid,
    Isolation,
    KnownGpu,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    Share,
    Stretch,
    Thousandths,
)

Make = Callable[..., Lease]
CARD = KnownGpu(GpuUuid("GPU-a"), "T4", Bytes(10_000), first_seen=0, last_seen=1_000)


def test_a_card_is_what_was_leased_and_what_was_not(lease: Make) -> None:
    (row,) = coverage([CARD], [lease()], since=0, until=1_000)
    assert row == Coverage(
        gpu=GpuUuid("GPU-a"),
        name="T4",
        span_ns=1_000,
        card_byte_ns=10_000_000,
        leased_byte_ns=100_000,
        card_compute_ns=1_000_000,
        leased_compute_ns=10_000,
    )
    assert (row.unleased_byte_ns, row.unleased_compute_ns) == (9_900_000, 990_000)


def test_a_live_lease_counts_to_the_end_of_the_span_and_one_never_held_does_not_count(lease: Make) -> None:
    live = lease(state=LeaseState.RELEASING, ended_at=None)
    never = lease(id=LeaseId("m3bq8"), held_at=None)
    (row,) = coverage([CARD], [live, never], since=150, until=400)
    assert row.leased_byte_ns == 250_000


def test_a_card_counts_from_its_first_sight_and_a_card_that_is_gone_to_its_last(lease: Make) -> None:
    card = replace(CARD, first_seen=300, last_seen=400)
    assert [row.span_ns for row in coverage([card], [], since=0, until=1_000)] == [100]
    assert coverage([card], [], since=0, until=300) == ()
    assert coverage([card], [], since=400, until=1_000) == ()
    held = lease(held_at=250, state=LeaseState.HELD, ended_at=None)
    assert [row.span_ns for row in coverage([card], [held], since=0, until=1_000)] == [750]


def test_a_card_that_does_not_tell_its_memory_has_compute_only(lease: Make) -> None:
    whole = lease(shares=(Share(GpuUuid("GPU-a"), None, Thousandths(1000), whole=True),))
    (row,) = coverage([replace(CARD, capacity=None)], [whole], since=0, until=200)
    assert (row.card_byte_ns, row.leased_byte_ns, row.unleased_byte_ns) == (None, None, None)
    assert (row.card_byte_seconds, row.unleased_byte_seconds) == (None, None)
    assert (row.leased_compute_ns, row.unleased_compute_ns) == (100_000, 100_000)
    (known,) = coverage([CARD], [whole], since=0, until=200)
    assert known.leased_byte_ns == 100 * 10_000, "whole is all of it"


def test_a_card_that_shrank_was_full_and_never_more_than_full(lease: Make) -> None:
    (row,) = coverage([replace(CARD, capacity=Bytes(600))], [lease()], since=0, until=1_000)
    assert (row.leased_byte_ns, row.card_byte_ns) == (60_000, 600_000)


def test_a_lease_that_ended_before_it_was_held_by_the_clock_took_no_time(lease: Make) -> None:
    (row,) = coverage([CARD], [lease(held_at=300, ended_at=200)], since=0, until=1_000)
    assert row.leased_compute_ns == 0


def test_an_empty_span_has_no_rows(lease: Make) -> None:
    assert coverage([CARD], [lease()], since=500, until=500) == ()
    assert coverage([CARD], [lease()], since=500, until=100) == ()


TIMES = st.integers(0, 200)
CAPACITY = 1_000


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[KnownGpu], list[Lease]]:
    """Cards, and leases that never took more of a card than there is, some still live."""
    cards = [
        KnownGpu(GpuUuid(f"GPU-{n}"), "card", Bytes(CAPACITY), draw(TIMES), draw(TIMES)) for n in range(2)
    ]
    leases: list[Lease] = []
    for number in range(draw(st.integers(0, 6))):
        begin = draw(TIMES)
        end = draw(st.none() | st.integers(begin, 220))
        amount = draw(st.integers(1, 1_000))
        gpus = draw(st.lists(st.sampled_from([card.uuid for card in cards]), min_size=1, unique=True))
        lease = Lease(
            id=LeaseId(f"a{number:04}"),
            state=LeaseState.HELD if end is None else LeaseState.ENDED,
            ask="1/4",
            shares=tuple(Share(gpu, Bytes(amount), Thousandths(1_001 - amount)) for gpu in gpus),
            policy=Policy.FAIR,
            isolation=Isolation.SOFT,
            holder=NobodyHolder(),
            user="ann",
            command=None,
            created_at=begin,
            held_at=begin,
            ended_at=end,
        )
        if all(room(leases, lease, gpu) for gpu in gpus):
            leases.append(lease)
    return cards, leases


def room(leases: list[Lease], lease: Lease, gpu: GpuUuid) -> bool:
    return all(at_moment([*leases, lease], gpu, moment) is not None for moment in range(221))


def at_moment(leases: list[Lease], gpu: GpuUuid, moment: int) -> tuple[int, int] | None:
    """Bytes and thousandths of ``gpu`` leased during [moment, moment + 1); None over capacity."""
    held = [
        share
        for lease in leases
        for share in lease.shares
        if share.gpu == gpu
        and lease.held_at is not None
        and lease.held_at <= moment
        and (lease.ended_at is None or moment < lease.ended_at)
    ]
    memory, compute = sum(share.memory or 0 for share in held), sum(share.compute for share in held)
    return None if memory > CAPACITY or compute > 1_000 else (memory, compute)


@given(histories(), TIMES, TIMES)
def test_leased_plus_unleased_is_the_card_and_neither_is_negative(
    history: tuple[list[KnownGpu], list[Lease]], since: int, until: int
) -> None:
    cards, leases = history
    for row in coverage(cards, leases, since=since, until=until):
        assert row.unleased_byte_ns is not None
        assert row.leased_byte_ns is not None
        assert row.leased_byte_ns + row.unleased_byte_ns == row.card_byte_ns == CAPACITY * row.span_ns
        assert row.leased_compute_ns + row.unleased_compute_ns == row.card_compute_ns == 1_000 * row.span_ns
        assert 0 <= row.leased_byte_ns <= CAPACITY * row.span_ns
        assert 0 <= row.leased_compute_ns <= row.card_compute_ns
        assert 0 < row.span_ns <= until - since


@given(histories(), TIMES, TIMES)
def test_the_sums_are_those_of_counting_each_nanosecond(
    history: tuple[list[KnownGpu], list[Lease]], since: int, until: int
) -> None:
    cards, leases = history
    for row in coverage(cards, leases, since=since, until=until):
        each = [at_moment(leases, row.gpu, moment) or (0, 0) for moment in range(since, until)]
        assert row.leased_byte_ns == sum(memory for memory, _ in each)
        assert row.leased_compute_ns == sum(compute for _, compute in each)


@given(histories(), TIMES, TIMES, TIMES)
def test_two_spans_side_by_side_are_their_common_span(
    history: tuple[list[KnownGpu], list[Lease]], first: int, second: int, third: int
) -> None:
    cards, leases = history
    begin, middle, end = sorted((first, second, third))
    total: dict[GpuUuid, int] = {}
    for since, until in ((begin, middle), (middle, end)):
        for row in coverage(cards, leases, since=since, until=until):
            total[row.gpu] = total.get(row.gpu, 0) + row.leased_compute_ns
    for row in coverage(cards, leases, since=begin, until=end):
        assert total.get(row.gpu, 0) == row.leased_compute_ns


@given(histories(), TIMES, TIMES)
def test_what_usage_sums_up_is_what_coverage_calls_leased(
    history: tuple[list[KnownGpu], list[Lease]], since: int, until: int
) -> None:
    cards, leases = history
    pairs = [
        (lease, usage)
        for lease in leases
        for usage in settle(lease, None, at=until if lease.ended_at is None else lease.ended_at)
    ]
    (row,) = tally(pairs, by="user", since=since, until=until) or (None,)
    covered = coverage(cards, leases, since=since, until=until)
    assert (row.byte_ns if row else 0) == sum(cover.leased_byte_ns or 0 for cover in covered)
    assert (row.compute_ns if row else 0) == sum(cover.leased_compute_ns for cover in covered)


def test_a_resized_lease_covers_each_stretch_with_what_it_had_then() -> None:
    """Leased and unleased are still exactly the card."""
    gpu = KnownGpu(GpuUuid("GPU-a"), "T4", Bytes(100), 0, 100)
    now = Share(gpu.uuid, Bytes(40), Thousandths(400))
    lease = Lease(
        id=LeaseId("abcde"), state=LeaseState.HELD, ask="40", shares=(now,), policy=Policy.FAIR,
        isolation=Isolation.SOFT, holder=NobodyHolder(), user="ann", command=None, created_at=0, held_at=10,
    )  # fmt: skip
    past = {lease.id: (Stretch(10, 30, (Share(gpu.uuid, Bytes(10), Thousandths(100)),)),)}
    (row,) = coverage([gpu], [lease], since=20, until=60, past=past)
    assert row.leased_byte_ns == 10 * 10 + 30 * 40
    assert row.leased_compute_ns == 10 * 100 + 30 * 400
    assert row.unleased_byte_ns == 100 * 40 - 1300
    (usage,) = settle(lease, None, at=60, past=past[lease.id])
    assert (usage.byte_ns, usage.compute_ns) == (20 * 10 + 30 * 40, 20 * 100 + 30 * 400)
    (tallied,) = tally([(lease, usage)], by="user", since=20, until=60)
    assert (tallied.byte_ns, tallied.compute_ns) == (row.leased_byte_ns, row.leased_compute_ns)

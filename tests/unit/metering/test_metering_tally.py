"""Sums by lease, command and user."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from aliquot.metering import TallyBy, UsageRow, settle, tally
from aliquot.model import AliquotError, Bytes, GpuUuid, Lease, LeaseId, Reason, Share, Thousandths, Usage

Make = Callable[..., Lease]


def used(lease: Lease, **figures: int | None) -> list[tuple[Lease, Usage]]:
    """The lease's usages to its end, with figures as if its ledger had told them."""
    assert lease.ended_at is not None
    return [(lease, replace(usage, **figures)) for usage in settle(lease, None, at=lease.ended_at)]  # type: ignore[arg-type]


def test_leases_of_one_user_add_up_exactly(lease: Make) -> None:
    first = used(lease(), peak_bytes=10, denied=2, busy_ns=40)
    second = used(lease(id=LeaseId("m3bq8"), held_at=50), peak_bytes=30, denied=5, busy_ns=2)
    assert tally([*first, *second], by="user") == (
        UsageRow(
            key="ann",
            leases=2,
            wall_ns=250,
            byte_ns=250_000,
            compute_ns=25_000,
            peak_bytes=30,
            denied=7,
            busy_ns=42,
            unknown_memory=0,
        ),
    )


def test_a_lease_of_two_cards_is_one_lease_and_one_wall_time(lease: Make) -> None:
    share = lease().shares[0]
    (row,) = tally(used(lease(shares=(share, replace(share, gpu=GpuUuid("GPU-b"))))), by="lease")
    assert (row.leases, row.wall_ns, row.byte_ns, row.compute_ns) == (1, 100, 200_000, 20_000)


def test_what_nobody_measured_is_unknown_and_not_zero(lease: Make) -> None:
    unknown = lease(shares=(Share(GpuUuid("GPU-a"), None, Thousandths(1000), whole=True),))
    (row,) = tally(used(unknown), by="user")
    assert (row.byte_ns, row.byte_seconds, row.peak_bytes, row.denied) == (None, None, None, None)
    assert (row.busy_ns, row.busy_seconds) == (None, None)
    assert (row.unknown_memory, row.compute_ns) == (1, 100_000)
    (mixed,) = tally(used(unknown) + used(lease(id=LeaseId("m3bq8")), denied=0, busy_ns=5), by="user")
    assert (mixed.byte_ns, mixed.unknown_memory, mixed.denied) == (100_000, 1, 0)
    assert mixed.busy_ns == 5


def test_one_lease_of_nonsense_does_not_drown_the_sum(lease: Make) -> None:
    """A book may hold such a figure since before it was called unknown."""
    mad = used(lease(id=LeaseId("m3bq8")), denied=9 * 10**18)
    (row,) = tally(used(lease(), denied=4) + mad, by="user")
    assert (row.denied, row.leases) == (4, 2)
    (alone,) = tally(mad, by="user")
    assert alone.denied is None


@pytest.mark.parametrize("by", TallyBy)
def test_the_largest_user_of_compute_comes_first(lease: Make, by: TallyBy) -> None:
    small = lease(id=LeaseId("aaaaa"), user="bob", command=None, ended_at=110)
    rows = tally(used(small) + used(lease()), by=by)
    keys = {
        TallyBy.LEASE: ["kx7f2", "aaaaa"],
        TallyBy.COMMAND: ["python train.py", "—"],
        TallyBy.USER: ["ann", "bob"],
    }
    assert [row.key for row in rows] == keys[by]


@pytest.mark.parametrize(
    ("since", "until", "wall"),
    [(None, None, 100), (100, 200, 100), (150, None, 50), (None, 130, 30), (120, 130, 10), (0, 500, 100)],
)
def test_only_the_part_inside_the_span_counts(
    lease: Make, since: int | None, until: int | None, wall: int
) -> None:
    (row,) = tally(used(lease(), denied=4), by="lease", since=since, until=until)
    assert (row.wall_ns, row.byte_ns, row.compute_ns, row.denied) == (wall, wall * 1_000, wall * 100, 4)


@pytest.mark.parametrize(("since", "until"), [(200, None), (None, 100), (300, 400)])
def test_a_lease_outside_the_span_gives_no_row(lease: Make, since: int | None, until: int | None) -> None:
    assert tally(used(lease()), by="lease", since=since, until=until) == ()


def test_an_unknown_key_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AliquotError, match="`lease`, `command`, `user`") as refused:
        tally([], by="moon")
    assert refused.value.reason is Reason.BAD_USAGE


def test_seconds_are_those_of_the_usage_itself(lease: Make) -> None:
    pairs = used(
        lease(held_at=0, ended_at=3 * 10**9, shares=(Share(GpuUuid("GPU-a"), Bytes(7), Thousandths(500)),))
    )
    (row,) = tally(pairs, by="lease")
    assert (row.byte_seconds, row.compute_seconds) == (21.0, 1.5)
    assert (pairs[0][1].byte_seconds, pairs[0][1].compute_seconds) == (21.0, 1.5)

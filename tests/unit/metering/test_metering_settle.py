"""What a lease used, from a ledger that the tenant may have written anything into."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.metering import settle
from aliquot.model import Bytes, GpuUuid, Lease, Ledger, LedgerDevice, Share, Thousandths, Usage

Make = Callable[..., Lease]
SECOND = 10**9


def ledger(**figures: object) -> Ledger:
    plain: dict[str, object] = {"used": 0, "peak": 800, "byte_seconds": 1_000.0, "denied": 3, "compute_ns": 7}
    return Ledger(devices=(LedgerDevice(**{**plain, **figures}),), slots=())  # type: ignore[arg-type]


def test_peak_mean_and_denials_come_from_the_ledger_and_time_from_the_book(lease: Make) -> None:
    held = lease(held_at=2 * SECOND)
    assert settle(held, ledger(), at=6 * SECOND) == (
        Usage(held.id, GpuUuid("GPU-a"), 4 * SECOND, Bytes(1_000), 100, Bytes(800), 250.0, 3, 7),
    )


def test_without_a_ledger_what_only_it_knows_is_unknown_and_the_lease_is_still_counted(lease: Make) -> None:
    (usage,) = settle(lease(), None, at=250)
    assert (usage.peak_bytes, usage.mean_bytes, usage.denied, usage.busy_ns) == (None, None, None, None)
    assert usage.busy_seconds is None
    assert (usage.wall_ns, usage.leased_bytes, usage.leased_compute) == (150, 1_000, 100)


def test_a_whole_card_has_no_governor_whatever_a_ledger_says(lease: Make) -> None:
    whole = Share(GpuUuid("GPU-a"), Bytes(1_000), Thousandths(1000), whole=True)
    (usage,) = settle(lease(shares=(whole,)), ledger(), at=250)
    assert (usage.peak_bytes, usage.mean_bytes, usage.denied, usage.busy_ns) == (None, None, None, None)


def test_a_ledger_with_too_few_devices_leaves_the_others_unknown(lease: Make) -> None:
    share = lease().shares[0]
    two = lease(shares=(share, replace(share, gpu=GpuUuid("GPU-b"))))
    first, second = settle(two, ledger(), at=250)
    assert (first.denied, second.denied, second.peak_bytes) == (3, None, None)
    assert (first.busy_ns, second.busy_ns) == (7, None)
    assert [usage.gpu for usage in (first, second)] == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize(("held_at", "at"), [(None, 500), (500, 500), (500, 400)])
def test_no_time_is_no_mean_and_a_clock_set_back_is_no_negative_time(
    lease: Make, held_at: int | None, at: int
) -> None:
    (usage,) = settle(lease(held_at=held_at), ledger(), at=at)
    assert (usage.wall_ns, usage.mean_bytes) == (0, None)
    assert usage.byte_seconds == 0


def test_figures_that_cannot_be_are_unknown_and_the_others_stay(lease: Make) -> None:
    held = lease(held_at=0)
    (usage,) = settle(held, ledger(peak=None, denied=9 * 10**18), at=4 * SECOND)
    assert (usage.peak_bytes, usage.mean_bytes, usage.denied) == (None, None, None)
    assert (usage.wall_ns, usage.leased_bytes) == (4 * SECOND, 1_000)
    (usage,) = settle(held, ledger(byte_seconds=None, denied=None), at=4 * SECOND)
    assert (usage.peak_bytes, usage.mean_bytes, usage.denied) == (800, None, None)


@given(
    peak=st.integers(-(2**64), 2**64),
    byte_seconds=st.floats(),
    denied=st.integers(-(2**64), 2**64),
    busy=st.none() | st.integers(-(2**64), 2**64),
    wall=st.integers(0, 2**62),
    memory=st.none() | st.integers(0, 2**50),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_tenant_writes_the_figures_are_possible_ones(
    lease: Make, peak: int, byte_seconds: float, denied: int, busy: int | None, wall: int, memory: int | None
) -> None:
    share = Share(GpuUuid("GPU-a"), None if memory is None else Bytes(memory), Thousandths(1))
    written = ledger(peak=peak, byte_seconds=byte_seconds, denied=denied, compute_ns=busy)
    (usage,) = settle(lease(shares=(share,), held_at=0), written, at=wall)
    largest = 2**53 if memory is None else memory
    assert usage.busy_ns == (busy if busy is not None and 0 <= busy <= 2**58 else None)
    assert usage.denied == (denied if 0 <= denied <= 2**53 else None)
    assert usage.peak_bytes == (min(peak, largest) if 0 <= peak <= 2**53 else None)
    if usage.mean_bytes is not None:
        assert usage.peak_bytes is not None
        assert math.isfinite(usage.mean_bytes)
        assert 0 <= usage.mean_bytes <= usage.peak_bytes

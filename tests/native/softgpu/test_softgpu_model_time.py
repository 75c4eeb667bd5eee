"""Time of a device's own: what a program sees of it, to the nanosecond."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.native.softgpu.machine import Box

from aliquot.model import GpuUuid
from aliquot.softgpu.busy import read_busy
from aliquot.softgpu.devices import SoftGpu

MICROSECOND, MILLISECOND = 1_000, 1_000_000


def seen(box: Box, scenario: str, **facts: object) -> dict[str, Any]:
    given: dict[str, Any] = {"time": "virtual", **facts}
    box.add_device(**given)
    return box.run("model_time.py", scenario)


@pytest.mark.parametrize("scenario", ["order", "costs", "deep"])
def test_a_process_alone_sees_the_same_nanoseconds_each_time(box: Box, scenario: str) -> None:
    box.add_device(time="virtual")
    first = box.run("model_time.py", scenario)
    assert first == box.run("model_time.py", scenario)


def test_a_kernel_lasts_as_long_as_it_says_on_the_clock(box: Box) -> None:
    lengths = seen(box, "lengths", launch_ns=2500)
    for name, ns in lengths.items():
        wanted = {"counting 1410000": MILLISECOND, "three waves": 3 * MILLISECOND}.get(name) or int(
            name.split()[1]
        )
        assert wanted + 2500 <= ns <= wanted + 2500 + 2 * MICROSECOND, name


def test_memory_and_the_link_are_as_fast_as_the_profile_says(box: Box) -> None:
    figures = {"multiprocessors": 108, "memory_clock_khz": 1215000, "bus_width_bits": 5120}
    found = seen(box, "costs", host_link_mb_per_s=31508, launch_ns=2500, **figures)
    bandwidth = 1215000e3 * 2 * 5120 / 8
    assert found["added"] - 2500 == pytest.approx(found["moved"] / bandwidth * 1e9, rel=0.001)
    assert found["read"] - 2500 == pytest.approx(found["copied"] / 31508e6 * 1e9, rel=0.001)


def test_streams_and_events_keep_their_order_on_the_clock(box: Box) -> None:
    found = seen(box, "order")
    assert found["before"] == [600, 0]
    assert found["after"] == [0, 0]
    assert found["elapsed"] == pytest.approx([1, 2], abs=0.01)
    assert found["took"] == pytest.approx(3 * MILLISECOND, rel=0.01)


def test_a_copy_runs_beside_a_kernel_and_a_kernel_beside_none(box: Box) -> None:
    found = seen(box, "overlap", memory_bytes=512 << 20)
    assert found["both"] == max(found["copy"], found["both"]) < found["copy"] + 4 * MILLISECOND
    assert found["two kernels"] == pytest.approx(2 * MILLISECOND, rel=0.01)


def test_a_question_answered_with_not_yet_takes_a_microsecond(box: Box) -> None:
    found = seen(box, "asking")
    assert 1000 <= found["questions"] <= 1010
    assert found["took"] == pytest.approx(MILLISECOND, rel=0.01)


def test_waiting_for_the_clock_costs_no_real_time(box: Box) -> None:
    begin = time.monotonic()
    found = seen(box, "waiting")
    assert found["slept"] == 5000 * MILLISECOND
    assert found["then"] == 5000 * MILLISECOND + 250 * MICROSECOND
    assert found["kernel"] == 600
    assert time.monotonic() - begin < 4


def test_a_host_function_waits_for_the_clock(box: Box) -> None:
    found = seen(box, "host_functions")
    assert found["between"] == pytest.approx(1, abs=0.01)
    assert found["took"] == pytest.approx(4 * MILLISECOND, rel=0.01)


def test_a_launch_waits_where_too_many_are_pending(box: Box) -> None:
    assert seen(box, "deep")["took"] == pytest.approx(1000 * 12.5 * MICROSECOND, rel=0.01)


def test_scaled_time_is_real_time_for_modelled_lengths(box: Box) -> None:
    box.add_device(time="scaled", time_scale_ppm=2_000_000)
    begin = time.monotonic_ns()
    found = box.run("model_time.py", "order")
    assert found["elapsed"][0] >= 2
    assert found["elapsed"][1] == pytest.approx(4, abs=1)
    assert found["before"][0] == 600
    assert time.monotonic_ns() - begin >= found["took"] >= 6 * MILLISECOND


def test_where_the_cpu_is_slower_than_scaled_time_events_and_the_account_of_busy_say_the_cpus(
    box: Box,
) -> None:
    """What the CPU had is less than what passed, on any machine."""
    device = box.add_device(time="scaled", time_scale_ppm=1)
    found = box.run("scaled_floor.py")
    busy = read_busy(SoftGpu(GpuUuid(device.name), device)).compute_ns
    assert found["computed"] / 2 <= busy <= found["events"] * 1.001  # events are floats

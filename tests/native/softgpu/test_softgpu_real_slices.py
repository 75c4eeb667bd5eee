"""In real mode processes have a device in slices too. Nothing here compares with the machine's clock: how
long who had the device is the oracle's, and a kernel writes down itself when it ran."""

from __future__ import annotations

import itertools
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import Box, first_answer

ENDLESS, ROUGHLY_30_MS, ROUGHLY_HALF_A_MS = str(1 << 40), "150000", "2500"
MILLISECOND, LAUNCH_TIMEOUT = 1_000_000, 702


def truth(box: Box, device: Path) -> dict[str, Any]:
    return box.run("oracle.py", str(device))


def held(seen: dict[str, Any], process: subprocess.Popen[str]) -> int:
    """Nanoseconds for which the process had the device."""
    return sum(one["compute_ns"] for one in seen["accounts"] if one["pid"] == process.pid)


def until(box: Box, device: Path, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    for _ in range(500):
        seen = truth(box, device)
        if is_so(seen):
            return seen
    raise AssertionError(seen)


def neighbour(box: Box, iterations: str = ROUGHLY_30_MS) -> subprocess.Popen[str]:
    process = box.start("spin.py", iterations)
    if iterations != ENDLESS:
        first_answer(process)
    return process


@pytest.mark.parametrize("how", ["together", "apart"])
def test_nothing_is_lost_of_a_kernel_that_gives_way(box: Box, device: Path, how: str) -> None:
    other = neighbour(box)
    before = truth(box, device)
    for _ in range(30):  # how long it takes is the machine's
        seen = box.run("sliced.py", "6", "150" if how == "together" else "8000", how)
        assert seen == {"counted": True, "arrived": True, "sums": True}
        after = truth(box, device)
        if after["preemptions"] >= before["preemptions"] + 10:
            break
    assert after["preemptions"] >= before["preemptions"] + 10
    assert held(after, other) > held(before, other)
    assert other.poll() is None


def test_a_device_is_never_two_processes_at_once(box: Box, device: Path) -> None:
    processes = [box.start("segments.py", "400", "500000") for _ in range(3)]
    for process in processes:
        first_answer(process)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    lists = [first_answer(process)["segments"] for process in processes]
    assert truth(box, device)["preemptions"] >= 10
    # The last segment of a kernel can be as short as the gap by which others tell theirs apart.
    everything = sorted((begin, end) for segments in lists for begin, end in segments[:-1])
    overlaps = [(one, two) for one, two in itertools.pairwise(everything) if two[0] < one[1]]
    assert overlaps == []


def test_who_launches_short_kernels_has_as_much_as_who_launches_long_ones(box: Box, device: Path) -> None:
    long, short = neighbour(box, ENDLESS), neighbour(box, ROUGHLY_HALF_A_MS)
    begin = truth(box, device)
    end = until(box, device, lambda seen: held(seen, long) > held(begin, long) + 500 * MILLISECOND)
    share = (held(end, short) - held(begin, short)) / (end["compute_ns"] - begin["compute_ns"])
    assert 0.1 < share < 0.9  # by kernels, each in its turn, it would be 0.03


@pytest.mark.slow
def test_what_processes_had_adds_up_to_what_the_device_was_busy(box: Box, device: Path) -> None:
    workers = [neighbour(box, iterations) for iterations in (ROUGHLY_30_MS, ROUGHLY_HALF_A_MS, "50000")]
    begin = truth(box, device)
    until(box, device, lambda seen: seen["preemptions"] > begin["preemptions"] + 50)
    for worker in workers:
        worker.send_signal(signal.SIGSTOP)
    # Their turns are taken away one after the other; from then on nothing moves.
    box.run("sliced.py", "1", "1", "apart")
    end = truth(box, device)
    accounts = sum(one["compute_ns"] for one in end["accounts"] if one["living"])
    assert {one["pid"] for one in end["accounts"]} == {worker.pid for worker in workers}
    assert end["compute_ns"] - accounts < MILLISECOND * 50  # of the last one, which has left
    assert end["compute_ns"] - begin["compute_ns"] <= end["now_ns"] - begin["now_ns"]
    assert end["switches"] >= end["preemptions"] > 50


def test_the_time_out_counts_what_a_kernel_had_and_not_what_it_waited(box: Box) -> None:
    device = box.add_device(kernel_timeout_ms=300)
    other = neighbour(box)
    begin = truth(box, device)
    endless = box.start("times_out.py")
    assert first_answer(endless) == {"launched": 0, "ended": LAUNCH_TIMEOUT}
    end = truth(box, device)
    assert 300 * MILLISECOND <= held(end, endless) < 1000 * MILLISECOND
    assert held(end, other) - held(begin, other) > 100 * MILLISECOND


@pytest.mark.slow
def test_who_is_stopped_loses_its_turn_and_waits_for_another_when_it_goes_on(box: Box, device: Path) -> None:
    stopped, other = box.start("sliced.py", "4", "50000", "apart"), neighbour(box)
    until(box, device, lambda seen: held(seen, stopped) > 20 * MILLISECOND)
    stopped.send_signal(signal.SIGSTOP)
    begin = truth(box, device)
    seen = until(box, device, lambda seen: held(seen, other) > held(begin, other) + 1500 * MILLISECOND)
    assert held(seen, stopped) - held(begin, stopped) <= 1200 * MILLISECOND
    stopped.send_signal(signal.SIGCONT)
    out, errors = stopped.communicate(timeout=100)
    assert out.splitlines() == ['{"counted": true, "arrived": true, "sums": true}'], errors
    assert other.poll() is None


def test_a_process_killed_in_the_middle_of_its_slices_leaves_the_device_to_the_others(
    box: Box, device: Path
) -> None:
    other = neighbour(box)
    for _ in range(3):
        victims = [neighbour(box, ENDLESS) for _ in range(2)]
        until(box, device, lambda seen: min(held(seen, victim) for victim in victims) > 0)  # noqa: B023
        for victim in victims:
            victim.kill()
        begin = truth(box, device)
        until(box, device, lambda seen: held(seen, other) > held(begin, other) + 5 * MILLISECOND)  # noqa: B023
    assert [one["pid"] for one in truth(box, device)["accounts"]] == [other.pid]

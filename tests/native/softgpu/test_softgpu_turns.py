"""Kernels of one device run in turns, and NVML says how busy it was."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from tests.native.softgpu.machine import Box, first_answer

ROUGHLY_30_MS = "150000"


def look_until_busy(box: Box, *, percent: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if box.run("look.py")["utilisation"] >= percent:
            return
    raise AssertionError(f"the device was never {percent} % busy")


def launches(process: subprocess.Popen[str]) -> list[int]:
    out, _ = process.communicate()
    return [json.loads(line)["ended"] for line in out.splitlines() if line.endswith("}")]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.usefixtures("device")
def test_processes_that_launch_in_a_loop_take_turns(box: Box, count: int) -> None:
    workers = [box.start("spin.py", ROUGHLY_30_MS) for _ in range(count)]
    first = [first_answer(worker)["ended"] for worker in workers]
    both_since = max(first)
    while time.monotonic_ns() < both_since + 1_000_000_000:
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.02)
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
    counts = [sum(ended > both_since for ended in launches(worker)) for worker in workers]
    assert min(counts) >= 2, counts
    assert max(counts) <= min(counts) * 1.5 + 2, counts


@pytest.mark.usefixtures("device")
def test_a_process_killed_in_its_turn_does_not_hold_up_the_next(box: Box) -> None:
    stuck = box.start("spin.py", str(1 << 40))
    look_until_busy(box, percent=10)
    stuck.send_signal(signal.SIGKILL)
    following = box.start("spin.py", "1")
    assert first_answer(following)["ended"] > 0


@pytest.mark.usefixtures("device")
def test_a_busy_device_shows_in_nvml_while_its_kernel_still_runs(box: Box) -> None:
    runner = box.start("spin.py", str(1 << 40))
    look_until_busy(box, percent=60)
    assert runner.poll() is None


@pytest.mark.usefixtures("device")
def test_utilisation_is_told_by_process_and_adds_up(box: Box, client_python: str) -> None:
    workers = [box.start("spin.py", ROUGHLY_30_MS) for _ in range(2)]
    for worker in workers:
        first_answer(worker)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        seen = box.run("nvml_client.py", python=client_python)
        percents = dict(seen["process_utilisation"])
        if sum(percents.values()) >= 70 and min(percents.values()) >= 20:
            break
    else:
        raise AssertionError(seen)
    assert set(percents) == {worker.pid for worker in workers}
    assert abs(sum(percents.values()) - seen["utilisation"]) <= 25

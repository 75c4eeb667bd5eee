"""Several processes on one modelled device: slices, fairness, and who holds up whom."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import Box, first_answer

MICROSECOND, MILLISECOND = 1_000, 1_000_000
SLICE, SWITCH, PREEMPTION, LAUNCH = 2 * MILLISECOND, 35_000, 75_000, 2_500
FIGURES: dict[str, Any] = {"time": "virtual", "time_slice_ns": SLICE, "launch_ns": LAUNCH}


def together(box: Box, *programs: tuple[int, int] | tuple[int, int, str]) -> list[dict[str, Any]]:
    """Run `shared_clock.py KERNEL_NS COUNT [queued]` for each, arriving in this order."""
    started = [
        box.start("shared_clock.py", *map(str, program), ALIQUOT_SOFTGPU_ARRIVAL=f"{place}/{len(programs)}")
        for place, program in enumerate(programs, start=1)
    ]
    answers = []
    for process in started:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        answers.append(json.loads(out.splitlines()[-1]))
    return answers


def truth(box: Box, device: Path) -> dict[str, Any]:
    return box.run("oracle.py", str(device))


def test_several_processes_see_the_same_nanoseconds_where_their_arrival_is_scripted(box: Box) -> None:
    runs = []
    for bus in range(2):
        device = box.add_device(bus=bus, **FIGURES)
        answers = together(
            box, (500 * MICROSECOND, 40), (5 * MILLISECOND, 10, "queued"), (70 * MICROSECOND, 100)
        )
        runs.append([answer["ends"] for answer in answers])
        (device / "device").unlink()
    assert runs[0] == runs[1]


def test_a_short_kernel_beside_a_long_one_waits_for_a_slice_and_not_for_its_end(box: Box) -> None:
    device = box.add_device(**FIGURES)
    long, short = together(box, (80 * MILLISECOND, 5, "queued"), (500 * MICROSECOND, 100))
    waits = [later - earlier for earlier, later in zip(short["ends"][:90], short["ends"][1:90], strict=False)]
    assert max(waits) <= SLICE + PREEMPTION + SWITCH + 510 * MICROSECOND
    assert min(waits) >= 500 * MICROSECOND
    assert long["ends"][-1] > 400 * MILLISECOND
    assert truth(box, device)["preemptions"] >= 90


def test_two_that_are_always_busy_get_half_each_in_slices(box: Box) -> None:
    device = box.add_device(**FIGURES)
    first, second = together(box, (10 * MILLISECOND, 20, "queued"), (100 * MICROSECOND, 2000, "queued"))
    assert abs(first["ends"][-1] - second["ends"][-1]) < 20 * MILLISECOND
    seen = truth(box, device)
    accounts = {one["pid"]: one for one in seen["accounts"]}
    long, short = accounts[first["pid"]], accounts[second["pid"]]
    assert (long["kernels"], short["kernels"]) == (20, 2000)
    assert long["compute_ns"] == pytest.approx(20 * (10 * MILLISECOND + LAUNCH), rel=0.001)
    assert short["compute_ns"] == pytest.approx(2000 * (100 * MICROSECOND + LAUNCH), rel=0.001)


def test_the_engine_is_never_two_processes_at_once(box: Box) -> None:
    device = box.add_device(**FIGURES)
    answers = together(box, *[(300 * MICROSECOND, 30)] * 4)
    seen = truth(box, device)
    assert sum(one["compute_ns"] for one in seen["accounts"]) == seen["compute_ns"]
    assert seen["compute_ns"] + seen["switching_ns"] <= max(answer["ends"][-1] for answer in answers)
    busy = [one["compute_ns"] for one in seen["accounts"]]
    assert max(busy) == min(busy)
    assert not any(one["living"] for one in seen["accounts"])


def starts(box: Box, *arguments: str) -> subprocess.Popen[str]:
    process = box.start("holds_clock.py", *arguments)
    assert first_answer(process)["ready"]
    return process


@pytest.mark.parametrize("way", ["killed", "stopped", "asleep"])
def test_nobody_holds_the_clock_up_for_more_than_a_second(box: Box, way: str) -> None:
    box.add_device(**FIGURES)
    holder = starts(box, "busy" if way == "stopped" else "asleep")
    if way != "asleep":
        holder.send_signal(signal.SIGKILL if way == "killed" else signal.SIGSTOP)
    begin = time.monotonic()
    box.run("shared_clock.py", str(MILLISECOND), "3")
    took = time.monotonic() - begin
    assert took < {"killed": 0.9, "stopped": 1.0, "asleep": 2.0}[way]
    holder.send_signal(signal.SIGCONT)


@pytest.mark.slow
def test_whoever_computes_is_waited_for(box: Box) -> None:
    """A second of work in a program takes no time on the device's clock."""
    box.add_device(**FIGURES)
    holder = box.start("holds_clock.py", "computes", ALIQUOT_SOFTGPU_ARRIVAL="1/2")
    other = box.run("shared_clock.py", str(MILLISECOND), "1", ALIQUOT_SOFTGPU_ARRIVAL="2/2")
    seen = json.loads(holder.communicate(timeout=60)[0].splitlines()[-1])
    assert seen["computed_s"] >= 1.2
    assert seen["after"] == seen["before"]
    assert other["ends"][0] >= seen["after"] + MILLISECOND


def test_a_process_killed_in_the_middle_of_anything_leaves_a_sound_model(box: Box) -> None:
    device = box.add_device(**FIGURES)
    for round_ in range(6):
        victims = [box.start("shared_clock.py", "1000", "1000000") for _ in range(2)]
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and truth(box, device)["living_kernels"] < 20 * (round_ + 1):
            pass
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
            victim.communicate()
    last = box.run("shared_clock.py", str(MILLISECOND), "3")
    gaps = [later - earlier for earlier, later in zip(last["ends"], last["ends"][1:], strict=False)]
    assert gaps == [gaps[0]] * 2
    assert MILLISECOND + LAUNCH <= gaps[0] < MILLISECOND + 10 * MICROSECOND

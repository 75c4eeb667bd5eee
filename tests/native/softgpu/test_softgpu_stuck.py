"""Whoever stops or sits still on a device holds up nobody for ever, and no answer becomes wrong by it."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

METADATA, FIRST_TURN, FIRST_PLACE = 0, 8192, 1 << 30
OPERATING_SYSTEM, NVML_TIMEOUT = 304, 10
LONG = 1.0  # seconds after which a turn is taken away, whoever holds it


def call(process: subprocess.Popen[str], what: str) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()
    return first_answer(process)


def client(box: Box) -> subprocess.Popen[str]:
    process = box.start("timed_calls.py")
    assert first_answer(process)["ready"]
    return process


def sit_on(box: Box, device: Path, which: int) -> subprocess.Popen[str]:
    holder = box.start("sit_on_lock.py", str(device / "state"), str(which))
    assert first_answer(holder)["pid"] == holder.pid
    return holder


def endless_kernel(box: Box) -> subprocess.Popen[str]:
    runner = box.start("spin.py", str(1 << 40))
    deadline = time.monotonic() + 20
    while box.run("look.py")["utilisation"] < 10:
        assert time.monotonic() < deadline, "the kernel never ran"
    return runner


@pytest.mark.parametrize("stopped", [False, True])
def test_nvml_answers_rightly_and_soon_while_somebody_sits_on_the_metadata_lock(
    box: Box, device: Path, stopped: bool
) -> None:
    living = first_answer(box.start("hold_memory.py", str(30 * MIB)))["pid"]
    dead = box.start("hold_memory.py", str(50 * MIB))
    first_answer(dead)
    holder = sit_on(box, device, METADATA)
    if stopped:
        holder.send_signal(signal.SIGSTOP)
    dead.kill()
    dead.wait()
    began = time.monotonic()
    seen = box.run("look.py")
    assert time.monotonic() - began < 5
    assert seen["used"] == (20 + 30) * MIB
    assert seen["processes"] == {str(living): (20 + 30) * MIB}


def test_nvml_says_timeout_of_a_device_that_nobody_can_lay_out(box: Box, device: Path) -> None:
    holder = sit_on(box, device, METADATA)
    seen = box.run("look_at_memory.py")
    assert seen["result"] == NVML_TIMEOUT
    assert seen["seconds"] < 2
    holder.kill()
    holder.wait()
    assert box.run("look_at_memory.py")["result"] == 0


@pytest.mark.slow
def test_an_allocation_ends_in_an_error_that_names_who_sits_on_the_lock(box: Box, device: Path) -> None:
    tenant, leaver = client(box), client(box)
    holder = sit_on(box, device, METADATA)
    holder.send_signal(signal.SIGSTOP)
    answered = call(tenant, "allocate")
    assert answered["result"] == OPERATING_SYSTEM
    assert 4 < answered["seconds"] < 15
    assert any(
        line.startswith("metadata-lock ") and f"pid {holder.pid} " in line for line in box.log(device)
    ), box.log(device)
    gone = call(leaver, "leave")
    assert gone["result"] == 0
    assert gone["seconds"] < 2
    holder.kill()
    holder.wait()
    assert call(tenant, "allocate")["result"] == 0


@pytest.mark.usefixtures("device")
def test_a_process_stopped_inside_its_kernel_is_passed_by_soon(box: Box) -> None:
    tenant, runner = client(box), endless_kernel(box)
    runner.send_signal(signal.SIGSTOP)
    for _ in range(3):
        answered = call(tenant, "launch")
        assert answered["result"] == 0
        assert answered["seconds"] < LONG - 0.1, "it waited as long as for a kernel that goes on"


@pytest.mark.usefixtures("device")
def test_an_endless_kernel_holds_up_a_neighbour_for_a_slice(box: Box) -> None:
    tenant, runner = client(box), endless_kernel(box)
    for _ in range(4):
        answered = call(tenant, "launch")
        assert answered["result"] == 0
        assert answered["seconds"] < LONG - 0.1, "it waited until the turn was taken away"
    assert runner.poll() is None


@pytest.mark.parametrize("which", [FIRST_PLACE, FIRST_TURN])
def test_whoever_sits_on_a_lock_of_the_turns_is_passed_by(box: Box, device: Path, which: int) -> None:
    tenant = client(box)
    holder = sit_on(box, device, which)
    holder.send_signal(signal.SIGSTOP)
    first, *later = (call(tenant, "launch") for _ in range(3))
    assert first["result"] == 0
    assert first["seconds"] < 10
    for answered in later:
        assert answered["result"] == 0
        assert answered["seconds"] < LONG - 0.1, "it was waited for a second time"
    holder.kill()
    holder.wait()
    assert call(tenant, "launch")["seconds"] < LONG - 0.1


@pytest.mark.usefixtures("device")
def test_a_stopped_process_that_goes_on_ends_its_kernel_rightly(box: Box) -> None:
    tenant, runner = client(box), box.start("spin.py", "3000000")
    first_answer(runner)
    runner.send_signal(signal.SIGSTOP)
    assert call(tenant, "launch")["result"] == 0
    runner.send_signal(signal.SIGCONT)
    for _ in range(2):
        assert first_answer(runner)["ended"] > 0
    assert call(tenant, "launch")["result"] == 0


def test_a_program_that_closes_all_descriptors_keeps_its_memory_and_its_own_files(
    box: Box, device: Path, tmp_path: Path
) -> None:
    assert device.exists()
    files = tmp_path / "files"
    files.mkdir()
    daemon = box.start("closed_files.py", str(files))
    told = first_answer(daemon)
    assert told["memory_right"]
    assert told["child_status"] == 0
    assert told["files_untouched"]
    assert told["seen"] == told["held"]
    # Seen from outside, the process lives and its memory is its own.
    seen = box.run("look.py")
    assert list(seen["processes"]) == [str(daemon.pid)]
    box.run("memory_basics.py")
    assert daemon.stdin is not None
    daemon.stdin.write("\n")
    daemon.stdin.flush()
    assert first_answer(daemon) == {"still_there": True, "left": 0, "files_untouched": True}

"""Memory of a software GPU: what is used is exactly what living processes hold, whatever kills them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

CHUNK = 2 * MIB
CAPACITY = 240 * MIB
CONTEXT = 20 * MIB


def held_memory(box: Box) -> tuple[int, dict[str, int]]:
    seen = box.run("look.py")
    return seen["used"], seen["processes"]


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def disk_bytes(device: Path) -> int:
    return (device / "arena").stat().st_blocks * 512


@pytest.mark.usefixtures("device")
def test_free_is_the_capacity_less_what_is_allocated_and_all_that_is_free_can_be_had(box: Box) -> None:
    seen = box.run("memory_basics.py")
    assert seen["total"] == CAPACITY
    assert seen["before"] == CAPACITY - CONTEXT
    assert seen["between"] == CAPACITY - CONTEXT - 50 * MIB - CHUNK
    assert seen["too_large"] is None
    assert seen["none_left"] == 0
    assert seen["after"] == seen["before"]


@pytest.mark.usefixtures("device")
def test_memory_keeps_what_is_written_reads_as_zero_before_and_ends_where_it_ends(box: Box) -> None:
    seen = box.run("memory_basics.py")
    assert seen["kept"] is True
    assert seen["untouched"] is True
    assert seen["beyond"] == 1


@pytest.mark.usefixtures("device")
def test_every_kind_of_copy_and_set_does_what_it_says(box: Box) -> None:
    seen = box.run("copies.py")
    assert seen.pop("pitch") == 1024
    assert seen.pop("host_pointer_unknown") == 1
    assert all(seen.values()), seen


@pytest.mark.usefixtures("device")
def test_each_context_costs_memory_and_a_destroyed_one_says_so(box: Box) -> None:
    seen = box.run("contexts.py")
    assert seen["one"] == CAPACITY - CONTEXT
    assert seen["two"] == CAPACITY - 2 * CONTEXT
    assert seen["back"] == seen["one"]
    assert (seen["is_current"], seen["popped_to_primary"]) == (True, True)
    assert seen["destroyed_again"] == 709
    assert seen["invented"] == 201
    assert (seen["was_active"], seen["active_after_release"]) == (1, 0)
    assert seen["after_release"] == 709


@pytest.mark.usefixtures("device")
def test_another_process_sees_the_memory_taken_with_the_pid_and_its_context(box: Box) -> None:
    holder = box.start("hold_memory.py", str(30 * MIB))
    held = first_answer(holder)
    seen = box.run("look.py")
    assert seen["processes"] == {str(held["pid"]): 30 * MIB + CONTEXT}
    assert seen["used"] == 30 * MIB + CONTEXT


def test_a_killed_process_leaves_nothing_in_memory_or_on_disk(box: Box, device: Path) -> None:
    holder = box.start("hold_memory.py", str(60 * MIB))
    first_answer(holder)
    assert disk_bytes(device) >= 60 * MIB
    kill(holder)
    assert held_memory(box) == (0, {})
    assert disk_bytes(device) == 0


@pytest.mark.usefixtures("device")
def test_the_next_allocation_takes_what_a_killed_process_held(box: Box) -> None:
    holder = box.start("hold_memory.py", str(200 * MIB))
    first_answer(holder)
    kill(holder)
    following = box.start("hold_memory.py", str(200 * MIB))
    assert "address" in first_answer(following)


@pytest.mark.usefixtures("device")
def test_memory_of_a_killed_process_comes_back_as_zeros(box: Box) -> None:
    holder = box.start("hold_memory.py", str(200 * MIB))
    first_answer(holder)
    kill(holder)
    assert box.run("memory_basics.py")["untouched"] is True


@pytest.mark.usefixtures("device")
def test_a_process_that_ends_without_freeing_leaves_nothing(box: Box) -> None:
    holder = box.start("hold_memory.py", str(60 * MIB))
    first_answer(holder)
    holder.communicate(timeout=30)
    assert holder.returncode == 0
    assert box.run("look.py")["used"] == 0


@pytest.mark.slow
def test_random_work_killed_at_random_moments_leaves_no_drift(box: Box, device: Path) -> None:
    rng = random.Random(7)
    for turn in range(6):
        workers = [box.start("churn.py", str(turn * 10 + index)) for index in range(3)]
        for worker in workers:
            first_answer(worker)
        for worker in workers:
            try:
                worker.wait(timeout=rng.uniform(0.02, 0.25))
            except subprocess.TimeoutExpired:
                kill(worker)
            else:
                raise AssertionError(worker.communicate()[1])
        assert held_memory(box) == (0, {})
        assert disk_bytes(device) == 0


@pytest.mark.usefixtures("device")
def test_a_forked_child_has_no_context_and_does_not_keep_its_parents_memory(box: Box) -> None:
    parent = box.start("forked.py")
    told = first_answer(parent)
    assert told["results"] == "[3, 3, 3]"
    assert told["parent_still_works"] is True
    os.kill(parent.pid, signal.SIGKILL)
    os.waitpid(parent.pid, 0)
    parent.returncode = -9
    try:
        os.kill(told["child"], 0)  # alive still
        assert held_memory(box) == (0, {})
    finally:
        os.kill(told["child"], signal.SIGKILL)


@pytest.mark.usefixtures("device")
def test_two_processes_never_share_a_byte_and_never_hold_more_than_the_device(box: Box) -> None:
    workers = [box.start("churn.py", str(seed)) for seed in (101, 102)]
    for worker in workers:
        first_answer(worker)
    for _ in range(5):
        seen = box.run("look.py")
        assert 0 < seen["used"] <= CAPACITY
        assert len(seen["processes"]) == 2
    for worker in workers:
        assert worker.poll() is None, worker.communicate()[1]


def namespaces(*flags: str) -> list[str]:
    command = ["unshare", *flags]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode != 0:
        pytest.skip(f"this machine does not let us run {' '.join(command)}")
    return command


def test_a_full_disk_is_out_of_memory_and_not_a_crash(box: Box, tmp_path: Path) -> None:
    command = namespaces("--user", "--map-root-user", "--mount")
    program = Path(__file__).parent / "programs" / "fill_disk.py"
    (tmp_path / "mounted").mkdir()
    device = box.add_device()
    script = (
        f"mount -t tmpfs -o size=24m none {tmp_path}/mounted && "
        f"mkdir -p {tmp_path}/mounted/softgpu && cp -r {device} {tmp_path}/mounted/softgpu/ && "
        f"exec {sys.executable} {program}"
    )
    environment = box.environment(ALIQUOT_STATE_DIR=str(tmp_path / "mounted"))
    result = subprocess.run(
        [*command, "sh", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == {
        "allocated": True,
        "write": 2,
        "small_write": 0,
        "read_of_the_rest": True,
    }


@pytest.mark.usefixtures("device")
def test_a_process_in_another_pid_namespace_is_shown_with_the_readers_pid_for_it(box: Box) -> None:
    command = namespaces("--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
    program = Path(__file__).parent / "programs" / "hold_memory.py"
    holder = subprocess.Popen(
        [*command, sys.executable, str(program), str(10 * MIB)],
        env=box.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    box.started.append(holder)
    inside = first_answer(holder)
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
    assert inside["pid"] != int(children[0])
    assert box.run("look.py")["processes"] == {children[0]: 10 * MIB + CONTEXT}
    holder.communicate("", timeout=30)

"""What software GPUs take of the machine: no more than the budget, whoever takes it and is killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

GIB = 1024 * MIB


def next_answer(process: subprocess.Popen[str], line: str) -> dict[str, int]:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return first_answer(process)


def budget_of(box: Box, text: str) -> None:
    (box.devices / "memory-budget").write_text(text)


@pytest.mark.usefixtures("device")
def test_chunks_beyond_the_budget_are_out_of_memory_and_cost_nothing(box: Box, device: Path) -> None:
    budget_of(box, "20M\n")
    process = box.start("budget.py", "16", "0")
    seen = first_answer(process)
    assert (seen["filled"], seen["refused"], seen["kept"]) == (10, [2], True)
    assert 20 * MIB <= (device / "arena").stat().st_blocks * 512 < 22 * MIB
    assert "memory the machine's budget for software GPUs is used up" in box.log(device)


def test_all_devices_and_processes_share_the_budget_and_the_killed_give_theirs_back(box: Box) -> None:
    box.add_device(bus=0x3B)
    box.add_device(bus=0x3C)
    budget_of(box, "20M")
    first = box.start("budget.py", "8", "0", CUDA_VISIBLE_DEVICES="0")
    assert first_answer(first)["filled"] == 8
    second = box.start("budget.py", "8", "0", CUDA_VISIBLE_DEVICES="1")
    assert first_answer(second)["filled"] == 2
    first.kill()
    first.wait()
    assert next_answer(second, "again")["again"] == 8


@pytest.mark.parametrize("value", ["nonsense", "-1", "8X", "8GG", "1.5G", "99999999999999999999"])
def test_a_budget_that_makes_no_sense_is_named_and_no_program_begins(
    box: Box, device: Path, value: str
) -> None:
    process = box.start("budget.py", "1", "0", ALIQUOT_SOFTGPU_MEMORY_BUDGET=value)
    assert "AssertionError: b'CUDA_ERROR_INVALID_VALUE'" in process.communicate(timeout=60)[1]
    (line,) = box.log(device)
    assert line.startswith(
        f"memory-budget ALIQUOT_SOFTGPU_MEMORY_BUDGET says '{value.splitlines()[0]}', which is no"
    )


@pytest.mark.parametrize("value", ["20M", "20MiB", "20480K", "20971520", " "])
def test_a_budget_is_of_bytes_or_of_a_binary_unit(box: Box, device: Path, value: str) -> None:
    budget_of(box, "20M\n" if value == " " else "-1")
    seen = box.run("budget.py", "16", "0", ALIQUOT_SOFTGPU_MEMORY_BUDGET=value.strip())
    assert seen["filled"] == 10
    assert box.log(device) == ["memory the machine's budget for software GPUs is used up"]


def test_a_file_that_makes_no_sense_is_named_as_well(box: Box, device: Path) -> None:
    budget_of(box, "much\n")
    assert box.start("budget.py", "1", "0").wait(timeout=60) != 0
    assert "memory-budget the file memory-budget says 'much'" in box.log(device)[0]


@pytest.mark.usefixtures("device")
def test_page_locked_memory_counts_while_its_process_lives(box: Box) -> None:
    budget_of(box, "20M")
    first = box.start("budget.py", "2", "30")
    seen = first_answer(first)
    assert (seen["filled"], seen["host"], seen["host_refused"]) == (2, 16, [2])
    second = box.start("budget.py", "4", "0")
    assert first_answer(second)["filled"] == 0
    next_answer(first, "give back")
    assert next_answer(second, "again")["again"] == 4
    third = box.start("budget.py", "1", "30")
    assert first_answer(third)["host"] == 6
    third.kill()
    third.wait()
    fourth = box.start("budget.py", "1", "30")
    assert first_answer(fourth)["host"] == 6


def test_a_device_of_80_gib_runs_on_any_machine_as_long_as_little_of_it_is_written(box: Box) -> None:
    device = box.add_device(memory_bytes=80 * GIB)
    seen = box.run("large_device.py")
    assert seen["allocated"] == 70 * GIB
    assert seen["kept"] is True
    assert (device / "arena").stat().st_blocks * 512 <= 16 * MIB


def test_a_kernel_without_end_is_ended_after_the_time_of_the_profile_and_only_its_context_with_it(
    box: Box,
) -> None:
    box.add_device(kernel_timeout_ms=300)
    assert box.run("endless.py") == {"limited": 1, "launched": 0, "ended": [702, 702], "other": 77}

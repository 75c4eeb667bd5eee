"""What software GPUs take of the machine: no more than the budget, whoever takes it and is killed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

DEVICE = Path(__file__).parents[3] / "native" / "softgpu" / "device"
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


LIMITS = {
    "no group": ({}, 1000 * MIB, 2**64 - 1, 0),
    "version 2": (
        {"cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": str(600 * MIB)},
        1000 * MIB,
        600 * MIB,
        0,
    ),
    "version 2 without limit": (
        {"cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max"},
        1000 * MIB,
        2**64 - 1,
        0,
    ),
    "version 2 seen from inside": (
        {"cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "104857600"},
        1000 * MIB,
        100 * MIB,
        0,
    ),
    "version 1": (
        {
            "cgroup": "4:memory:/docker/x\n",
            "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": str(300 * MIB),
        },
        1000 * MIB,
        300 * MIB,
        0,
    ),
    "version 2, full but for its page cache": (
        {
            "cgroup": "0::/a\n",
            "sys/fs/cgroup/a/memory.max": str(600 * MIB),
            "sys/fs/cgroup/a/memory.current": str(590 * MIB),
            "sys/fs/cgroup/a/memory.stat": f"anon 1\ninactive_file {100 * MIB}\nactive_file 0\n",
        },
        1000 * MIB,
        600 * MIB,
        0,
    ),
    "version 2, full": (
        {
            "cgroup": "0::/a\n",
            "sys/fs/cgroup/a/memory.max": str(600 * MIB),
            "sys/fs/cgroup/a/memory.current": str(590 * MIB),
        },
        1000 * MIB,
        600 * MIB,
        1,
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_machines_memory_is_read_with_the_limits_of_its_control_groups(
    case: str, tmp_path: Path, compile_c: Callable[..., Path]
) -> None:
    files, available, limit, exhausted = LIMITS[case]
    files = {"proc/meminfo": "MemTotal: 2048000 kB\nMemFree: 1 kB\nMemAvailable: 1024000 kB\n"} | files
    for name, text in files.items():
        path = tmp_path / ("proc/self/cgroup" if name == "cgroup" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include "machine_memory.h"\nint main(void) { sg_machine_memory m;'
        " if (!sg_machine_memory_read(&m)) return 1;"
        ' printf("%ju %ju %d\\n", (uintmax_t)m.available, (uintmax_t)m.limit, m.exhausted);'
        " return 0; }\n"
    )
    program = compile_c(
        main, DEVICE / "machine_memory.c", flags=(f"-I{DEVICE}", f'-DSG_SYSTEM_ROOT="{tmp_path}"')
    )
    out = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(available), str(limit), str(exhausted)]


def test_a_kernel_without_end_is_ended_after_the_time_of_the_profile_and_only_its_context_with_it(
    box: Box,
) -> None:
    box.add_device(kernel_timeout_ms=300)
    assert box.run("endless.py") == {"limited": 1, "launched": 0, "ended": [702, 702], "other": 77}

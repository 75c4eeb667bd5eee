"""A fault leaves one line in its device's log: which process and kernel, what it did, and what lies there."""

# ruff: noqa: E501 -- lines of the log

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.native.softgpu.machine import Box

WRITE = "kernel lab::write, block (0,0,0), thread (0,0,0), PTX line 7, st.global.u64: a store of 8 bytes at "
NAMED = " (the kernel's name in the PTX is _ZN3lab5writeB2v1Ey)"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], list[str]]:
    """What the program answered, and what the log says of each fault, in their order."""
    box = Box(tmp_path_factory.mktemp("machine") / "state")
    device = box.add_device(kernel_timeout_ms=100)
    seen = box.run("fault_log.py")
    return seen, box.log(device)


def said(lines: tuple[dict[str, int], list[str]], name: str) -> tuple[int, str]:
    """The address of the fault's allocation; its line without time, process and the kernel's long name."""
    seen, log = lines
    line = log[[key for key in seen if key != "pid"].index(name)]
    begin = re.match(rf"fault \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ pid {seen['pid']} \(python[^)]*\) ", line)
    assert begin, line
    return seen[name], line[begin.end() :].removesuffix(NAMED)


def test_each_fault_has_one_line(lines: tuple[dict[str, int], list[str]]) -> None:
    seen, log = lines
    assert len(log) == len(seen) - 1


@pytest.mark.parametrize(
    ("name", "offset", "where"),
    [
        ("behind", 4000, "; right behind the allocation of 4000 bytes at {address:#x}"),
        ("further", 4008, "; 8 bytes behind the allocation of 4000 bytes at {address:#x}"),
        ("before", -16, "; 16 bytes before the allocation of 3145728 bytes at {address:#x}"),
        ("across", 4000, "; its last 4 bytes lie behind the allocation of 4004 bytes at {address:#x}"),
        ("other", 16, "; it begins at byte 16 of the allocation of 4000 bytes at {address:#x}, which is of another context"),
    ],
)  # fmt: skip
def test_an_address_is_told_with_the_allocation_next_to_it(
    lines: tuple[dict[str, int], list[str]], name: str, offset: int, where: str
) -> None:
    address, line = said(lines, name)
    reason = " is outside all memory that this context may reach"
    assert line == (
        f"CUDA_ERROR_ILLEGAL_ADDRESS in {WRITE}{address + offset:#x}{reason}{where.format(address=address)}"
    )


def test_memory_that_was_freed_is_said_to_be(lines: tuple[dict[str, int], list[str]]) -> None:
    address, line = said(lines, "freed")
    assert line.startswith(f"CUDA_ERROR_ILLEGAL_ADDRESS in {WRITE}{address + 8:#x} ")
    assert line.endswith(f"; 3145728 bytes at {address:#x} that held it were freed")


def test_a_misaligned_address_is_told_with_what_it_should_be(lines: tuple[dict[str, int], list[str]]) -> None:
    address, line = said(lines, "misaligned")
    assert line == (
        f"CUDA_ERROR_MISALIGNED_ADDRESS in {WRITE}{address + 12:#x} is not aligned: it has to be at a multiple of 8"
        f"; it begins at byte 12 of the allocation of 4000 bytes at {address:#x}"
    )


def test_what_is_no_access_is_told_as_well(lines: tuple[dict[str, int], list[str]]) -> None:
    where = ", block (0,0,0), thread (0,0,0), PTX line "
    assert said(lines, "traps")[1] == (
        f"CUDA_ERROR_LAUNCH_FAILED in kernel stops{where}11 in stop, trap: the kernel executed trap"
    )
    assert said(lines, "endless")[1] == (
        f"CUDA_ERROR_LAUNCH_TIMEOUT in kernel endless{where}20, bra: the kernel ran longer than 100 ms; "
        "1 of its 2 blocks had begun"
    )
    assert said(lines, "barrier")[1] == (
        f"CUDA_ERROR_LAUNCH_FAILED in kernel parted{where}25, barrier.sync: barrier 20: there are 16"
    )


def test_a_null_pointer_is_called_one(lines: tuple[dict[str, int], list[str]]) -> None:
    assert said(lines, "null")[1].endswith(
        "is outside all memory that this context may reach; a null pointer"
    )


def test_faults_are_told_each_time_until_the_log_is_full(box: Box, device: Path) -> None:
    box.run("fault_on.py", "0 trap", "2")
    assert [line.split()[0] for line in box.log(device)] == ["fault", "fault"]
    (device / "log").write_text("x" * (1 << 20) + "\n")
    box.run("fault_on.py", "0 trap")
    assert len(box.log(device)) == 1

"""Failures on demand: told by the command's own code or by hand, while a program runs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import Box, first_answer

from aliquot.model import AliquotError, GpuUuid
from aliquot.softgpu.devices import SoftGpu
from aliquot.softgpu.failing import clear_failures, order_failures, parse_failures

FAILED, UNAVAILABLE, OK = "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_SUCCESS"
NO_MEMORY, ECC = "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_ECC_UNCORRECTABLE"
GPU_IS_LOST, NOT_SUPPORTED = 15, 3


class Program:
    def __init__(self, box: Box, folder: Path) -> None:
        self.device = SoftGpu(GpuUuid(folder.name), folder)
        self.process: subprocess.Popen[str] = box.start("failing_device.py")
        assert first_answer(self.process)["ready"]

    def fail(self, text: str) -> None:
        order_failures(self.device, parse_failures(text), at=time.time_ns())

    def send(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def ask(self, command: str) -> Any:
        self.send(command)
        return first_answer(self.process)["seen"]


@pytest.fixture(params=["real", "virtual"])
def program(box: Box, request: pytest.FixtureRequest) -> Program:
    return Program(box, box.add_device(time=request.param))


def test_the_third_allocation_fails_and_the_fourth_does_not(program: Program) -> None:
    program.fail("alloc=3")
    assert [program.ask("allocate") for _ in range(4)] == [OK, OK, NO_MEMORY, OK]
    program.fail("alloc=2+")
    assert [program.ask("allocate") for _ in range(3)] == [OK, NO_MEMORY, NO_MEMORY]


def test_every_call_that_gives_device_memory_counts(program: Program) -> None:
    kinds = ["allocate", "create", "array", "mipmap", "pool", "node"]
    assert [program.ask(kind) for kind in kinds] == [OK] * 6
    program.fail("alloc=6")
    assert [program.ask(kind) for kind in kinds] == [OK] * 5 + [NO_MEMORY]
    program.fail("alloc=2+")
    assert [program.ask(kind) for kind in kinds] == [OK] + [NO_MEMORY] * 5
    clear_failures(program.device)
    assert [program.ask(kind) for kind in kinds] == [OK] * 6


def test_an_xid_is_told_once_and_ends_the_context_for_good(program: Program) -> None:
    program.fail("xid=13")
    assert program.ask("event") == [0, 8, 13]
    assert program.ask("kernel")[0] == FAILED
    clear_failures(program.device)
    assert program.ask("kernel")[0] == FAILED


def test_the_same_xid_twice_is_one_event_until_it_is_cleared(program: Program) -> None:
    program.fail("xid=63")
    program.fail("xid=63")
    assert program.ask("event") == [0, 8, 63]
    assert program.ask("kernel")[0] == OK
    clear_failures(program.device)
    program.fail("xid=63,xid=92")
    assert [program.ask("event")[2] for _ in range(2)] == [63, 92]


@pytest.mark.parametrize("xid", [48, 62, 74, 95, 119])
def test_an_xid_that_needs_a_reset_ends_contexts_too(box: Box, xid: int) -> None:
    program = Program(box, box.add_device())
    program.fail(f"xid={xid}")
    assert program.ask("kernel")[0] not in (OK, UNAVAILABLE)


def test_errors_of_memory_are_told_and_uncorrected_ones_end_the_context(program: Program) -> None:
    program.fail("ecc=corrected:5")
    assert program.ask("event")[:2] == [0, 1]
    assert program.ask("kernel")[0] == OK
    program.fail("ecc=uncorrected")
    assert program.ask("event")[:2] == [0, 2]
    assert program.ask("kernel")[0] == ECC


def test_a_lost_device_is_lost_for_driver_and_nvml(program: Program, box: Box) -> None:
    program.fail("lost")
    assert program.ask("kernel")[0] == UNAVAILABLE
    assert program.ask("power") == GPU_IS_LOST
    late = box.start("failing_device.py")
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in late.communicate(timeout=30)[1]


def test_a_slow_device_takes_so_many_times_as_long(box: Box) -> None:
    program = Program(box, box.add_device(time="virtual"))
    result, usual = program.ask("kernel")
    program.fail("slow=2.5")
    assert (result, program.ask("kernel")[1]) == (OK, int(usual * 2.5))


def test_a_kernel_hangs_until_that_is_taken_back(program: Program) -> None:
    program.fail("hang")
    program.send("kernel")
    with pytest.raises(subprocess.TimeoutExpired):
        program.process.wait(timeout=0.4)
    clear_failures(program.device)
    assert first_answer(program.process)["seen"][0] == OK


def test_kernels_that_hang_take_turns_too(box: Box) -> None:
    device = box.add_device()
    programs = [Program(box, device) for _ in range(2)]
    programs[0].fail("hang")
    for program in programs:
        program.send("kernel")
    for _ in range(500):
        seen = box.run("oracle.py", str(device))
        if seen["preemptions"] > 10 and min(one["compute_ns"] for one in seen["accounts"]) > 0:
            break
    else:
        raise AssertionError(seen)
    clear_failures(programs[0].device)
    assert [first_answer(program.process)["seen"][0] for program in programs] == [OK, OK]


def test_an_older_driver_lacks_what_came_later(program: Program) -> None:
    assert program.ask("versions")[2] == 0
    program.fail("driver=470")
    assert program.ask("versions") == [11040, "470.00.00", 1]
    program.fail("driver=535")
    assert program.ask("versions") == [12020, "535.00.00", 0]


def test_a_part_of_nvml_is_not_supported(program: Program) -> None:
    assert program.ask("power") == 0
    program.fail("without=power")
    assert program.ask("power") == NOT_SUPPORTED


def test_a_file_written_by_hand_does_the_same_and_a_line_that_cannot_be_read_is_named(
    program: Program, box: Box
) -> None:
    (program.device.folder / "failures").write_text("# mine\nnonsense=1\nxid=13\n")
    assert program.ask("event") == [0, 8, 13]
    deadline = time.monotonic() + 5
    while program.ask("kernel")[0] == OK and time.monotonic() < deadline:
        pass
    assert program.ask("kernel")[0] == FAILED
    assert box.log(program.device.folder) == ["failures nonsense=1"]


def test_what_the_command_and_the_driver_read_is_one_grammar(box: Box) -> None:
    folder = box.add_device()
    every = "alloc=3+,xid=13,ecc=corrected:7,ecc=uncorrected,lost,hang,slow=2.25,driver=580,without=power"
    order_failures(SoftGpu(GpuUuid(folder.name), folder), parse_failures(every), at=1)
    assert box.start("failing_device.py").communicate(timeout=30)[1]  # the device is lost
    assert box.log(folder) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("xid=0", 4),
        ("xid=13,foo", 7),
        ("lost=1", 4),
        ("slow=0.5", 5),
        ("driver=471", 7),
        ("without=gold", 8),
        ("", 0),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, place: int) -> None:
    with pytest.raises(AliquotError) as refused:
        parse_failures(text)
    assert refused.value.facts[:2] == (text, f"{' ' * place}^")

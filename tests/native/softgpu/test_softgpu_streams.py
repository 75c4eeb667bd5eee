"""What streams order. Each test is a C program on the driver API that says nothing when all is well."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.softgpu.machine import LIBRARIES, ROOT, Box

HERE = Path(__file__).parent / "c"
DRIVER = ROOT / "native" / "softgpu" / "driver"


def run_program(box: Box, compile_c: Callable[..., Path], source: str) -> None:
    flags = (f"-I{DRIVER}", f"-I{HERE}")
    program = compile_c(HERE / source, LIBRARIES / "libcuda.so.1", flags=flags)
    result = subprocess.run(
        [str(program)], env=box.environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("program", ["stream_order", "graphs", "capture", "stream_values"])
def test_a_program_on_streams_ends_well(box: Box, compile_c: Callable[..., Path], program: str) -> None:
    run_program(box, compile_c, f"{program}.c")


@pytest.mark.usefixtures("device")
def test_cuda_core_captures_forks_joins_and_launches_graphs(box: Box, client_python: str) -> None:
    seen = box.run("cuda_core_graphs.py", python=client_python)
    assert (seen["before"], seen["after"]) == ([1, 10], seen["expected"])
    assert seen["done"] is True
    assert 0 < seen["elapsed"] < 20_000

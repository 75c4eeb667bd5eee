"""The shared state is a file that every tenant can write to: nonsense in it must crash nobody."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from tests.native.softgpu.machine import PROGRAMS, Box

HEADER_BYTES = 16  # magic, version, number of chunks


def test_nonsense_in_the_shared_state_crashes_neither_driver_nor_nvml(box: Box, device: Path) -> None:
    box.run("look.py")
    state = device / "state"
    size = state.stat().st_size
    for seed in range(6):
        nonsense = random.Random(seed).randbytes(size - HEADER_BYTES)
        state.write_bytes(state.read_bytes()[:HEADER_BYTES] + nonsense)
        for program in ("look.py", "memory_basics.py"):
            result = subprocess.run(
                [sys.executable, str(PROGRAMS / program)],
                env=box.environment(),
                capture_output=True,
                check=False,
            )
            assert result.returncode == 0, result.stderr


def test_a_state_of_another_layout_is_refused_and_not_written_over(box: Box, device: Path) -> None:
    box.run("look.py")
    state = device / "state"
    other = bytearray(state.read_bytes())
    other[8] = 99  # the version
    state.write_bytes(other)
    result = subprocess.run(
        [sys.executable, str(PROGRAMS / "memory_basics.py")],
        env=box.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in result.stderr
    assert state.read_bytes() == bytes(other)

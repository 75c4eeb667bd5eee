"""The driver, its engine and the shared state, built with the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.softgpu.machine import ROOT, Box

HERE = Path(__file__).parent
DRIVER = ROOT / "native" / "softgpu" / "driver"
SANITIZE = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer")


@pytest.fixture
def sanitized_driver() -> Path:
    # A folder that stays: the engine takes minutes to compile this way, and seconds the second time.
    build = ROOT / "build" / "sanitize"
    output = build / "out"
    configure = [
        "cmake",
        "-S",
        str(ROOT),
        "-B",
        str(build),
        "-DALIQUOT_SANITIZE=ON",
        "-DCMAKE_BUILD_TYPE=Debug",
    ]
    configure += [f"-DALIQUOT_NATIVE_OUTPUT={output}", f"-DPython3_EXECUTABLE={sys.executable}"]
    for command in (
        configure,
        ["cmake", "--build", str(build), "--target", "softgpu_cuda", "--parallel", "2"],
    ):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    return output / "softgpu"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["driver_under_sanitizers", "stream_order", "graphs", "capture", "stream_values"])
def test_threads_contexts_faults_streams_and_forks_are_clean_under_sanitizers(
    box: Box, sanitized_driver: Path, compile_c: Callable[..., Path], source: str
) -> None:
    box.add_device()
    program = compile_c(
        HERE / "c" / f"{source}.c",
        sanitized_driver / "libcuda.so.1",
        flags=(*SANITIZE, f"-I{DRIVER}", f"-I{HERE / 'c'}", f"-Wl,-rpath,{sanitized_driver}"),
    )
    environment = box.environment(
        LD_LIBRARY_PATH=str(sanitized_driver),
        # Contexts are never freed, on purpose: see sg_context_dismantle.
        ASAN_OPTIONS="detect_leaks=0:abort_on_error=0",
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
    result = subprocess.run([str(program)], env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")

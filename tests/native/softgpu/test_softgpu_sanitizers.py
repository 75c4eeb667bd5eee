"""The driver, its engine, NVML and the shared state, built with the sanitizers of addresses and behaviour."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.cmake_build import cmake_build
from tests.native.softgpu.machine import ROOT, Box
from tests.native.softgpu.nvml_questions import nonsense_questions

HERE = Path(__file__).parent
DRIVER = ROOT / "native" / "softgpu" / "driver"
SANITIZE = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer")


def sanitized(target: str) -> Path:
    # A folder that stays: the engine takes minutes to compile this way, and seconds the second time.
    folder = ROOT / "build" / "sanitize"
    output = folder / "out"
    options = ["-DALIQUOT_SANITIZE=ON", "-DCMAKE_BUILD_TYPE=Debug", f"-DALIQUOT_NATIVE_OUTPUT={output}"]
    cmake_build(folder, target, options)
    return output / "softgpu"


@pytest.fixture
def sanitized_driver() -> Path:
    return sanitized("softgpu_cuda")


@pytest.fixture
def sanitized_nvml() -> Path:
    return sanitized("softgpu_nvml")


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["driver_under_sanitizers", "stream_order", "graphs", "capture", "stream_values"]
)
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


@pytest.mark.slow
@pytest.mark.usefixtures("device")
def test_nonsense_for_nvmls_arguments_is_clean_under_sanitizers(box: Box, sanitized_nvml: Path) -> None:
    """In a Python without sanitizers, whose library must therefore be loaded first."""
    found = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    seen = box.run(
        "nvml_nonsense.py",
        nonsense_questions(),
        LD_LIBRARY_PATH=str(sanitized_nvml),
        LD_PRELOAD=found.stdout.strip(),
        ASAN_OPTIONS="detect_leaks=0:abort_on_error=0",  # of the interpreter
        UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1",
    )
    assert seen == {"succeeded": [], "uninitialised": []}

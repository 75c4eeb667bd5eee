"""Clients of CUDA 12, and those that come as source; and what does not run, with what it is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.native.softgpu.machine import Box


def has(python: str, module: str) -> bool:
    return (
        subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    ["vector_add", "saxpy", "matmul", "shuffle_reduction", "shared_reduction", "atomics", "illegal_address"],
)
def test_numba_with_cuda_12_computes_what_numpy_does(
    box: Box, device: Path, more_client_python: str, case: str
) -> None:
    assert box.run("numba_kernels.py", case, python=more_client_python)["right"] is True
    log = box.log(device)
    assert len(log) == (case == "illegal_address")
    assert all("CUDA_ERROR_ILLEGAL_ADDRESS in kernel __main__::illegal_address" in line for line in log)


@pytest.mark.slow
def test_pycuda_runs_what_nvrtc_compiles(box: Box, device: Path, more_client_python: str) -> None:
    if not has(more_client_python, "pycuda"):
        pytest.skip("PyCUDA is not in .clients-more: it could not be built, see tools/setup")
    seen = box.run("pycuda_client.py", python=more_client_python)
    assert seen["name"] == "Aliquot Test GPU"
    assert (seen["given"], seen["in_stream"], seen["scaled"]) == (True, True, True)
    assert (seen["constant_bytes"], seen["took"] >= 0) == (16, True)
    assert box.log(device) == []


def test_nvidias_cuda_runtime_fails_and_the_log_says_why(box: Box, device: Path, client_python: str) -> None:
    """The sentence is the one that docs/softgpu.md quotes."""
    found = sorted(
        Path(client_python).parents[1].glob("lib/python3*/site-packages/nvidia/cu13/lib/libcudart.so.13")
    )
    if not found:
        pytest.skip("the client environment has no libcudart")
    seen = box.run("cuda_runtime_client.py", str(found[0]))
    assert (seen["counted"], seen["allocated"]) == ("cudaErrorSymbolNotFound", "cudaErrorSymbolNotFound")
    assert (seen["sentence"], seen["count"]) == ("named symbol not found", -1)
    assert box.log(device) == ["program built on NVIDIA's CUDA runtime: it runs on NVIDIA's driver only"]

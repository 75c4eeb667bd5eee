"""Triton, unmodified and without torch: it compiles, launches, and the numbers are right. And its ptxas."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.native.softgpu.machine import LIBRARIES, Box

from aliquot.softgpu import environment

A100 = {"compute_major": 8, "compute_minor": 0}
H100 = {
    "compute_major": 9,
    "compute_minor": 0,
    "shared_per_block_optin_bytes": 232448,
    "shared_per_multiprocessor_bytes": 233472,
}
TURNED = ["ldmatrix", "mma.sync"]
MULTIPLIED = {
    "matmul_f16": (TURNED, ["wgmma"]),
    "matmul_f16_wide": (TURNED, ["wgmma"]),
    "matmul_bf16": (TURNED, ["wgmma"]),
    "matmul_tf32": (TURNED, ["wgmma"]),
    "matmul_f8": (TURNED, ["wgmma"]),
    "matmul_s8": (TURNED, ["wgmma"]),
    "matmul_computed_a": (TURNED, ["ldmatrix", "wgmma of registers"]),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Triton's: the helper that it compiles with gcc is the same for every case."""
    return tmp_path_factory.mktemp("triton")


def run_triton(box: Box, python: str, cache: Path, case: str) -> list[str]:
    variables = environment(LIBRARIES) | {"TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"}
    seen = box.run("triton_kernels.py", case, python=python, **variables)
    assert seen["right"] is True
    return list(seen["instructions"])


@pytest.mark.slow
@pytest.mark.parametrize("card", [A100, H100], ids=["sm_80", "sm_90"])
@pytest.mark.parametrize("case", ["add", "softmax", *MULTIPLIED])
def test_triton_computes_what_numpy_does(
    box: Box, more_client_python: str, cache: Path, card: dict[str, int], case: str
) -> None:
    device = box.add_device(**card)
    instructions = run_triton(box, more_client_python, cache, case)
    if case in MULTIPLIED:
        assert instructions == MULTIPLIED[case][card is H100]
    assert box.log(device) == []


@pytest.mark.slow
def test_a_tensor_map_is_refused_by_name(box: Box, more_client_python: str, cache: Path) -> None:
    device = box.add_device(**H100)
    assert run_triton(box, more_client_python, cache, "descriptor") == [
        "Triton Error [CUDA]: operation not supported"
    ]
    (line,) = box.log(device)
    assert "tensormap.replace.tile.global_address.shared::cta.b1024.b64 is not supported" in line


def ptxas(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(LIBRARIES / "ptxas"), *words], text=True, capture_output=True, check=False)


def test_the_passing_ptxas_names_a_release_and_not_nvidia_as_its_maker() -> None:
    answer = ptxas("--version").stdout
    assert "release 13.0" in answer
    assert "NVIDIA (R)" not in answer


def test_the_passing_ptxas_writes_what_it_reads(tmp_path: Path) -> None:
    text, out = tmp_path / "with space.ptx", tmp_path / "out.o"
    text.write_bytes(b".version 9.0\n\0")
    options = ["-lineinfo", "-v", "--opt-level", "0", "--regAllocOptLevel=2", "--gpu-name=sm_90a"]
    done = ptxas(*options, str(text), "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_bytes() == text.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no input file"),
        (["/nowhere.ptx"], "no file /nowhere.ptx"),
        (["a", "b"], "two inputs"),
        (["-o"], "-o needs"),
    ],
)
def test_the_passing_ptxas_says_what_is_wrong(words: list[str], said: str) -> None:
    done = ptxas(*words)
    assert done.returncode == 1
    assert said in done.stderr

"""Unmodified client programs on a software GPU: numba-cuda as it comes, cuda.core with NVRTC."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.native.softgpu.machine import LIBRARIES, SONAMES, Box


@pytest.mark.parametrize(
    "case",
    [
        "matmul",
        "illegal_address",
        *(  # each a start of numba, which takes a second and more
            pytest.param(case, marks=pytest.mark.slow)
            for case in (
                *("vector_add", "saxpy", "atomics", "shuffle_reduction", "shared_reduction"),
                *("constants_and_streams", "other_memory", "closed"),
            )
        ),
    ],
)
def test_numba_computes_what_numpy_does(box: Box, device: Path, client_python: str, case: str) -> None:
    assert box.run("numba_kernels.py", case, python=client_python)["right"] is True
    log = box.log(device)
    assert len(log) == (case == "illegal_address")
    if log:
        assert (
            " in kernel __main__::illegal_address::<locals>::kernel, block (0,0,0), thread (0,0,0)" in log[0]
        )
        assert "st.global.u8: a store of 1 byte at" in log[0]


@pytest.mark.slow
@pytest.mark.parametrize(("major", "minor"), [(7, 5), (9, 0)])
def test_numba_runs_on_every_profile(box: Box, client_python: str, major: int, minor: int) -> None:
    box.add_device(compute_major=major, compute_minor=minor)
    assert box.run("numba_kernels.py", "shuffle_reduction", python=client_python)["right"] is True


@pytest.mark.slow
@pytest.mark.usefixtures("device")
def test_a_kernel_that_numba_cached_runs_in_another_process(
    box: Box, client_python: str, tmp_path: Path
) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first = box.run("numba_cached.py", python=client_python, **cache)
    second = box.run("numba_cached.py", python=client_python, **cache)
    assert first == {"hits": 0, "right": True}
    assert second == {"hits": 1, "right": True}


@pytest.mark.usefixtures("device")
def test_cuda_core_compiles_with_nvrtc_and_launches(box: Box, client_python: str) -> None:
    seen = box.run("cuda_core_client.py", python=client_python)
    assert seen["right"] is True
    assert (seen["name"], seen["initial_counter"], seen["arguments"]) == ("Aliquot Test GPU", 5, 4)


@pytest.mark.slow
def test_numba_runs_through_a_share_folder_of_symlinks(
    box: Box, device: Path, client_python: str, tmp_path: Path
) -> None:
    folder = tmp_path / "driver"
    (folder / "softgpu").mkdir(parents=True)
    for name in SONAMES:
        (folder / name).symlink_to(LIBRARIES / name)
    (folder / "softgpu" / device.name).symlink_to(device)
    seen = box.run(
        "numba_kernels.py",
        "vector_add",
        python=client_python,
        LD_LIBRARY_PATH=str(folder),
        ALIQUOT_STATE_DIR=str(tmp_path / "nothing"),
    )
    assert seen["right"] is True

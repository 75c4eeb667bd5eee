"""Unmodified numba-cuda in a share, its results beside numpy's."""

import os
from pathlib import Path

import pytest
from tests.flow.box import Box

_CHECKOUT = Path(__file__).resolve().parents[2]
_PROGRAM = Path(__file__).parent / "programs" / "numba_kernels.py"


@pytest.fixture
def client_python() -> Path:
    """A Python with numba-cuda and without Aliquot: `make clients` makes it."""
    python = Path(os.environ.get("ALIQUOT_CLIENT_PYTHON", _CHECKOUT / ".clients/bin/python"))
    if not python.exists():
        pytest.skip(f"no Python with numba-cuda at {python}: run `make clients`")
    return python


def test_numba_kernels_are_right_in_a_share(gpu_box: Box, client_python: Path, tmp_path: Path) -> None:
    gpu_box.environ["NUMBA_CACHE_DIR"] = str(tmp_path / "numba")
    for attempt in ("compiled", "from numba's own disk cache, in another process"):
        done = gpu_box.aliquot("run", "-q", "--gpu", "1/4", "--", str(client_python), str(_PROGRAM))
        assert done.returncode == 0, f"{attempt}: {done.stdout}{done.stderr}"
        assert done.stdout.split() == [
            "share", "vector-add", "saxpy", "matmul", "sum-by-shuffles", "sum-by-atomics", "histogram"
        ]  # fmt: skip

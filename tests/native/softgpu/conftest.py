"""A machine with software GPUs for each test, and the Python of unmodified client programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.native.softgpu.machine import LIBRARIES, ROOT, SONAMES, Box

Compile = Callable[..., Path]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    for library in SONAMES:
        if not (LIBRARIES / library).exists():
            pytest.fail(f"{LIBRARIES / library} is missing: build the native parts first")
    made = Box(tmp_path / "state")
    yield made
    made.close()


@pytest.fixture
def device(box: Box) -> Path:
    return box.add_device()


@pytest.fixture(scope="session")
def client_python() -> str:
    """A Python with CUDA packages and no Aliquot: unmodified client programs run there."""
    candidates = [str(ROOT / ".clients" / "bin" / "python"), os.environ.get("ALIQUOT_CLIENT_PYTHON", "")]
    for candidate in candidates:
        if candidate and Path(candidate).exists():
            return candidate
    pytest.skip("no Python with CUDA packages: neither .clients/bin/python nor $ALIQUOT_CLIENT_PYTHON")


@pytest.fixture(scope="session")
def more_client_python() -> str:
    """The Python of tools/clients-more.txt, which `make test-all` sets up and `make test` does not."""
    python = ROOT / ".clients-more" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there: `make clients-more` sets it up")
    return str(python)


@pytest.fixture(scope="session")
def cuda_headers(client_python: str) -> Path:
    """The folder of NVIDIA's own cuda.h, where the client environment has it."""
    question = "import importlib.util as u; print(list(u.find_spec('nvidia').submodule_search_locations)[0])"
    found = subprocess.run([client_python, "-c", question], capture_output=True, text=True, check=False)
    folder = Path(found.stdout.strip()) / "cu13" / "include"
    if found.returncode != 0 or not (folder / "cuda.h").exists():
        pytest.skip("the client environment has no cuda.h")
    return folder


@pytest.fixture
def compile_c(tmp_path: Path) -> Compile:
    """Compile C sources with the project's warnings; returns the program."""

    def compiled(*sources: Path, flags: tuple[str, ...] = ()) -> Path:
        program = tmp_path / "program"
        command = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", *flags]
        result = subprocess.run(
            [*command, *map(str, sources), "-o", str(program), "-lpthread", "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return program

    return compiled

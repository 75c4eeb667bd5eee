"""An unmodified numba program in a Debian image on real engines, held to its share."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.contract.conftest import needs
from tests.contract.governed_share import LIMIT, GovernedShare
from tests.contract.tenancy import given_share

from engines.docker import DockerSetup
from engines.podman import PodmanSetup

pytestmark = [pytest.mark.engine, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "python:debian"


@pytest.fixture(scope="module")
def clients() -> Path:
    """The environment that has numba and no Aliquot."""
    folder = Path(os.environ.get("ALIQUOT_CLIENTS", ROOT / ".clients"))
    if not list(folder.glob("lib/python3.*/site-packages/numba_cuda")):
        pytest.skip(f"no numba-cuda in {folder}: `make clients` installs it")
    return folder


@pytest.fixture(scope="module")
def python_image() -> Path:
    needs("debootstrap")
    script = ROOT / "tools" / "engines" / "debian_image.sh"
    return Path(subprocess.run([script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


@pytest.fixture(params=["podman-cdi", "debian_docker-flags", "newest_docker-cdi"])
def python_way(request: pytest.FixtureRequest, python_image: Path) -> tuple[PodmanSetup | DockerSetup, bool]:
    name, _, by = request.param.rpartition("-")
    setup = request.getfixturevalue(name)
    with python_image.open("rb") as tar:
        setup.run("import", "-", IMAGE, stdin=tar, check=True, timeout=120)
    return setup, by == "cdi"


def test_a_numba_program_runs_right_in_its_share_and_no_further(
    python_way: tuple[PodmanSetup | DockerSetup, bool], clients: Path, governed: GovernedShare
) -> None:
    setup, by_cdi = python_way
    program = Path(__file__).with_name("numba_program.py")
    # As a user's site folder, and not by PYTHONPATH: numba-cuda takes numba.cuda's place by a .pth.
    options = (
        *("-v", f"{clients}:/clients:ro", "-e", "PYTHONUSERBASE=/clients"),
        *("-v", f"{program}:/program.py:ro", "-e", "NUMBA_CACHE_DIR=/tmp"),
    )
    with given_share(setup, governed, governed.edits(), by_cdi=by_cdi) as held:
        done = held.run(*options, IMAGE, "python3", "/program.py")
    assert done.stdout.splitlines() == ["devices 1", f"total {LIMIT}", "right True", "past True"], done.stderr

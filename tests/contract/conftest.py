"""Real engines, each in a scratch folder of its own for the length of the session."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tools")]

from tests.contract.tenancy import IMAGE, HandMadeShare, Tenant, given_share, make_share  # noqa: E402

from engines.docker import DockerSetup, build_newest, docker_setup  # noqa: E402
from engines.podman import PodmanSetup, podman_setup  # noqa: E402
from engines.rootfs import make_rootfs, pack  # noqa: E402


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a shell, as a tar."""
    folder = tmp_path_factory.mktemp("image")
    return pack(make_rootfs(folder / "root"), folder / "image.tar")


@pytest.fixture
def share() -> Iterator[HandMadeShare]:
    # Not tmp_path: its parents are closed to other users, and the rootless test is one.
    top = Path(tempfile.mkdtemp(prefix="aliquot-share-"))
    try:
        yield make_share(top)
    finally:
        shutil.rmtree(top)


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            pytest.skip(f"{program} is not installed")
    if os.geteuid() != 0:
        pytest.skip("starting an engine needs root")


@pytest.fixture(scope="session")
def podman(image: Path) -> Iterator[PodmanSetup]:
    needs("podman", "runc", "busybox")
    with podman_setup(image, IMAGE) as setup:
        yield setup


@pytest.fixture(scope="session")
def debian_docker(image: Path) -> Iterator[DockerSetup]:
    needs("/usr/sbin/dockerd", "/usr/bin/docker")
    with docker_setup(image, IMAGE) as setup:
        yield setup


@pytest.fixture(scope="session")
def newest_programs() -> Path:
    needs("go", "docker")
    return build_newest()


@pytest.fixture(scope="session")
def newest_docker(image: Path, newest_programs: Path) -> Iterator[DockerSetup]:
    with docker_setup(image, IMAGE, programs=newest_programs) as setup:
        yield setup


WAYS = ("podman-cdi", "podman-flags", "debian-docker-flags", "newest-docker-cdi", "newest-docker-flags")


@pytest.fixture(params=WAYS)
def tenant(request: pytest.FixtureRequest, share: HandMadeShare) -> Iterator[Tenant]:
    """The share on each engine, each way that it takes."""
    name, _, way = request.param.rpartition("-")
    setup = request.getfixturevalue(name.replace("-", "_"))
    with given_share(setup, share, share.edits(), by_cdi=way == "cdi") as tenant:
        yield tenant

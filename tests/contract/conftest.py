"""Real engines, each in a scratch folder of its own for the length of the session."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tools")]

from tests.contract.governed_share import GovernedShare, make_governed  # noqa: E402
from tests.contract.tenancy import IMAGE, HandMadeShare, Tenant, given_share, make_share  # noqa: E402

from aliquot import enforcement, softgpu  # noqa: E402
from aliquot.model import AliquotError  # noqa: E402
from engines.docker import DockerSetup, build_newest, docker_setup  # noqa: E402
from engines.podman import PodmanSetup, podman_setup  # noqa: E402
from engines.rootfs import make_rootfs, pack  # noqa: E402


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a shell and the tenant's program, as a tar."""
    needs("gcc", "busybox")
    folder = tmp_path_factory.mktemp("image")
    source, program = Path(__file__).with_name("tenant.c"), folder / "tenant"
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["gcc", *warnings, "-o", str(program), str(source), "-ldl"], check=True)
    return pack(make_rootfs(folder / "root", {"tenant": program}), folder / "image.tar")


@pytest.fixture
def share() -> Iterator[HandMadeShare]:
    # Not tmp_path: its parents are closed to other users, and the rootless test is one.
    top = Path(tempfile.mkdtemp(prefix="aliquot-share-"))
    try:
        yield make_share(top)
    finally:
        shutil.rmtree(top)


@pytest.fixture
def governed() -> Iterator[GovernedShare]:
    try:
        libraries = {"governor": enforcement.governor_folder(), "softgpu": softgpu.library_folder()}
    except AliquotError as reason:
        pytest.skip(str(reason))
    top = Path(tempfile.mkdtemp(prefix="aliquot-share-"))
    try:
        yield make_governed(top, libraries)
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
    needs("go", "docker", "pkg-config")
    said = subprocess.run(["docker", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"version (\d+)", said)
    if version is None or int(version[1]) < 25:
        pytest.skip(f"CDI needs a Docker client of at least 25, and docker on PATH says: {said.strip()}")
    return build_newest()


@pytest.fixture(scope="session")
def newest_docker(image: Path, newest_programs: Path) -> Iterator[DockerSetup]:
    with docker_setup(image, IMAGE, programs=newest_programs) as setup:
        yield setup


WAYS = ("podman-cdi", "podman-flags", "debian-docker-flags", "newest-docker-cdi", "newest-docker-flags")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[PodmanSetup | DockerSetup, bool]:
    """Each engine, and whether a share goes in by CDI: each way that it takes."""
    name, _, by = request.param.rpartition("-")
    return request.getfixturevalue(name.replace("-", "_")), by == "cdi"


@pytest.fixture
def tenant(way: tuple[PodmanSetup | DockerSetup, bool], share: HandMadeShare) -> Iterator[Tenant]:
    """The hand-made share on each engine, each way that it takes."""
    setup, by_cdi = way
    with given_share(setup, share, share.edits(), by_cdi=by_cdi) as tenant:
        yield tenant

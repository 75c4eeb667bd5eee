"""A CUDA program and an NVML program in containers of real engines, held by the real governor in
front of the real software GPU."""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.tenancy import IMAGE, LEASE, HandMadeShare, given_share

from aliquot import enforcement, softgpu
from aliquot.injection import ShareFolder
from aliquot.model import MIB, AliquotError, Bytes, DriverFiles, Gpu, Lease, Share, Thousandths, Vendor
from engines.docker import DockerSetup
from engines.podman import PodmanSetup

pytestmark = pytest.mark.engine

LIMIT = 256 * MIB
Way = tuple[PodmanSetup | DockerSetup, bool]


class GovernedShare(HandMadeShare):
    """256 MiB of the first of two software GPUs."""

    def lease(self, *, whole: bool = False) -> Lease:
        memory = self.gpus[0].memory if whole else Bytes(LIMIT)
        share = Share(self.gpus[0].uuid, memory, Thousandths(250), whole=whole)
        return replace(super().lease(whole=whole), shares=(share,))


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


def make_governed(top: Path, libraries: dict[str, Path]) -> GovernedShare:
    root = top / "runtime" / "shares" / LEASE
    root.mkdir(parents=True)
    devices_folder = top / "state" / "softgpu"
    devices_folder.parent.mkdir()
    numbers = itertools.count(1)
    devices = softgpu.create(devices_folder, profile="T4", count=2, at=1, entropy=lambda: next(numbers))
    gpus = tuple(
        Gpu(device.uuid, index, Vendor.SOFTWARE, "T4", str(device.pci_id), memory=device.memory)
        for index, device in enumerate(devices)
    )
    (root / "lib").mkdir()
    for library in libraries["governor"].iterdir():
        (root / "lib" / library.name).symlink_to(library)
    names = tuple((path.name, str(path)) for path in sorted(libraries["softgpu"].glob("lib*.so*")))
    driver = DriverFiles(Vendor.SOFTWARE, names, folder=str(devices_folder))
    share = GovernedShare(top, ShareFolder(str(root)), driver, gpus)
    by_uuid = {gpu.uuid: gpu for gpu in gpus}
    enforcement.write_limits(Path(share.folder.limits), lease=share.lease(), gpus=by_uuid)
    enforcement.create_ledger(Path(share.folder.ledger), devices=1)
    return share


@pytest.mark.parametrize("uid", ["0", "12345"])
def test_a_program_sees_its_share_as_the_whole_device_through_nvml(
    way: Way, governed: GovernedShare, uid: str
) -> None:
    with given_share(way[0], governed, governed.edits(), by_cdi=way[1]) as held:
        done = held.run("--user", uid, IMAGE, "tenant", "nvml")
    assert done.stdout.splitlines() == ["devices 1", f"uuid {governed.gpus[0].uuid}", f"total {LIMIT}"]


@pytest.mark.parametrize("uid", ["0", "12345"])
def test_a_program_is_held_to_its_share_through_the_driver(
    way: Way, governed: GovernedShare, uid: str
) -> None:
    with given_share(way[0], governed, governed.edits(), by_cdi=way[1]) as held:
        lines = held.run("--user", uid, IMAGE, "tenant", "cuda").stdout.splitlines()
    assert lines[-7:] == [
        "devices 1",
        f"total {LIMIT}",
        "past CUDA_ERROR_OUT_OF_MEMORY",
        "within CUDA_SUCCESS",
        "put CUDA_SUCCESS",
        "get CUDA_SUCCESS",
        "through the device",
    ]


def test_a_program_without_its_limits_gets_nothing_and_is_told_why(way: Way, governed: GovernedShare) -> None:
    edits = governed.edits()
    without = tuple(mount for mount in edits.mounts if not mount.target.endswith("/limits"))
    with given_share(way[0], governed, replace(edits, mounts=without), by_cdi=way[1]) as held:
        done = held.run(IMAGE, "tenant", "cuda")
    assert done.returncode == 1
    assert "Aliquot:" in done.stdout
    assert "limits" in done.stdout


def test_a_whole_lease_sees_all_of_its_card_and_no_other(way: Way, governed: GovernedShare) -> None:
    with given_share(way[0], governed, governed.edits(whole=True), by_cdi=way[1]) as held:
        lines = held.run(IMAGE, "tenant", "nvml").stdout.splitlines()
    assert lines == ["devices 1", f"uuid {governed.gpus[0].uuid}", f"total {governed.gpus[0].memory}"]

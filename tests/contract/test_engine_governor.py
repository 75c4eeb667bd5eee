"""A CUDA program and an NVML program in containers of real engines, held by the real governor in
front of the real software GPU."""

from dataclasses import replace

import pytest
from tests.contract.governed_share import LIMIT, GovernedShare
from tests.contract.tenancy import IMAGE, given_share

from engines.docker import DockerSetup
from engines.podman import PodmanSetup

pytestmark = pytest.mark.engine

Way = tuple[PodmanSetup | DockerSetup, bool]


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

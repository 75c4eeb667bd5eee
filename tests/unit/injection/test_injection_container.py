"""What a container gets of its share, and nothing of any other."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from aliquot.injection import ShareFolder, container_edits
from aliquot.model import AliquotError, DriverFiles, Gpu, Lease, Reason, Vendor

MakeLease = Callable[..., Lease]
MakeCards = Callable[[Vendor], tuple[Gpu, ...]]
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
SHARE = "/run/aliquot/share"


def test_a_share_of_a_real_card_mounts_the_governor_over_every_name_of_the_driver(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    edits = container_edits(
        lease(), folder=folder, driver=nvidia, gpus=cards(Vendor.NVIDIA), machine="x86_64"
    )
    sources = {mount.target: mount.source for mount in edits.mounts}
    for place in FOLDERS:
        for name in ("libcuda.so", "libcuda.so.1", "libcuda.so.580.95.05"):
            assert sources[f"{place}/{name}"] == f"{folder.lib}/libcuda.so.1"
        for name in ("libnvidia-ml.so", "libnvidia-ml.so.1", "libnvidia-ml.so.580.95.05"):
            assert sources[f"{place}/{name}"] == f"{folder.lib}/libnvidia-ml.so.1"
        assert sources[f"{place}/libnvidia-ptxjitcompiler.so.1"].endswith("ptxjitcompiler.so.580.95.05")
    assert sources[f"{SHARE}/driver/libcuda.so.1"] == "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"


def test_what_computes_past_the_governor_is_in_whole_gpus_only(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    opencl = ("libnvidia-opencl.so.1", "/usr/lib/x86_64-linux-gnu/libnvidia-opencl.so.580.95.05")
    driver = replace(nvidia, libraries=(*nvidia.libraries, opencl))

    def brings(given: Lease) -> bool:
        edits = container_edits(
            given, folder=folder, driver=driver, gpus=cards(Vendor.NVIDIA), machine="x86_64"
        )
        return any("opencl" in mount.source + mount.target for mount in edits.mounts)

    assert not brings(lease())
    assert brings(lease(whole=True))


@pytest.mark.parametrize("vendor", [Vendor.NVIDIA, Vendor.SOFTWARE])
def test_only_the_ledger_and_the_devices_shared_files_are_writable(
    lease: MakeLease,
    folder: ShareFolder,
    nvidia: DriverFiles,
    software: DriverFiles,
    cards: MakeCards,
    vendor: Vendor,
) -> None:
    driver = nvidia if vendor is Vendor.NVIDIA else software
    edits = container_edits(lease(), folder=folder, driver=driver, gpus=cards(vendor), machine="x86_64")
    writable = {mount.target.rpartition("/")[2] for mount in edits.mounts if not mount.read_only}
    own = {"ledger", "0"}  # and the page of its first device
    assert writable == (own if vendor is Vendor.NVIDIA else own | {"arena", "state", "log"})
    assert max(Counter(mount.target for mount in edits.mounts).values()) == 1


def test_only_the_leases_cards_get_in_by_the_number_of_their_node(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    edits = container_edits(lease(0, 1), folder=folder, driver=nvidia, gpus=cards(Vendor.NVIDIA))
    paths = [node.path for node in edits.device_nodes]
    assert paths == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia2", "/dev/nvidia1"]


def test_only_the_leases_software_gpus_get_in_and_no_device_node(
    lease: MakeLease, folder: ShareFolder, software: DriverFiles, cards: MakeCards
) -> None:
    gpus = cards(Vendor.SOFTWARE)
    edits = container_edits(lease(1), folder=folder, driver=software, gpus=gpus)
    devices = [mount for mount in edits.mounts if "/softgpu/GPU" in mount.target]
    assert all(mount.target.startswith(f"{SHARE}/driver/softgpu/{gpus[1].uuid}") for mount in devices)
    assert len(devices) == 4
    assert edits.device_nodes == ()
    assert any(mount.target == f"{SHARE}/driver/libnvJitLink.so.13" for mount in edits.mounts)
    assert not any(mount.target.startswith("/usr") and "nvJitLink" in mount.target for mount in edits.mounts)


@pytest.mark.parametrize("vendor", [Vendor.NVIDIA, Vendor.SOFTWARE])
def test_a_whole_lease_gets_the_drivers_own_files_and_nothing_of_a_share(
    lease: MakeLease,
    folder: ShareFolder,
    nvidia: DriverFiles,
    software: DriverFiles,
    cards: MakeCards,
    vendor: Vendor,
) -> None:
    driver = nvidia if vendor is Vendor.NVIDIA else software
    edits = container_edits(
        lease(whole=True), folder=folder, driver=driver, gpus=cards(vendor), machine="x86_64"
    )
    assert not any(mount.source.startswith(folder.root) for mount in edits.mounts)
    assert not any(mount.target.startswith("/run/aliquot") for mount in edits.mounts)
    sources = {mount.target: mount.source for mount in edits.mounts}
    for place in FOLDERS:
        assert sources[f"{place}/libcuda.so.1"] == driver.library("libcuda.so.1")
        if vendor is Vendor.SOFTWARE:
            assert f"{place}/softgpu/{cards(vendor)[0].uuid}" in sources


def test_a_container_asks_nvidias_runtime_for_nothing(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    for whole in (False, True):
        edits = container_edits(lease(whole=whole), folder=folder, driver=nvidia, gpus=cards(Vendor.NVIDIA))
        assert ("NVIDIA_VISIBLE_DEVICES", "void") in edits.env
        assert ("ALIQUOT_LEASE", "abcde") in edits.env


def test_a_card_whose_node_is_not_known_is_refused_rather_than_guessed(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    gpus = [replace(gpu, minor=None) for gpu in cards(Vendor.NVIDIA)]
    with pytest.raises(AliquotError, match="device node") as raised:
        container_edits(lease(), folder=folder, driver=nvidia, gpus=gpus)
    assert raised.value.reason is Reason.DRIVER_BROKEN


@pytest.mark.parametrize(
    ("vendor", "nodes"),
    [(Vendor.AMD, ["/dev/kfd", "/dev/dri/renderD2"]), (Vendor.INTEL, ["/dev/dri/renderD2"])],
)
def test_a_card_without_a_cuda_driver_gets_its_node_alone(
    lease: MakeLease, folder: ShareFolder, cards: MakeCards, vendor: Vendor, nodes: list[str]
) -> None:
    edits = container_edits(lease(whole=True), folder=folder, driver=None, gpus=cards(vendor))
    assert [node.path for node in edits.device_nodes] == nodes
    assert edits.mounts == ()


def test_another_architecture_has_another_folder(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles, cards: MakeCards
) -> None:
    gpus = cards(Vendor.NVIDIA)
    edits = container_edits(lease(), folder=folder, driver=nvidia, gpus=gpus, machine="aarch64")
    targets = {mount.target for mount in edits.mounts}
    assert "/usr/lib/aarch64-linux-gnu/libcuda.so.1" in targets
    assert not any("x86_64" in target for target in targets)

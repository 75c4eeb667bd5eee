"""What a child process is started with."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.injection import ShareFolder, child_environment, process_edits
from aliquot.injection.environment import join_library_path, select_devices
from aliquot.model import DriverFiles, Lease

A, B = "GPU-aaaaaaaa-0000-0000-0000-000000000000", "GPU-bbbbbbbb-0000-0000-0000-000000000000"
MakeLease = Callable[..., Lease]


def test_a_share_puts_the_governor_first_on_the_library_path(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles
) -> None:
    edits = process_edits(lease(), folder=folder, driver=nvidia)
    child = child_environment(edits, {"LD_LIBRARY_PATH": "/opt/cuda/lib:/usr/local/lib", "HOME": "/home/me"})
    assert child["LD_LIBRARY_PATH"] == "/run/aliquot/shares/abcde/lib:/opt/cuda/lib:/usr/local/lib"
    assert child["ALIQUOT_LEASE"] == "abcde"
    assert child["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert child["HOME"] == "/home/me"


def test_a_share_leaves_the_users_selection_to_the_governor(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles
) -> None:
    edits = process_edits(lease(0, 1), folder=folder, driver=nvidia)
    assert child_environment(edits, {"CUDA_VISIBLE_DEVICES": "1"})["CUDA_VISIBLE_DEVICES"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in child_environment(edits, {})


def test_a_whole_lease_has_no_governor_and_names_its_cards_in_the_leases_order(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles
) -> None:
    edits = process_edits(lease(1, 0, whole=True), folder=folder, driver=nvidia)
    child = child_environment(edits, {})
    assert child["CUDA_VISIBLE_DEVICES"] == f"{B},{A}"
    assert "LD_LIBRARY_PATH" not in child
    assert child_environment(edits, {"CUDA_VISIBLE_DEVICES": "1"})["CUDA_VISIBLE_DEVICES"] == A


def test_a_whole_software_gpu_is_found_beside_its_own_driver(
    lease: MakeLease, folder: ShareFolder, software: DriverFiles
) -> None:
    child = child_environment(process_edits(lease(whole=True), folder=folder, driver=software), {})
    assert child["LD_LIBRARY_PATH"] == "/run/aliquot/shares/abcde/driver"


def test_what_only_a_container_runtime_reads_is_not_passed_on(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles
) -> None:
    edits = process_edits(lease(), folder=folder, driver=nvidia)
    assert "NVIDIA_VISIBLE_DEVICES" not in child_environment(edits, {"NVIDIA_VISIBLE_DEVICES": "all"})


def test_a_share_within_a_share_puts_the_inner_one_first(lease: MakeLease, nvidia: DriverFiles) -> None:
    outer = process_edits(lease(), folder=ShareFolder("/s/outer"), driver=nvidia)
    inner = process_edits(lease(), folder=ShareFolder("/s/inner"), driver=nvidia)
    child = child_environment(inner, child_environment(outer, {}))
    assert child["LD_LIBRARY_PATH"] == "/s/inner/lib:/s/outer/lib"


def test_an_environment_is_never_changed_in_place(
    lease: MakeLease, folder: ShareFolder, nvidia: DriverFiles
) -> None:
    environ = {"LD_LIBRARY_PATH": "/x", "NVIDIA_VISIBLE_DEVICES": "all"}
    child_environment(process_edits(lease(), folder=folder, driver=nvidia), environ)
    assert environ == {"LD_LIBRARY_PATH": "/x", "NVIDIA_VISIBLE_DEVICES": "all"}


@given(st.text(alphabet="/ab:", max_size=20))
def test_a_joined_library_path_begins_with_ours_and_never_means_the_current_folder(inherited: str) -> None:
    entries = join_library_path("/ours", inherited).split(":")
    assert entries[0] == "/ours"
    assert "" not in entries
    assert entries[1:] == [entry for entry in inherited.split(":") if entry]


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("0", (A,)),
        ("1,0", (B, A)),
        ("GPU-bbbb", (B,)),
        ("gpu-BBBB", (B,)),
        (f"{B},0", (B, A)),
        ("0,5,1", (A,)),
        ("GPU-", ()),
        ("GPU-cccc", ()),
        ("-1", ()),
        ("", ()),
        ("NoDevFiles", ()),
        ("0,0", ()),
        (f"0,{A}", ()),
        (" 1 , 0 ", (B, A)),
    ],
)
def test_a_selection_is_read_as_cuda_reads_it(selection: str, chosen: tuple[str, ...]) -> None:
    assert select_devices(selection, [A, B]) == chosen

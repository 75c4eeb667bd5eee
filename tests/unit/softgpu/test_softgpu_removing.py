"""Listing what lies there, sound or broken, and removing it unless somebody is on it."""

import fcntl
import os
import struct
import uuid
from pathlib import Path
from typing import IO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.model import AliquotError, GpuUuid, Reason
from aliquot.softgpu import SoftGpu, create, environment, list_devices, remove


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "softgpu"


def make(root: Path, count: int = 1) -> tuple[SoftGpu, ...]:
    return create(root, profile="tiny", count=count, at=1, entropy=lambda: uuid.uuid4().int)


def break_it(device: SoftGpu, how: str) -> None:
    folder = device.folder
    match how:
        case "no device file":
            (folder / "device").unlink()
        case "device file is empty":
            (folder / "device").write_text("")
        case "device file is binary":
            (folder / "device").write_bytes(b"\xff\xfe\x00uuid\x00")
        case "device file of another":
            (folder / "device").write_text("uuid GPU-1\nmemory_bytes 1\n")
        case "no pci id":
            text = (folder / "device").read_text()
            (folder / "device").write_text(text.replace("pci_id ", "pci_ie "))
        case "memory is no number":
            text = (folder / "device").read_text()
            (folder / "device").write_text(text.replace("memory_bytes ", "memory_bytes x"))
        case "no arena":
            (folder / "arena").unlink()
        case "arena cut short":
            os.truncate(folder / "arena", 4096)
        case "no state":
            (folder / "state").unlink()


BREAKS = [
    "no device file",
    "device file is empty",
    "device file is binary",
    "device file of another",
    "no pci id",
    "memory is no number",
    "no arena",
    "arena cut short",
    "no state",
]


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_device_is_listed_with_its_fault_and_can_be_removed(root: Path, how: str) -> None:
    broken, sound = make(root, 2)
    break_it(broken, how)
    listed = list_devices(root)
    assert [one.uuid for one in listed] == [sound.uuid, broken.uuid]
    assert listed[0].fault is None
    assert listed[1].fault
    assert remove(root, broken.uuid).uuid == broken.uuid
    assert [one.uuid for one in list_devices(root)] == [sound.uuid]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=300))
def test_no_device_file_whatsoever_gives_a_traceback(root: Path, content: bytes) -> None:
    folder = root / "GPU-00000000-0000-4000-8000-000000000000"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "device").write_bytes(content)
    (listed,) = list_devices(root)
    assert listed.fault


def test_a_folder_with_another_name_is_a_fault(root: Path) -> None:
    (device,) = make(root)
    device.folder.rename(root / "backup")
    (listed,) = list_devices(root)
    assert listed.fault == "its folder's name is not a UUID"
    remove(root, "backup")
    assert list_devices(root) == ()


def test_no_root_lists_nothing(root: Path) -> None:
    assert list_devices(root) == ()


def test_removing_leaves_nothing_of_the_device(root: Path) -> None:
    (device,) = make(root)
    remove(root, device.uuid)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("cut", [len("GPU-") + 4, len("GPU-") + 12, 40])
def test_a_device_is_found_by_the_first_letters_of_its_uuid(root: Path, cut: int) -> None:
    (device,) = make(root)
    remove(root, device.uuid[:cut])
    assert list_devices(root) == ()


def test_a_device_is_found_without_the_prefix_and_in_capitals(root: Path) -> None:
    (device,) = make(root)
    remove(root, device.uuid.removeprefix("GPU-")[:9].upper())
    assert list_devices(root) == ()


def test_a_device_is_found_by_its_pci_id(root: Path) -> None:
    first, second = make(root, 2)
    assert second.pci_id is not None
    remove(root, second.pci_id)
    assert [one.uuid for one in list_devices(root)] == [first.uuid]


@pytest.mark.parametrize("selector", ["0", "1", "GPU-", "", "GPU", "T4", "../..", ".", "ffff:ff:ff.f"])
def test_what_names_no_device_removes_none(root: Path, selector: str) -> None:
    make(root, 2)
    with pytest.raises(AliquotError) as refused:
        remove(root, selector)
    assert refused.value.reason is Reason.NOT_FOUND
    assert len(refused.value.facts) == 2
    assert len(list_devices(root)) == 2


def test_a_start_that_two_have_is_ambiguous(root: Path) -> None:
    numbers = iter((0xABABABAB << 96 | 1, 0xABABABAB << 96 | 2))
    create(root, profile="tiny", count=2, at=1, entropy=lambda: next(numbers))
    with pytest.raises(AliquotError) as refused:
        remove(root, "abababab")
    assert refused.value.reason is Reason.AMBIGUOUS
    assert len(list_devices(root)) == 2


def test_a_device_that_the_caller_knows_to_be_busy_stays(root: Path) -> None:
    (device,) = make(root)
    with pytest.raises(AliquotError, match="in use by process 7, 41") as refused:
        remove(root, device.uuid, busy={device.uuid: [41, 7]})
    assert refused.value.reason is Reason.SOFTGPU_BUSY
    assert list_devices(root) == (device,)


def test_that_another_device_is_busy_does_not_matter(root: Path) -> None:
    (device,) = make(root)
    remove(root, device.uuid, busy={GpuUuid("GPU-other"): [1]})
    assert list_devices(root) == ()


def lock(state: IO[bytes], place: int) -> None:
    fcntl.fcntl(state, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, place, 1, 0))


@pytest.mark.parametrize("slot", [0, 1, 255])
def test_a_device_stays_while_a_process_slot_of_it_is_locked(root: Path, slot: int) -> None:
    """The driver holds one for each process that uses the device."""
    (device,) = make(root)
    with (device.folder / "state").open("r+b") as state:
        lock(state, (1 << 40) + 64 + slot)
        with pytest.raises(AliquotError, match="in use by a process") as refused:
            remove(root, device.uuid)
        assert refused.value.reason is Reason.SOFTGPU_BUSY
        assert list_devices(root) == (device,)
    remove(root, device.uuid)
    assert list_devices(root) == ()


def test_a_reader_that_holds_the_mutex_for_a_moment_is_no_user(root: Path) -> None:
    (device,) = make(root)
    with (device.folder / "state").open("r+b") as state:
        lock(state, 1 << 40)
        remove(root, device.uuid)
    assert list_devices(root) == ()


def test_the_environment_puts_the_library_folder_first_and_once() -> None:
    folder = Path("/a/softgpu")
    assert environment(folder)["LD_LIBRARY_PATH"] == "/a/softgpu"
    assert environment(folder, inherited="/b:/a/softgpu::/c")["LD_LIBRARY_PATH"] == "/a/softgpu:/b:/c"


def test_the_environment_points_triton_at_the_ptxas_that_passes_ptx_through() -> None:
    given = environment(Path("/a/softgpu"))
    assert given["TRITON_PTXAS_PATH"] == given["TRITON_PTXAS_BLACKWELL_PATH"] == "/a/softgpu/ptxas"
    assert given["TRITON_LIBCUDA_PATH"] == "/a/softgpu"

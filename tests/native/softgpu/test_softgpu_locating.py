"""Where the libraries find their devices: beside the file they were loaded as, before anything else."""

from __future__ import annotations

from pathlib import Path

from tests.native.softgpu.machine import LIBRARIES, SONAMES, Box


def share_folder(folder: Path, *devices: Path) -> Path:
    """A share's `driver` folder: symlinks to the libraries, and to the devices of the share."""
    folder.mkdir()
    for name in SONAMES:
        (folder / name).symlink_to(LIBRARIES / name)
    (folder / "softgpu").mkdir()
    for device in devices:
        (folder / "softgpu" / device.name).symlink_to(device)
    return folder


def test_loaded_through_a_share_the_driver_sees_the_shares_devices_only(box: Box, tmp_path: Path) -> None:
    first, _second = box.add_device(bus=1), box.add_device(bus=2)
    folder = share_folder(tmp_path / "driver", first)
    seen = box.run("through_proxy.py", str(folder), LD_LIBRARY_PATH="")
    assert seen["result"] == 0
    assert seen["devices"] == [first.name.removeprefix("GPU-").replace("-", "")]


def test_a_share_without_devices_has_none_whatever_the_environment_says(box: Box, tmp_path: Path) -> None:
    box.add_device()
    folder = share_folder(tmp_path / "driver")
    assert box.run("through_proxy.py", str(folder), LD_LIBRARY_PATH="")["result"] == 100


def test_without_devices_beside_it_the_driver_looks_in_the_users_state(box: Box) -> None:
    device = box.add_device()
    seen = box.run("through_proxy.py", str(LIBRARIES), LD_LIBRARY_PATH="")
    assert seen["devices"] == [device.name.removeprefix("GPU-").replace("-", "")]


def test_the_empty_nvjitlink_libraries_come_with_the_driver(box: Box, device: Path, tmp_path: Path) -> None:
    folder = share_folder(tmp_path / "driver", device)
    assert box.run("through_proxy.py", str(folder), LD_LIBRARY_PATH="")["nvjitlink"] == [True, True]

"""The driver's files, as the loader would find them, in a root made of files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.inventory import driver_files
from aliquot.inventory.shared_libraries import cut_short, find_library
from aliquot.model import Vendor

_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}
OURS = (
    b"\x7fELF\x02\x01\x01"
    + bytes(9)
    + b"\x03\x00"
    + _MACHINES.get(os.uname().machine, 62).to_bytes(2, "little")
)
THIRTY_TWO_BITS = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00"


def put(path: Path, content: bytes = OURS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def install(folder: Path, version: str = "550.54.15") -> None:
    for stem in ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-opencl"):
        put(folder / f"{stem}.so.{version}")
        (folder / f"{stem}.so.1").symlink_to(f"{stem}.so.{version}")
    put(folder / f"libnvidia-nvvm.so.{version}")
    (folder / "libnvidia-nvvm.so.4").symlink_to(f"libnvidia-nvvm.so.{version}")
    put(folder / f"libnvidia-gpucomp.so.{version}")
    put(folder / f"libGLX_nvidia.so.{version}")


@pytest.mark.parametrize(
    "folder", ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib/wsl/lib", "run/opengl-driver/lib"]
)
def test_libraries_are_found_in_the_usual_folders_as_real_files(tmp_path: Path, folder: str) -> None:
    install(tmp_path / folder)
    files = driver_files(Vendor.NVIDIA, root=tmp_path)
    assert files is not None
    assert files.vendor is Vendor.NVIDIA
    assert dict(files.libraries) == {
        "libcuda.so.1": f"{tmp_path}/{folder}/libcuda.so.550.54.15",
        "libnvidia-ml.so.1": f"{tmp_path}/{folder}/libnvidia-ml.so.550.54.15",
        "libnvidia-ptxjitcompiler.so.1": f"{tmp_path}/{folder}/libnvidia-ptxjitcompiler.so.550.54.15",
        "libnvidia-opencl.so.1": f"{tmp_path}/{folder}/libnvidia-opencl.so.550.54.15",
        "libnvidia-nvvm.so.4": f"{tmp_path}/{folder}/libnvidia-nvvm.so.550.54.15",
        "libnvidia-gpucomp.so.550.54.15": f"{tmp_path}/{folder}/libnvidia-gpucomp.so.550.54.15",
    }
    assert files.library("libcuda.so.1") == f"{tmp_path}/{folder}/libcuda.so.550.54.15"
    assert files.folder is None


def test_control_nodes_are_those_that_are_here(tmp_path: Path) -> None:
    install(tmp_path / "usr/lib64")
    for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "null"):
        put(tmp_path / "dev" / name)
    files = driver_files(Vendor.NVIDIA, root=tmp_path)
    assert files is not None
    assert files.control_nodes == (f"{tmp_path}/dev/nvidiactl", f"{tmp_path}/dev/nvidia-uvm")


def test_without_a_driver_there_are_no_files(tmp_path: Path) -> None:
    assert driver_files(Vendor.NVIDIA, root=tmp_path) is None


@pytest.mark.parametrize("vendor", [Vendor.AMD, Vendor.INTEL, Vendor.XILINX, Vendor.ALTERA])
def test_other_vendors_have_none(tmp_path: Path, vendor: Vendor) -> None:
    assert driver_files(vendor, root=tmp_path) is None


def test_a_library_of_32_bits_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "usr/lib64/libcuda.so.1", THIRTY_TWO_BITS)
    wanted = put(tmp_path / "usr/lib/libcuda.so.1")
    assert find_library("libcuda.so.1", tmp_path) == wanted


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"not a library, and long enough for a header"])
def test_a_file_that_is_no_library_is_passed_over(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "usr/lib64/libcuda.so.1", content)
    assert find_library("libcuda.so.1", tmp_path) is None


def loader_cache(root: Path, *folders: Path) -> None:
    """Written by the system's own ldconfig, as another root would have it."""
    (root / "etc").mkdir(exist_ok=True)
    configuration = root / "ld.so.conf"
    configuration.write_text("".join(f"{folder}\n" for folder in folders))
    subprocess.run(
        ["/sbin/ldconfig", "-X", "-C", str(root / "etc/ld.so.cache"), "-f", str(configuration)],
        check=True,
        capture_output=True,
    )


def real_library(path: Path, soname: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["cc", "-shared", f"-Wl,-soname,{soname}", "-o", str(path), "-x", "c", "/dev/null"], check=True
    )
    return path


@pytest.mark.skipif(not Path("/sbin/ldconfig").exists(), reason="no ldconfig")
def test_the_loaders_cache_is_believed_before_the_usual_folders(tmp_path: Path) -> None:
    root = tmp_path / "root"
    built = real_library(tmp_path / "odd/libcuda.so.1", "libcuda.so.1")
    put(root / "usr/lib64/libcuda.so.1")
    loader_cache(root, built.parent)
    inside = root / str(built).lstrip("/")  # what the cache names, as seen in that root
    put(inside, built.read_bytes())
    assert find_library("libcuda.so.1", root) == inside


def test_this_machines_cache_gives_what_the_loader_loads() -> None:
    found = find_library("libc.so.6")
    with Path("/proc/self/maps").open() as maps:
        loaded = {line.split()[-1] for line in maps if "libc.so.6" in line or "libc-" in line}
    assert found is not None
    assert str(found.resolve()) in loaded


@pytest.mark.parametrize(
    "content", [b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 100, os.urandom(5000)]
)
def test_a_cache_that_makes_no_sense_is_passed_over(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / "etc/ld.so.cache", content + b"libcuda.so.1\0")
    wanted = put(tmp_path / "usr/lib64/libcuda.so.1")
    assert find_library("libcuda.so.1", tmp_path) == wanted


def test_ld_library_path_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a share it leads to the governor; what is wanted is the driver behind it."""
    put(tmp_path / "governor/libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "governor"))
    assert find_library("libcuda.so.1", tmp_path) is None


def test_every_library_of_this_machine_counts_as_whole_and_each_cut_as_cut(tmp_path: Path) -> None:
    whole = Path(sys.executable).resolve()
    assert not cut_short(whole)
    content = real_library(tmp_path / "libx.so", "libx.so").read_bytes()
    for length in (0, 20, 63, 64, 200, 600):
        assert cut_short(put(tmp_path / "cut", content[:length])), length


def test_the_software_gpus_files_are_those_of_the_folder_given(tmp_path: Path) -> None:
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libnvJitLink.so.13"):
        put(tmp_path / "lib" / name)
    files = driver_files(
        Vendor.SOFTWARE, softgpu_library_folder=tmp_path / "lib", softgpu_root=tmp_path / "softgpu"
    )
    assert files is not None
    assert dict(files.libraries) == {
        name: f"{tmp_path}/lib/{name}" for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libnvJitLink.so.13")
    }
    assert files.control_nodes == ()
    assert files.folder == str(tmp_path / "softgpu")


@pytest.mark.parametrize("made", [False, True])
def test_a_software_gpu_that_was_not_built_has_no_files(tmp_path: Path, made: bool) -> None:
    if made:
        (tmp_path / "lib").mkdir()
    assert driver_files(Vendor.SOFTWARE, softgpu_library_folder=tmp_path / "lib") is None
    assert driver_files(Vendor.SOFTWARE) is None

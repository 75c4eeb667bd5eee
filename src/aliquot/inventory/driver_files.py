"""The driver's files of this machine: what a tenant needs to reach its GPU."""

from pathlib import Path

from aliquot.inventory.reading import is_present, real
from aliquot.inventory.shared_libraries import find_library
from aliquot.model import DriverFiles, Vendor

_COMPUTE_LIBRARIES = (
    "libcuda.so.1",
    "libnvidia-ml.so.1",
    "libnvidia-ptxjitcompiler.so.1",
    "libnvidia-nvvm.so.4",
    "libnvidia-nvvm70.so.4",
    "libnvidia-opencl.so.1",
    "libnvidia-cfg.so.1",
    "libnvidia-sandboxutils.so.1",
    "libcudadebugger.so.1",
    "libdxcore.so",  # WSL: what libcuda.so.1 reaches the card through
)
_VERSIONED = ("libnvidia-gpucomp", "libnvidia-pkcs11", "libnvidia-pkcs11-openssl3", "libnvidia-tileiras")
"""Their soname carries the driver's version, so they are found beside libcuda.so.1.

Both lists: what NVIDIA's container toolkit mounts for its capabilities compute and utility,
less what only talks to a daemon of the host.
"""

_CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "dxg")


def driver_files(
    vendor: Vendor,
    *,
    softgpu_library_folder: Path | None = None,
    softgpu_root: Path | None = None,
    root: Path = Path("/"),
) -> DriverFiles | None:
    """The files of ``vendor``'s driver; None where there is no driver, and for other vendors.

    For SOFTWARE they are those of the folder given, and ``softgpu_root`` is where the devices
    lie. root: of the file system that is searched. Paths are absolute and of real files, with
    symbolic links followed: a container's mount of a link would show where it points.
    """
    if vendor is Vendor.SOFTWARE:
        return _software(softgpu_library_folder, softgpu_root)
    if vendor is not Vendor.NVIDIA:
        return None
    driver = find_library("libcuda.so.1", root)
    if driver is None:
        return None
    libraries = {soname: find_library(soname, root) for soname in _COMPUTE_LIBRARIES}
    for stem in _VERSIONED:
        for path in (*driver.parent.glob(f"{stem}.so.*"), *real(driver).parent.glob(f"{stem}.so.*")):
            libraries[path.name] = path
    return DriverFiles(
        vendor=vendor,
        libraries=tuple((soname, str(real(path))) for soname, path in libraries.items() if path is not None),
        control_nodes=tuple(
            str(root / "dev" / name) for name in _CONTROL_NODES if is_present(root / "dev" / name)
        ),
    )


def _software(folder: Path | None, devices: Path | None) -> DriverFiles | None:
    if folder is None or not is_present(folder / "libcuda.so.1"):
        return None
    return DriverFiles(
        vendor=Vendor.SOFTWARE,
        libraries=tuple((path.name, str(path.absolute())) for path in sorted(folder.glob("lib*.so*"))),
        folder=None if devices is None else str(devices),
    )

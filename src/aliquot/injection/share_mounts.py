"""What of a share a tenant finds at one fixed path, in a container or in a mount namespace."""

from collections.abc import Iterator, Sequence

from aliquot.injection.share_folder import ShareFolder
from aliquot.model import DriverFiles, Gpu, Mount

GOVERNED = ("libcuda.so.1", "libnvidia-ml.so.1")
"""The libraries that the governor stands in front of."""

PAST_THE_GOVERNOR = ("libnvidia-opencl.so.1",)
"""A driver's libraries that compute without its libcuda: a share that is held does not bring them."""

SOFTWARE_GPU_WRITABLE = ("arena", "state", "log")
"""Files of a software GPU that its users write; the rest of its folder they only read."""


def share_mounts(folder: ShareFolder, driver: DriverFiles, where: str, *, devices: int) -> Iterator[Mount]:
    """Limits, ledger, governor and driver below ``where``, as the governor looks for them there."""
    yield Mount(folder.limits, f"{where}/limits")
    yield Mount(folder.ledger, f"{where}/ledger", read_only=False)
    for device in range(devices):
        yield Mount(folder.turns(device), f"{where}/turns/{device}", read_only=False)
    for soname, path in driver.libraries:
        if soname not in PAST_THE_GOVERNOR:
            yield Mount(path, f"{where}/driver/{soname}")
    for soname in GOVERNED:
        yield Mount(f"{folder.lib}/{soname}", f"{where}/lib/{soname}")


def software_gpus(driver: DriverFiles, gpus: Sequence[Gpu], homes: Sequence[str]) -> Iterator[Mount]:
    """The device folders beside each place where the driver's library is loaded from.

    The folder itself is read-only: with it writable, root in one container could rewrite the
    card's profile or remove the memory of all who share it.
    """
    if driver.folder is None:
        raise ValueError("a software driver has a folder")
    for gpu in gpus:
        for home in homes:
            source, target = f"{driver.folder}/{gpu.uuid}", f"{home}/softgpu/{gpu.uuid}"
            yield Mount(source, target)
            for name in SOFTWARE_GPU_WRITABLE:
                yield Mount(f"{source}/{name}", f"{target}/{name}", read_only=False)

"""What a container needs to find its share, and nothing of any other."""

import os
from collections.abc import Iterable, Iterator, Sequence

from aliquot.injection.for_processes import DEVICE_ORDER, LEASE_VARIABLE, RUNTIME_DEVICES
from aliquot.injection.share_folder import TENANT_SHARE, ShareFolder
from aliquot.injection.share_mounts import GOVERNED, PAST_THE_GOVERNOR, share_mounts, software_gpus
from aliquot.model import AliquotError, DeviceNode, DriverFiles, Edits, Gpu, Lease, Mount, Reason, Vendor


def usual_folders(machine: str) -> tuple[str, ...]:
    """Where the linker of a glibc image looks by itself: Debian's, Fedora's, Arch's folder.

    ``machine`` is uname's name of the architecture.
    """
    return (f"/usr/lib/{machine}-linux-gnu", "/usr/lib64", "/usr/lib")


def container_edits(
    lease: Lease,
    *,
    folder: ShareFolder,
    driver: DriverFiles | None,
    gpus: Sequence[Gpu],
    machine: str | None = None,
) -> Edits:
    """Pure. ``gpus`` must hold every GPU of the lease; ``machine`` defaults to this one's.

    ``driver`` is ``None`` for cards that have no CUDA driver; they get their device nodes only.
    Raises ``AliquotError`` (``driver-broken``) where a card's device node is not known: a guess
    could hand out somebody else's card.
    """
    folders = usual_folders(machine or os.uname().machine)
    cards = {gpu.uuid: gpu for gpu in gpus}
    leased = [cards[share.gpu] for share in lease.shares]
    # `void` tells NVIDIA's container runtime to add nothing, whatever the image says.
    env = ((LEASE_VARIABLE, str(lease.id)), DEVICE_ORDER, (RUNTIME_DEVICES, "void"))
    mounts: Iterable[Mount] = ()
    if driver is not None:
        mounts = (
            _governed(folder, driver, folders, len(leased))
            if lease.governed
            else _ungoverned(driver, folders)
        )
        if driver.vendor is Vendor.SOFTWARE:
            homes = [f"{TENANT_SHARE}/driver"] if lease.governed else folders
            mounts = [*mounts, *software_gpus(driver, leased, homes)]
    return Edits(env=env, device_nodes=tuple(_device_nodes(driver, leased)), mounts=tuple(mounts))


def _governed(
    folder: ShareFolder, driver: DriverFiles, folders: Sequence[str], devices: int
) -> Iterator[Mount]:
    yield from share_mounts(folder, driver, TENANT_SHARE, devices=devices)
    for soname in GOVERNED:
        governor = f"{folder.lib}/{soname}"
        for place in folders:
            for name in _names(soname, driver.library(soname)):
                yield Mount(governor, f"{place}/{name}")
    if driver.vendor is Vendor.NVIDIA:
        # The driver itself loads these by soname (its PTX compiler, its NVVM), from the usual
        # folders alone.
        for soname, path in driver.libraries:
            if soname not in (*GOVERNED, *PAST_THE_GOVERNOR):
                for place in folders:
                    yield Mount(path, f"{place}/{soname}")


def _ungoverned(driver: DriverFiles, folders: Sequence[str]) -> Iterator[Mount]:
    for soname, path in driver.libraries:
        for place in folders:
            for name in _names(soname, path):
                yield Mount(path, f"{place}/{name}")


def _names(soname: str, path: str | None) -> Iterator[str]:
    """Under what a program may open the library: its link name, soname and full name."""
    stem = soname[: soname.index(".so") + 3]
    yield soname
    if soname in GOVERNED:
        yield stem
    full = (path or "").rpartition("/")[2]
    if full.startswith(f"{stem}.") and full != soname:
        yield full


def _device_nodes(driver: DriverFiles | None, gpus: Sequence[Gpu]) -> Iterator[DeviceNode]:
    for path in driver.control_nodes if driver is not None else ():
        yield DeviceNode(path, path)
    if any(gpu.vendor is Vendor.AMD for gpu in gpus):
        yield DeviceNode("/dev/kfd", "/dev/kfd")
    for gpu in gpus:
        if gpu.vendor is not Vendor.SOFTWARE:
            path = _card_node(gpu)
            yield DeviceNode(path, path)


def _card_node(gpu: Gpu) -> str:
    prefix = {
        Vendor.NVIDIA: "/dev/nvidia",
        Vendor.AMD: "/dev/dri/renderD",
        Vendor.INTEL: "/dev/dri/renderD",
    }.get(gpu.vendor)
    if prefix is None or gpu.minor is None:
        raise AliquotError(
            Reason.DRIVER_BROKEN,
            f"the device node of {gpu.name} ({gpu.uuid}) is not known, so no container can get it alone",
            next=[("aliquot doctor", "checks the driver and its device nodes")],
        )
    return f"{prefix}{gpu.minor}"

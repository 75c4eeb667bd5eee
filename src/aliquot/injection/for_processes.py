"""What a child process on this machine needs to find its share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aliquot.injection.share_folder import ShareFolder
from aliquot.injection.share_mounts import GOVERNED, share_mounts, software_gpus
from aliquot.model import DriverFiles, Edits, Gpu, Lease, Mount, Vendor

LIBRARY_PATH = "LD_LIBRARY_PATH"
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
LEASE_VARIABLE = "ALIQUOT_LEASE"
DEVICE_ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
"""CUDA's own default sorts the fastest card first: an order that no other tool shows."""
RUNTIME_DEVICES = "NVIDIA_VISIBLE_DEVICES"
"""Read by NVIDIA's container runtime alone; a tenant that starts containers must not pass it on."""


def process_edits(lease: Lease, *, folder: ShareFolder, driver: DriverFiles | None) -> Edits:
    """Pure. ``driver`` is ``None`` for cards that have no CUDA driver (AMD, Intel, FPGA).

    The value of ``LD_LIBRARY_PATH`` is a prefix: ``child_environment`` joins it with what the
    child would inherit. A governed lease leaves ``CUDA_VISIBLE_DEVICES`` alone, since the
    governor reads it as a selection within the share; a whole lease has no governor, so there
    the variable is what keeps the program on its cards.
    """
    env = [(LEASE_VARIABLE, str(lease.id)), DEVICE_ORDER]
    if lease.governed:
        env.insert(0, (LIBRARY_PATH, folder.lib))
    else:
        if driver is not None and driver.vendor is Vendor.SOFTWARE:
            # Not `lib`: the software GPU finds its devices in `softgpu/` beside the file that it
            # was loaded as, and that folder is in `driver`.
            env.insert(0, (LIBRARY_PATH, folder.driver))
        if driver is not None:
            env.append((VISIBLE_DEVICES, ",".join(share.gpu for share in lease.shares)))
    return Edits(env=tuple(env), unset=(RUNTIME_DEVICES,))


def private_edits(
    lease: Lease,
    *,
    folder: ShareFolder,
    driver: DriverFiles,
    gpus: Sequence[Gpu],
    where: str,
    covered: Mapping[str, Sequence[str]],
) -> Edits:
    """The same for a governed child in a mount namespace of its own. Pure.

    ``where`` is the fixed path at which it finds its share. ``covered`` says by soname every file
    of a driver that a program here could load: the governor is laid over each, after the driver's
    own were brought to safety below ``where``. ``LD_LIBRARY_PATH`` stays, for the software GPU is
    found by nothing else, and so that whoever looks knows the program for this lease's.
    """
    edits = process_edits(lease, folder=folder, driver=driver)
    mounts = [*share_mounts(folder, driver, where, devices=len(lease.shares))]
    if driver.vendor is Vendor.SOFTWARE:
        leased = {share.gpu for share in lease.shares}
        ours = [gpu for gpu in gpus if gpu.uuid in leased]
        mounts += software_gpus(driver, ours, [f"{where}/driver"])
    for soname, paths in covered.items():
        # Over a library that would pass it by lies the governor as well, which has none of its names.
        governor = soname if soname in GOVERNED else GOVERNED[0]
        mounts += [Mount(f"{folder.lib}/{governor}", path) for path in paths]
    env = [(name, f"{value}:{where}/lib" if name == LIBRARY_PATH else value) for name, value in edits.env]
    return replace(edits, env=tuple(env), mounts=tuple(mounts))

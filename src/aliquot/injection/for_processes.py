"""What a child process on this machine needs to find its share."""

from aliquot.injection.share_folder import ShareFolder
from aliquot.model import DriverFiles, Edits, Lease, Vendor

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

"""Software GPUs on disk: make them, list them, remove them.

What lives here: the profiles (the figures of real cards, as data), the folder of a device
and its life. What may be imported: ``model`` and the standard library. What never: NVML,
the inventory (``node`` passes in what must not clash and who is busy), a clock or a source
of randomness (both come in as arguments). What runs a program lies in ``native/softgpu``.

A device is a folder named by its UUID; it exists when the folder does, and is whole or not
there at all: it is made under a dotted name and renamed, and removed the other way round. A set of
several is whole or not there as well: see ``making``.
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred

if TYPE_CHECKING:
    from aliquot.softgpu.creating import create, create_set
    from aliquot.softgpu.devices import SoftGpu, list_devices
    from aliquot.softgpu.libraries import environment, library_folder
    from aliquot.softgpu.making import clear_leftovers
    from aliquot.softgpu.profile import Profile, profile_names, profiles, read_profile
    from aliquot.softgpu.removing import refuse_busy, remove

# A program that runs on a device needs its libraries alone, and no reader of TOML.
__getattr__ = deferred(
    __name__,
    {
        "creating": "create create_set",
        "devices": "SoftGpu list_devices",
        "libraries": "environment library_folder",
        "making": "clear_leftovers",
        "profile": "Profile profile_names profiles read_profile",
        "removing": "refuse_busy remove",
    },
)

__all__ = [
    "Profile",
    "SoftGpu",
    "clear_leftovers",
    "create",
    "create_set",
    "environment",
    "library_folder",
    "list_devices",
    "profile_names",
    "profiles",
    "read_profile",
    "refuse_busy",
    "remove",
]

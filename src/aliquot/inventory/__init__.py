"""What GPUs are here, what state they are in, and which files their driver has.

What lives here: reading, and nothing else. NVML (only in ``nvidia``), sysfs, /proc, the
kernel's log and the loader's cache, joined into a ``Snapshot``. What may be imported:
``model``, the standard library, nvidia-ml-py in ``nvidia`` alone. What never: another stage,
the book, a change to the machine, an exception to the caller: what is broken is a ``Notice``
with its fix, what is unknown is None.
"""

from aliquot.inventory.driver_files import driver_files
from aliquot.inventory.look import look
from aliquot.inventory.shared_libraries import every_library

__all__ = ["driver_files", "every_library", "look"]

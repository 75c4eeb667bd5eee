"""The driver's files on this machine: what a tenant needs mounted to reach its GPU."""

from dataclasses import dataclass

from aliquot.model.nodes import Vendor


@dataclass(frozen=True, slots=True)
class DriverFiles:
    vendor: Vendor
    """NVIDIA or SOFTWARE: each has a libcuda.so.1 and a libnvidia-ml.so.1."""
    libraries: tuple[tuple[str, str], ...]
    """(soname, absolute path) of each library a compute program may load."""
    control_nodes: tuple[str, ...] = ()
    """Device nodes every tenant needs, such as ``/dev/nvidiactl``."""
    folder: str | None = None
    """The software GPU's root: one folder a device lies in it, named by UUID."""

    def library(self, soname: str) -> str | None:
        return dict(self.libraries).get(soname)

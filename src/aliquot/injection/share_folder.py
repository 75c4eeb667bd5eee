"""Where the files of one share lie on the host, and where the tenant's container sees them."""

from dataclasses import dataclass

TENANT_SHARE = "/run/aliquot/share"
"""The share's folder inside a container: the governor looks here first, and nowhere that the
environment names."""


@dataclass(frozen=True, slots=True)
class ShareFolder:
    """The folder of one share as ARCHITECTURE.md lays it out; made and removed by ``node``."""

    root: str
    """Absolute, such as ``/run/aliquot/shares/abcde``."""

    @property
    def limits(self) -> str:
        """What the tenant may have: 0444, never writable inside."""
        return f"{self.root}/limits"

    @property
    def ledger(self) -> str:
        """What the tenant has: 0666, because a container may run as any uid."""
        return f"{self.root}/ledger"

    def turns(self, device: int) -> str:
        """The page of the share's ``device``-th device, which all its shares write: 0666."""
        return f"{self.root}/turns/{device}"

    @property
    def lib(self) -> str:
        """The governor's libraries under the driver's sonames."""
        return f"{self.root}/lib"

    @property
    def driver(self) -> str:
        """The driver's own libraries by soname, and the share's software GPUs."""
        return f"{self.root}/driver"

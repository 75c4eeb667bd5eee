"""What is here: a machine, its GPUs, who is on them, and what is wrong with them."""

from dataclasses import dataclass
from enum import Enum

from aliquot.model.identities import GpuUuid
from aliquot.model.quantities import Bytes


class Vendor(Enum):
    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    XILINX = "xilinx"
    ALTERA = "altera"
    SOFTWARE = "software"
    """Aliquot's own software GPU: NVIDIA's interfaces, run on the CPU."""


class HealthState(Enum):
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Health:
    state: HealthState
    why: str | None = None
    """One clause with the numbers, such as ``XID 79`` or ``3 uncorrected ECC errors``."""


class Mig(Enum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    UNSUPPORTED = "unsupported"


class Severity(Enum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition of the machine that its user should know: what, and how to mend it."""

    code: str
    """Kebab-case and stable, such as ``driver-missing`` or ``driver-mismatch``."""
    severity: Severity
    text: str
    fix: str | None = None
    """One command or one sentence."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    pid: int
    memory: Bytes | None
    utilisation: int | None = None
    """Percent of the GPU's time over the driver's last sample period."""
    command: str | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card. ``None`` means the card or its driver does not tell."""

    uuid: GpuUuid
    index: int
    """Position by PCI bus id among all the snapshot's GPUs: the only order Aliquot shows."""
    vendor: Vendor
    name: str
    pci_id: str
    """``0000:3b:00.0`` in lower case."""
    memory: Bytes | None = None
    """All of the card's memory, as the driver reports it."""
    memory_reserved: Bytes | None = None
    """What the driver keeps for itself; never leased."""
    memory_used: Bytes | None = None
    """In use by all processes, without ``memory_reserved``."""
    context_bytes: Bytes | None = None
    """What one process's context takes by itself: no share may be smaller."""
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    utilisation: int | None = None
    temperature: int | None = None
    """Degrees Celsius."""
    mig: Mig | None = None
    health: Health = Health(HealthState.UNKNOWN)
    cordoned: bool = False
    processes: tuple[GpuProcess, ...] | None = None
    outside_memory: Bytes | None = None
    """Held by processes in no lease, or beyond what theirs has; ``node`` fills it in from the book."""
    minor: int | None = None
    """Number of the device node, as in ``/dev/nvidia0``."""
    set_name: str | None = None
    """Of the set of software GPUs that it was made in."""

    @property
    def capacity(self) -> Bytes | None:
        """What can be leased at most: all memory less what the driver keeps."""
        if self.memory is None:
            return None
        return Bytes(self.memory - (self.memory_reserved or 0))

    @property
    def shareable(self) -> bool:
        """Whether Aliquot can cut it; other vendors' cards are leased whole."""
        return self.vendor in (Vendor.NVIDIA, Vendor.SOFTWARE) and self.memory is not None


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A card as the book remembers it, also when it is gone: what coverage is counted from."""

    uuid: GpuUuid
    name: str
    capacity: Bytes | None
    """What could be leased of it at most, when last seen."""
    first_seen: int
    """Nanoseconds since the epoch, UTC; so is ``last_seen``."""
    last_seen: int


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    boot_id: str | None = None
    driver_version: str | None = None
    """NVIDIA's kernel driver; the software GPU has none."""
    cuda_version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything seen in one look at one machine."""

    node: Node
    gpus: tuple[Gpu, ...] = ()
    notices: tuple[Notice, ...] = ()

"""What was used: a ledger as read at one moment, and a lease's sums at its end."""

from collections.abc import Sequence
from dataclasses import dataclass

from aliquot.model.identities import GpuUuid, LeaseId
from aliquot.model.leases import Stretch
from aliquot.model.quantities import Bytes


@dataclass(frozen=True, slots=True)
class Attestation:
    """What a process says of the governor that it runs."""

    build: str
    """First 8 bytes of the library's build id, in hex."""
    version: str
    """Of Aliquot, such as ``0.1.0``."""
    memory: bool
    compute: bool
    """What that governor holds it to."""
    limits_seen: int
    """Sequence of the limits file that it last went by."""


@dataclass(frozen=True, slots=True)
class LedgerSlot:
    """One process of a share. The numbers are its own words: for display only, and None where
    they cannot be."""

    pid: int
    start_time: int
    pid_namespace: int
    alive: bool
    used: tuple[Bytes | None, ...]
    """By device of the share."""
    compute_ns: int | None = None
    """GPU time charged to it, on all devices of the share."""
    attestation: Attestation | None = None
    """None: it says nothing, as governors before 0.1 do."""
    index: int = 0
    """Of the slot in its ledger."""
    outer_pid: int | None = None
    """In the keeper's pid namespace, the node's; None where no keeper said."""
    taken: tuple[Bytes | None, ...] = ()
    """Of ``used``, what the driver took by itself and the keeper saw."""


@dataclass(frozen=True, slots=True)
class LedgerDevice:
    """None: what the file says cannot be."""

    used: Bytes | None
    peak: Bytes | None
    byte_seconds: float | None
    denied: int | None
    """Allocations refused at the limit."""
    compute_ns: int | None = None
    """Time of this device charged to the share, its processes that are gone included."""


@dataclass(frozen=True, slots=True)
class Ledger:
    devices: tuple[LedgerDevice, ...]
    slots: tuple[LedgerSlot, ...]
    exports: int = 0
    """Memory of one process that others of the share may open."""
    unknown: tuple[str, ...] = ()
    """Functions of the driver that a program asked for and that this Aliquot does not know."""


@dataclass(frozen=True, slots=True)
class UsageSpan:
    """A time over which the size of a share did not change."""

    wall_ns: int
    leased_bytes: Bytes | None
    leased_compute: int


@dataclass(frozen=True, slots=True)
class Usage:
    """One share of one lease, from ``held_at`` to its end (or to now while it lives).

    Memory and compute are metered apart. What was not measured (no governor) is None.
    """

    lease: LeaseId
    gpu: GpuUuid
    wall_ns: int
    leased_bytes: Bytes | None
    leased_compute: int
    peak_bytes: Bytes | None = None
    mean_bytes: float | None = None
    denied: int | None = None
    busy_ns: int | None = None
    """Time of the GPU that its work took, on the device's own clock: what the governor charged."""
    before: tuple[UsageSpan, ...] = ()
    """Where it was resized: what it was in the first parts of ``wall_ns``. ``leased_bytes`` and
    ``leased_compute`` are those of the rest."""

    @property
    def spans(self) -> tuple[UsageSpan, ...]:
        """All of ``wall_ns``, oldest first."""
        rest = self.wall_ns - sum(span.wall_ns for span in self.before)
        return (*self.before, UsageSpan(rest, self.leased_bytes, self.leased_compute))

    @property
    def byte_ns(self) -> int | None:
        """Leased bytes times wall nanoseconds."""
        if any(span.leased_bytes is None for span in self.spans):
            return None
        return sum((span.leased_bytes or 0) * span.wall_ns for span in self.spans)

    @property
    def compute_ns(self) -> int:
        """Reserved thousandths of one GPU times wall nanoseconds."""
        return sum(span.leased_compute * span.wall_ns for span in self.spans)

    @property
    def byte_seconds(self) -> float | None:
        """Leased bytes times wall seconds."""
        return None if self.byte_ns is None else self.byte_ns / 1e9

    @property
    def compute_seconds(self) -> float:
        """Reserved GPU-seconds: the share's part of one GPU times wall seconds."""
        return self.compute_ns / 1e12

    @property
    def busy_seconds(self) -> float | None:
        """Used GPU-seconds: more than reserved where a fair share used what others left idle."""
        return None if self.busy_ns is None else self.busy_ns / 1e9


def spans_before(past: Sequence[Stretch], position: int, *, wall: int) -> tuple[UsageSpan, ...]:
    """Of the share at ``position``, never longer than ``wall`` together, whatever the clock did."""
    found: list[UsageSpan] = []
    left = wall
    for stretch in past:
        share = stretch.shares[position]
        length = min(left, stretch.end - stretch.begin)
        left -= length
        found.append(UsageSpan(length, share.memory, share.compute))
    return tuple(found)

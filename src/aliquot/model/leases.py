"""Who holds what: a lease, from its preparation to its end."""

from dataclasses import dataclass
from enum import Enum

from aliquot.model.asks import Isolation, Policy, Unknown
from aliquot.model.identities import LeaseId
from aliquot.model.shares import Share


class LeaseState(Enum):
    """In this order only; every step is committed before its effect is relied on."""

    PREPARING = "preparing"
    HELD = "held"
    RELEASING = "releasing"
    ENDED = "ended"

    @property
    def live(self) -> bool:
        return self is not LeaseState.ENDED


@dataclass(frozen=True, slots=True)
class ProcessHolder:
    """A process, named so that a reused pid is never taken for it."""

    pid: int
    start_time: int
    """Clock ticks after boot: field 22 of ``/proc/PID/stat``."""
    pid_namespace: int
    """Inode of ``/proc/PID/ns/pid``."""


@dataclass(frozen=True, slots=True)
class ContainerHolder:
    """A container, found by its label ``aliquot.lease=ID``, never by guessing."""

    engine: str
    """``podman`` or ``docker``."""
    client: ProcessHolder | None
    """The engine's client while it may still be creating the container."""
    release_on_stop: bool = False
    endpoint: str | None = None
    """The engine's socket where it is not the default one."""


@dataclass(frozen=True, slots=True)
class NobodyHolder:
    """Held until released, or until ``Lease.expires_at``."""


Holder = ProcessHolder | ContainerHolder | NobodyHolder


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a lease had from one change of its size to the next."""

    begin: int
    """Nanoseconds since the epoch; so is ``end``, which is not before it."""
    end: int
    shares: tuple[Share, ...]
    """The same GPUs in the same order as in every other stretch of the lease."""


@dataclass(frozen=True, slots=True)
class Lease:
    id: LeaseId
    state: LeaseState
    ask: str
    """The SPEC as its normal form."""
    shares: tuple[Share, ...]
    """In the order that the tenant sees its devices."""
    policy: Policy
    isolation: Isolation
    """What holds it, not what was asked."""
    holder: Holder
    user: str
    command: str | None
    created_at: int
    """All times: nanoseconds since the epoch, UTC."""
    name: str | None = None
    held_at: int | None = None
    ended_at: int | None = None
    expires_at: int | None = None
    boot_id: str | None = None
    """Of the boot in which its files were last made."""
    end_why: str | None = None
    """``released``, ``holder gone``, ``expired``, ``failed`` …"""
    isolation_why: str | None = None
    """Why it is no stronger, as a clause; None where nothing is known to be missing."""
    paused_at: int | None = None
    """Since then its launches wait; None where it is not paused."""
    unknown: Unknown = Unknown.REFUSE
    worker: ProcessHolder | None = None
    """The process of Aliquot that carries it through PREPARING or RELEASING; None in between."""

    @property
    def governed(self) -> bool:
        """Whether a governor stands in front of the driver: not for whole GPUs."""
        return any(not share.whole for share in self.shares)

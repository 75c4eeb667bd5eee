"""What the book takes and gives beside ``model``'s nouns."""

from dataclasses import dataclass

from aliquot.model import Holder, Isolation, LeaseId, Policy, ProcessHolder, Unknown


@dataclass(frozen=True, slots=True)
class LeaseDraft:
    """All of a lease before it has an id and shares."""

    ask: str
    """The SPEC as its normal form."""
    policy: Policy
    isolation: Isolation
    """What will hold it."""
    holder: Holder
    user: str
    command: str | None
    created_at: int
    """Nanoseconds since the epoch, UTC; so is ``expires_at``."""
    name: str | None = None
    expires_at: int | None = None
    boot_id: str | None = None
    isolation_why: str | None = None
    unknown: Unknown = Unknown.REFUSE
    worker: ProcessHolder | None = None
    """Who prepares it; ``None`` is the calling process."""


@dataclass(frozen=True, slots=True)
class LeaseEvent:
    """One line of a lease's story, written in the transaction of the change it tells of."""

    seq: int
    """Grows over all leases, in the order of commits."""
    at: int
    lease: LeaseId
    what: str
    """A state's value, or ``holder``, ``expiry``, ``boot``, ``resized``, ``paused``, ``resumed``."""
    detail: str | None

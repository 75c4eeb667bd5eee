"""What came of trying to break a share."""

from dataclasses import dataclass
from enum import Enum

from aliquot.model.identities import LeaseId
from aliquot.model.quantities import Bytes, Thousandths


class Outcome(Enum):
    HELD = "held"
    HOLE = "hole"
    """More than the share has, or something of others, was had."""
    BROKEN = "broken"
    """The attempt did not run to its end, so that nothing is proved."""
    UNTRIED = "untried"
    """It does not apply here; the note says why."""
    KNOWN = "known"
    """Not stopped by a share of this isolation, as the threat model says; not tried."""

    @property
    def failed(self) -> bool:
        return self in (Outcome.HOLE, Outcome.BROKEN)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way that was tried. Numbers are None where it is not about bytes, or not about time."""

    name: str
    group: str
    what: str
    outcome: Outcome
    granted: Bytes | None = None
    """What the share's processes had at once."""
    limit: Bytes | None = None
    achieved: Thousandths | None = None
    """Of the device's time that its launches had."""
    allowed: Thousandths | None = None
    error: Thousandths | None = None
    """What no controller can do better by in the time that was measured: (Q (1 - share) + d) / W."""
    result: int | None = None
    """The driver's last answer, a CUresult or nvmlReturn_t."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    lease: LeaseId
    where: str
    """``process``, or the container that it was tried in."""
    attempts: tuple[Attempt, ...]

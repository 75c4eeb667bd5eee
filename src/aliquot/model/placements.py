"""Where an ask goes, or why it goes nowhere."""

from dataclasses import dataclass
from enum import Enum

from aliquot.model.identities import GpuUuid
from aliquot.model.quantities import Bytes, Thousandths
from aliquot.model.reasons import Reason
from aliquot.model.shares import Share


class PlacementPolicy(Enum):
    """Which of several GPUs that fit."""

    PACK = "pack"
    """Best fit: the fullest GPU that still fits, so that large holes stay."""
    SPREAD = "spread"
    """The emptiest GPU."""


class Fit(Enum):
    """Why one GPU was or was not taken."""

    FITS = "fits"
    SHORT = "short"
    """Memory or compute lacks now; ``short_*`` say how much."""
    TOO_SMALL = "too-small"
    """Would not fit were the GPU empty."""
    BELOW_CONTEXT = "below-context"
    """The share is smaller than what one context takes by itself."""
    OTHER_MODEL = "other-model"
    CORDONED = "cordoned"
    UNHEALTHY = "unhealthy"
    HELD_WHOLE = "held-whole"
    """Another lease holds all of it."""
    NOT_EMPTY = "not-empty"
    """A whole GPU is wanted, and somebody is on this one."""
    WHOLE_ONLY = "whole-only"
    """This vendor's cards are not cut."""
    NOT_ENFORCEABLE = "not-enforceable"
    """The isolation asked for cannot be had here."""
    MIG = "mig"
    """In MIG mode: CUDA finds no device on the card itself, so it is neither cut nor leased whole."""

    @property
    def passes(self) -> bool:
        """Whether time alone (leases that end) may turn it into FITS."""
        return self in (Fit.FITS, Fit.SHORT, Fit.HELD_WHOLE, Fit.NOT_EMPTY)


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """What one GPU was asked for, in numbers of that GPU."""

    memory: Bytes | None
    compute: Thousandths


@dataclass(frozen=True, slots=True)
class Considered:
    """One GPU as one alternative saw it."""

    gpu: GpuUuid
    index: int
    name: str
    alternative: int
    """Position in ``Ask.alternatives``."""
    fit: Fit
    wanted: ShareRequest | None = None
    """``None`` where the model or vendor already ruled it out."""
    capacity: Bytes | None = None
    free_memory: Bytes | None = None
    free_compute: Thousandths | None = None
    outside_memory: Bytes | None = None
    short_memory: Bytes | None = None
    short_compute: Thousandths | None = None
    detail: str | None = None
    """One clause, such as the health's ``why``."""


@dataclass(frozen=True, slots=True)
class Placed:
    shares: tuple[Share, ...]
    alternative: int
    considered: tuple[Considered, ...]
    """Every GPU looked at, also those of alternatives that did not fit."""


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Reason
    considered: tuple[Considered, ...]
    could_ever_fit: bool
    """Whether an empty, healthy machine of these GPUs would fit it."""

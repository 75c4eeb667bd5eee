"""What is wanted: an ``Ask``, before anything is known of where it could fit."""

from dataclasses import dataclass
from enum import Enum

from aliquot.model.quantities import WHOLE, Bytes, Thousandths, format_bytes_exactly, format_compute


class Isolation(Enum):
    """How strongly a share is held, strongest first."""

    HARD = "hard"
    """MIG: the hardware holds it."""
    FIRM = "firm"
    """MPS or a partition of multiprocessors, with the governor."""
    SOFT = "soft"
    """The governor, where the tenant cannot go round it with another library path."""
    ADVISORY = "advisory"
    """Nothing that the tenant could not take away."""

    @property
    def rank(self) -> int:
        """3 for hard down to 0 for advisory."""
        return 3 - list(Isolation).index(self)


class Policy(Enum):
    """What happens with compute that a share does not use."""

    FAIR = "fair"
    CAP = "cap"
    PRIORITY = "priority"


class Unknown(Enum):
    """What a driver's function gets that is newer than our table of symbols."""

    REFUSE = "refuse"
    """It is not there, as with an older driver."""
    PASS = "pass"
    """It reaches the driver: what it takes is not counted and not held."""


@dataclass(frozen=True, slots=True)
class Fraction:
    """A part of one GPU in lowest terms: ``1/4``; ``25%`` is the same part."""

    numerator: int
    denominator: int

    def of(self, amount: int) -> int:
        """The part of ``amount``, rounded down so that parts never exceed the whole."""
        return amount * self.numerator // self.denominator

    def __str__(self) -> str:
        if 1000 % self.denominator == 0:
            return format_compute(self.numerator * 1000 // self.denominator)
        return f"{self.numerator}/{self.denominator}"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of one GPU: exactly one of ``bytes`` and ``part``, and perhaps compute apart.

    ``part`` alone is that part of the memory and of the compute. ``bytes`` alone reserves
    compute equal to its part of the memory. ``compute``, where given, replaces both.
    ``part`` of 1/1 without ``compute`` is the whole GPU, for one lease alone.
    """

    bytes: Bytes | None = None
    part: Fraction | None = None
    compute: Fraction | None = None

    @property
    def whole(self) -> bool:
        return self.part == Fraction(1, 1) and self.compute is None

    def memory_of(self, capacity: int) -> Bytes:
        """Bytes of a GPU whose leasable memory is ``capacity``."""
        return self.bytes if self.bytes is not None else Bytes(self._part().of(capacity))

    def compute_of(self, capacity: int) -> Thousandths:
        """Thousandths of that GPU; at least 1, rounded down."""
        if self.compute is not None:
            exact = self.compute.of(WHOLE)
        elif self.bytes is not None:
            exact = min(WHOLE, self.bytes * WHOLE // capacity) if capacity else 0
        else:
            exact = self._part().of(WHOLE)
        return Thousandths(max(1, exact))

    def _part(self) -> Fraction:
        if self.part is None:
            raise ValueError("an Amount has bytes or a part")
        return self.part

    def __str__(self) -> str:
        size = format_bytes_exactly(self.bytes) if self.bytes is not None else str(self._part())
        return size if self.compute is None else f"{size}@{self.compute}"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to satisfy an ask: ``count`` distinct GPUs, each of ``model``, each cut alike."""

    amount: Amount
    count: int = 1
    model: str | None = None
    """Words of the card's name joined by dashes, such as ``RTX-4090``."""
    exact: bool = False
    """``!`` after the model: no variant of it, such as a ``RTX 4090 D``."""

    def __str__(self) -> str:
        count = f"{self.count}x" if self.count != 1 else ""
        if self.model is None:
            return f"{count}{self.amount}"
        model = f"{self.model}!" if self.exact else self.model
        return f"{count}{model}" if self.amount.whole else f"{count}{model}:{self.amount}"


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted, best first: ``str(ask)`` is its SPEC, and parses to the same ask."""

    alternatives: tuple[Alternative, ...]
    policy: Policy = Policy.FAIR
    isolation: Isolation | None = None
    """At least that; ``None`` is any."""
    unknown: Unknown = Unknown.REFUSE

    def __str__(self) -> str:
        return ",".join(str(alternative) for alternative in self.alternatives)

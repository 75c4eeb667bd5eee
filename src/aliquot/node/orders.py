"""What ``run`` was asked, and how it will be started: the nouns that running and the plans share."""

from collections.abc import Callable
from dataclasses import dataclass

from aliquot.model import Ask, Holder, Lease, Notice, PlacementPolicy, Snapshot
from aliquot.node.supervising import WaitingChild

Announce = Callable[[Lease, Snapshot], None]
Tell = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked of ``run``; exactly one of ``ask`` and ``lease`` is given."""

    command: tuple[str, ...]
    ask: Ask | None
    lease: Lease | None
    name: str | None
    placement: PlacementPolicy
    release_on_stop: bool
    inject: str
    """``auto``; ``cdi`` or ``flags`` of a container, ``path`` of a process."""
    user: str | None
    """Whom the process runs as; of processes only."""
    announce: Announce | None


@dataclass(frozen=True, slots=True)
class Started:
    """A child that waits for our word."""

    child: WaitingChild
    isolation_why: str | None = None
    """Why its share is advisory, where it is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the command will be started, once there is a lease."""

    holder: Callable[[int], Holder]
    """The holder, given the child's pid."""
    start: Callable[[Lease], Started]
    container: bool = False
    apart: bool = False
    """Whether its process will have a uid of its own in private mounts, or not start at all."""

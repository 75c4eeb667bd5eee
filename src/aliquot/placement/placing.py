"""Placing one ask on one node."""

from collections.abc import Sequence

from aliquot.model import (
    Alternative,
    Ask,
    Considered,
    Fit,
    Isolation,
    Placed,
    PlacementPolicy,
    Refused,
    Share,
    Snapshot,
)
from aliquot.placement.choices import Candidate, choose
from aliquot.placement.fits import consider
from aliquot.placement.refusals import refuse
from aliquot.placement.rooms import Room, rooms


def place(
    ask: Ask,
    snapshot: Snapshot,
    held: Sequence[Share],
    *,
    policy: PlacementPolicy = PlacementPolicy.PACK,
    achievable: Isolation = Isolation.ADVISORY,
) -> Placed | Refused:
    """The shares that satisfy ``ask`` beside those ``held``, or why there are none.

    ``held`` are the shares of all live leases, in any order; ``achievable`` is the strongest
    isolation that the caller can give whatever is placed. Shares come in the order of the
    GPUs' indices, which is the order that the tenant sees.
    """
    unheld = unenforceable(ask, achievable)
    free = rooms(snapshot, held)
    considered: list[Considered] = []
    for position, alternative in enumerate(ask.alternatives):
        seen = [consider(room, alternative, position, unheld=unheld) for room in free]
        considered += seen
        candidates = [
            Candidate(room, one.wanted)
            for room, one in zip(free, seen, strict=True)
            if one.fit is Fit.FITS and one.wanted is not None
        ]
        chosen = choose(candidates, alternative.count, policy)
        if chosen is not None:
            shares = tuple(_share(candidate, alternative) for candidate in chosen)
            return Placed(shares, position, tuple(considered))
    return refuse(ask, _by_uuid(free), tuple(considered))


def unenforceable(ask: Ask, achievable: Isolation) -> str | None:
    """Why the isolation asked for cannot be had; None where it can."""
    if ask.isolation is None or ask.isolation.rank <= achievable.rank:
        return None
    return f"{ask.isolation.value} isolation is asked, {achievable.value} can be had"


def _share(candidate: Candidate, alternative: Alternative) -> Share:
    wanted = candidate.wanted
    return Share(candidate.room.gpu.uuid, wanted.memory, wanted.compute, whole=alternative.amount.whole)


def _by_uuid(free: Sequence[Room]) -> dict[str, Room]:
    return {room.gpu.uuid: room for room in free}

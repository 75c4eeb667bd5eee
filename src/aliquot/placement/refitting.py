"""Whether a lease can have another size on the GPUs that it has."""

from collections.abc import Iterable, Sequence

from aliquot.model import AliquotError, Ask, Fit, Isolation, Placed, Reason, Refused, Share, Snapshot
from aliquot.placement.fits import consider
from aliquot.placement.placing import unenforceable
from aliquot.placement.refusals import refuse
from aliquot.placement.rooms import Room, rooms


def refit(
    ask: Ask, have: Sequence[Share], snapshot: Snapshot, others: Iterable[Share], *, achievable: Isolation
) -> Placed | Refused:
    """The first alternative of ``ask`` for which all GPUs of ``have`` have room beside ``others``. Pure.

    What the lease itself holds is free to it, so that less than it has always fits.
    Raises AliquotError(BAD_USAGE) where an alternative is of another number of GPUs, or would make
    a part of a GPU whole or the other way: its governor cannot come or go.
    """
    for alternative in ask.alternatives:
        if alternative.count != len(have):
            sizes = f"{len(have)}x{alternative.amount}" if len(have) > 1 else str(alternative.amount)
            raise AliquotError(
                Reason.BAD_USAGE,
                f"`{alternative}` is of {_gpus(alternative.count)} and the lease of {_gpus(len(have))}: "
                "their number does not change",
                next=[(f"aliquot resize ID {sizes}", "is that size on each")],
            )
        if alternative.amount.whole or any(share.whole for share in have):
            raise AliquotError(
                Reason.BAD_USAGE,
                "a whole GPU is leased without a governor: a running lease cannot become or cease to be one",
                next=[(f"aliquot lease --gpu {alternative}", "takes another lease")],
            )
    free: dict[str, Room] = {room.gpu.uuid: room for room in rooms(snapshot, others)}
    considered = []
    for position, alternative in enumerate(ask.alternatives):
        unheld = unenforceable(ask, achievable)
        seen = [
            consider(free[share.gpu], alternative, position, unheld=unheld)
            for share in have
            if share.gpu in free
        ]
        considered += seen
        if len(seen) == len(have) and all(one.fit is Fit.FITS for one in seen):
            shares = tuple(
                Share(one.gpu, one.wanted.memory, one.wanted.compute) for one in seen if one.wanted
            )
            return Placed(shares, position, tuple(considered))
    return refuse(ask, free, tuple(considered))


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"

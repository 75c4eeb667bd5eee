"""The book's own last line against handing anything out twice.

``placement`` chooses; this only refuses to write what cannot be. It knows no ask and no health:
a fault in a policy must not become a double booking.
"""

from collections.abc import Iterable, Mapping

from aliquot.model import WHOLE, AliquotError, Bytes, GpuUuid, Lease, Reason, Share


def refuse_double_booking(
    live: Iterable[Lease], shares: Iterable[Share], capacities: Mapping[GpuUuid, Bytes | None]
) -> None:
    """Raises AliquotError(FAILED) where ``shares`` beside ``live`` would exceed a card.

    ``capacities``: bytes that each card has; a card that is missing or None is checked for
    compute and for exclusivity only.
    """
    held = [share for lease in live for share in lease.shares]
    wanted = tuple(shares)
    if not wanted:
        raise _fault("a lease without a share")
    if len({share.gpu for share in wanted}) != len(wanted):
        raise _fault("two shares of one GPU for one lease")
    for share in wanted:
        others = [other for other in held if other.gpu == share.gpu]
        if others and (share.whole or any(other.whole for other in others)):
            raise _fault(f"{share.gpu} whole beside another lease")
        compute = share.compute + sum(other.compute for other in others)
        if compute > WHOLE:
            raise _fault(f"{compute} of {WHOLE} thousandths of {share.gpu}")
        capacity = capacities.get(share.gpu)
        memory = sum(other.memory or 0 for other in (share, *others))
        if capacity is not None and memory > capacity:
            raise _fault(f"{memory} of {capacity} bytes of {share.gpu}")


def _fault(what: str) -> AliquotError:
    return AliquotError(
        Reason.FAILED,
        f"placement would have handed out {what}; nothing was leased",
        facts=["this is a fault in Aliquot, not in what was asked"],
        next=[("aliquot leases -o yaml", "is what to send with the report")],
    )

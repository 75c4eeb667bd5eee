"""The largest SPEC of the same kind that fits now: what to type after a refusal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction as Exact
from math import gcd

from aliquot.model import (
    WHOLE,
    Alternative,
    Amount,
    Ask,
    Bytes,
    Fraction,
    Isolation,
    Share,
    Snapshot,
)
from aliquot.placement.fits import below_context, closed, occupied, other_card, request
from aliquot.placement.placing import unenforceable
from aliquot.placement.rooms import Room, rooms


@dataclass(frozen=True, slots=True)
class _Offer:
    """What one GPU still has of what was wanted of it."""

    room: Room
    memory: int
    compute: int
    part: Exact
    """The lesser of memory and compute, as a part of what was wanted; 1 where all of it is free."""


def nearest(
    ask: Ask,
    snapshot: Snapshot,
    held: Sequence[Share],
    *,
    achievable: Isolation = Isolation.ADVISORY,
) -> str | None:
    """A SPEC that ``place`` would place now and that is as near to ``ask`` as there is.

    It keeps the model, the count and the form of the ask and takes less of each GPU; where
    not even a little is free on as many GPUs, it takes fewer; where nothing of that model is
    free, another. Of several alternatives, the one of which the largest part is left. None
    where nothing fits, or where less would not help (isolation, context cost).
    """
    if unenforceable(ask, achievable) is not None:
        return None
    free = rooms(snapshot, held)
    found = _best(ask.alternatives, free)
    if found is None:
        found = _best((replace(one, model=None) for one in ask.alternatives if not one.exact), free)
    return None if found is None else str(found)


def _best(alternatives: Iterable[Alternative], free: Sequence[Room]) -> Alternative | None:
    found = [smaller for one in alternatives if (smaller := _smaller(one, free)) is not None]
    return max(found, key=lambda pair: pair[0])[1] if found else None  # the first of equals


def _smaller(alternative: Alternative, free: Sequence[Room]) -> tuple[Exact, Alternative] | None:
    """The alternative made to fit, and how much of each GPU is left of it."""
    offers = [offer for room in free if (offer := _offer(room, alternative)) is not None]
    for count in range(min(alternative.count, len(offers)), 0, -1):
        for same_vendor in _by_vendor(offers):
            if len(same_vendor) < count:
                continue
            best = sorted(same_vendor, key=lambda offer: (-offer.part, -offer.memory))[:count]
            amount = _amount(alternative.amount, best)
            if amount is not None:
                part = best[-1].part * Exact(count, alternative.count)
                return part, replace(alternative, amount=amount, count=count)
    return None


def _by_vendor(offers: Sequence[_Offer]) -> list[list[_Offer]]:
    groups: dict[str, list[_Offer]] = {}
    for offer in offers:
        groups.setdefault(offer.room.gpu.vendor.value, []).append(offer)
    return sorted(groups.values(), key=lambda group: -max(offer.part for offer in group))


def _offer(room: Room, alternative: Alternative) -> _Offer | None:
    gpu = room.gpu
    if other_card(gpu, alternative) or closed(gpu):
        return None
    wanted, memory, compute = request(gpu, alternative), room.free_memory, room.free_compute
    whole = alternative.amount.whole
    if whole and occupied(room, wanted, whole=True) is None:
        return _Offer(room, wanted.memory or 0, wanted.compute, Exact(1))
    if room.held_whole or wanted.memory is None or memory is None or not compute:
        return None
    if below_context(gpu, min(memory, wanted.memory)):
        return None
    part = min(Exact(1), Exact(memory, wanted.memory), Exact(compute, wanted.compute))
    return _Offer(room, min(memory, wanted.memory), min(compute, wanted.compute), part)


def _amount(wanted: Amount, offers: Sequence[_Offer]) -> Amount | None:
    """The largest amount of the same form that each of ``offers`` has."""
    if all(offer.part == 1 for offer in offers):
        return wanted
    memory, compute = min(offer.memory for offer in offers), min(offer.compute for offer in offers)
    amount: Amount | None
    if wanted.bytes is not None:
        amount = _of_bytes(wanted, _readable(memory, wanted.bytes), compute, offers)
    else:
        amount = _of_part(wanted, offers, compute)
    return amount if amount is not None and all(_enough(amount, offer) for offer in offers) else None


def _of_bytes(wanted: Amount, memory: int, compute: int, offers: Sequence[_Offer]) -> Amount:
    plain = Amount(bytes=Bytes(memory))
    if wanted.compute is None and all(
        plain.compute_of(_capacity(offer)) <= offer.room.free_compute for offer in offers
    ):
        return plain
    if wanted.compute is not None and wanted.compute.of(WHOLE) <= compute:
        return replace(plain, compute=wanted.compute)
    return replace(plain, compute=_thousandths(compute))


def _of_part(wanted: Amount, offers: Sequence[_Offer], compute: int) -> Amount | None:
    thousandths = min(offer.memory * WHOLE // _capacity(offer) for offer in offers)
    if wanted.compute is None:
        thousandths = min(thousandths, compute)
        return Amount(part=_thousandths(thousandths)) if thousandths else None
    memory_is_there = all(wanted.memory_of(_capacity(offer)) <= offer.memory for offer in offers)
    compute_is_there = wanted.compute.of(WHOLE) <= compute
    if not memory_is_there and not thousandths:
        return None
    return Amount(
        part=wanted.part if memory_is_there else _thousandths(thousandths),
        compute=wanted.compute if compute_is_there else _thousandths(compute),
    )


def _enough(amount: Amount, offer: _Offer) -> bool:
    memory = amount.memory_of(_capacity(offer))
    return memory <= offer.memory and not below_context(offer.room.gpu, memory)


def _capacity(offer: _Offer) -> int:
    return offer.room.capacity or 0


def _readable(memory: int, wanted: int) -> int:
    """Rounded down to a tenth of its unit, so that it can be typed; exact where nothing was cut."""
    if memory >= wanted:
        return memory
    size = next((size for size in (1 << 40, 1 << 30, 1 << 20, 1 << 10) if memory >= size), 1)
    return (memory * 10 // size) * size // 10


def _thousandths(count: int) -> Fraction:
    common = gcd(count, WHOLE)
    return Fraction(count // common, WHOLE // common)

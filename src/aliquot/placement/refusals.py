"""The one reason for a refusal, out of what every GPU said to every alternative."""

from collections.abc import Callable, Mapping, Sequence

from aliquot.model import Alternative, Ask, Considered, Fit, Reason, Refused
from aliquot.placement.fits import could_fit_empty
from aliquot.placement.rooms import Room

_NEAREST_FIRST = (
    Reason.NO_ROOM,
    Reason.ALL_UNHEALTHY,
    Reason.NOT_ENFORCEABLE,
    Reason.BELOW_CONTEXT,
    Reason.NEVER_FITS,
    Reason.NO_SUCH_MODEL,
    Reason.NO_GPU,
)
"""What an ask with fallbacks is told: the reason of the alternative that came nearest."""


def refuse(ask: Ask, free: Mapping[str, Room], considered: tuple[Considered, ...]) -> Refused:
    by_alternative: list[list[Considered]] = [[] for _ in ask.alternatives]
    for one in considered:
        by_alternative[one.alternative].append(one)
    pairs = list(zip(ask.alternatives, by_alternative, strict=True))
    reasons = [_reason(alternative, seen, free) for alternative, seen in pairs]
    ever = any(_most(seen, free, could_fit_empty) >= alternative.count for alternative, seen in pairs)
    return Refused(min(reasons, key=_NEAREST_FIRST.index), considered, could_ever_fit=ever)


def _reason(alternative: Alternative, seen: Sequence[Considered], free: Mapping[str, Room]) -> Reason:
    def enough(counts: Callable[[Considered], bool]) -> bool:
        return _most(seen, free, counts) >= alternative.count

    fits = {one.fit for one in seen}
    if enough(lambda one: one.fit.passes):
        return Reason.NO_ROOM
    if enough(lambda one: could_fit_empty(one) or one.fit is Fit.UNHEALTHY):
        return Reason.ALL_UNHEALTHY
    if enough(lambda one: could_fit_empty(one) or one.fit is Fit.NOT_ENFORCEABLE):
        return Reason.NOT_ENFORCEABLE
    if enough(lambda one: could_fit_empty(one) or one.fit in (Fit.NOT_ENFORCEABLE, Fit.BELOW_CONTEXT)):
        return Reason.BELOW_CONTEXT
    if not fits or fits == {Fit.WHOLE_ONLY}:
        return Reason.NO_GPU
    if fits == {Fit.OTHER_MODEL}:
        return Reason.NO_SUCH_MODEL
    return Reason.NEVER_FITS


def _most(seen: Sequence[Considered], free: Mapping[str, Room], counts: Callable[[Considered], bool]) -> int:
    """The most GPUs of one vendor that count: no lease spans two."""
    by_vendor: dict[str, int] = {}
    for one in seen:
        vendor = free[one.gpu].gpu.vendor.value
        by_vendor[vendor] = by_vendor.get(vendor, 0) + counts(one)
    return max(by_vendor.values(), default=0)

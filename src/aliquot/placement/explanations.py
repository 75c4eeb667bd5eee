"""What is said of a placement or a refusal: one line a GPU, with its numbers.

ASCII only, so that the lines read the same under ``LANG=C`` and in a log.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from aliquot.model import Ask, Considered, Fit, Placed, Refused, format_bytes, format_compute
from aliquot.placement.models import short_name

WIDTH = 78
"""Of a terminal of 80 columns, less the two by which facts are indented."""
_WIDEST_NAME = 20


def explain(result: Placed | Refused, ask: Ask, *, width: int = WIDTH) -> tuple[str, ...]:
    """One line for each GPU looked at; with fallbacks, a heading above each alternative's.

    A line longer than ``width`` is broken and continued below its first word. Empty where
    there is no GPU.
    """
    taken = {share.gpu for share in result.shares} if isinstance(result, Placed) else set()
    labels = _columns(result.considered)
    lines: list[str] = []
    for position, alternative in enumerate(ask.alternatives):
        seen = [one for one in result.considered if one.alternative == position]
        if seen and len(ask.alternatives) > 1:
            lines.append(f"{alternative}:")
        chosen = taken if isinstance(result, Placed) and position == result.alternative else set()
        for one in seen:
            lines += _broken(labels[one.index], "taken" if one.gpu in chosen else _verdict(one), width)
        if seen and alternative.count > 1 and not chosen:
            lines.append(_count(alternative.count, seen))
    return tuple(lines)


def _columns(considered: Iterable[Considered]) -> dict[int, str]:
    """``gpu0  H100  `` by index, all of one width."""
    names = {one.index: _cut(short_name(one.name)) for one in considered}
    number = max((len(str(index)) for index in names), default=1)
    widest = max(map(len, names.values()), default=0)
    return {index: f"gpu{str(index).ljust(number)}  {name.ljust(widest)}  " for index, name in names.items()}


def _cut(name: str) -> str:
    return name if len(name) <= _WIDEST_NAME else f"{name[: _WIDEST_NAME - 3]}..."


def _broken(label: str, text: str, width: int) -> Sequence[str]:
    lines = wrap(text, max(20, width - len(label)), break_on_hyphens=False)
    return [(label if number == 0 else " " * len(label)) + line for number, line in enumerate(lines)]


def _verdict(one: Considered) -> str:
    detail = f" ({one.detail})" if one.detail else ""
    match one.fit:
        case Fit.FITS:
            return f"{_free(one)}   fits"
        case Fit.SHORT:
            return f"{_free(one)}   short {_short(one)}{_outside(one)}"
        case Fit.TOO_SMALL:
            wanted = one.wanted.memory if one.wanted else None
            return f"has {format_bytes(one.capacity)} in all, {format_bytes(wanted)} is wanted"
        case Fit.BELOW_CONTEXT:
            wanted = one.wanted.memory if one.wanted else None
            return f"{format_bytes(wanted)} is too little: {one.detail}"
        case Fit.OTHER_MODEL:
            return "is another model"
        case Fit.CORDONED:
            return f"cordoned{detail}"
        case Fit.UNHEALTHY | Fit.WHOLE_ONLY | Fit.NOT_ENFORCEABLE:
            return one.detail or one.fit.value
        case Fit.HELD_WHOLE:
            return "held whole by another lease"
        case Fit.NOT_EMPTY:
            return f"not empty: {one.detail}" if one.detail else "not empty"
        case Fit.MIG:
            return f"in MIG mode{detail}"


def _free(one: Considered) -> str:
    if one.capacity is None:
        return "memory unknown"
    return (
        f"free {format_bytes(one.free_memory)} of {format_bytes(one.capacity)}"
        f"   compute free {format_compute(one.free_compute)}"
    )


def _short(one: Considered) -> str:
    parts = []
    if one.short_memory:
        parts.append(_format_up(one.short_memory))
    if one.short_compute:
        parts.append(f"{format_compute(one.short_compute)} compute")
    return " and ".join(parts)


def _outside(one: Considered) -> str:
    """Said only where others' memory is part of what is missing."""
    if not one.short_memory or not one.outside_memory:
        return ""
    return f"; programs in no lease hold {format_bytes(one.outside_memory)}"


def _format_up(count: int) -> str:
    """Rounded up to the decimal shown: freeing what is printed must be enough."""
    for size in (1 << 40, 1 << 30, 1 << 20, 1 << 10):
        if count >= size:
            tenths = (count * 10 + size - 1) // size
            return format_bytes(tenths * size // 10)
    return format_bytes(count)


def _count(count: int, seen: Sequence[Considered]) -> str:
    fitting = sum(one.fit is Fit.FITS for one in seen)
    if fitting >= count:
        return f"{count} GPUs of one vendor are wanted: a program loads one driver only"
    return f"{count} GPUs are wanted at once; {fitting} of {len(seen)} would do now"

"""What is said of a placement or a refusal: one line a GPU, with its numbers.

ASCII only, so that the lines read the same under ``LANG=C`` and in a log.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from aliquot.model import Ask, Considered, Fit, Placed, Reason, Refused, format_bytes, format_compute
from aliquot.placement.models import short_name

WIDTH = 78
"""Of a terminal of 80 columns, less the two by which facts are indented."""
_WIDEST_NAME = 20


def headline(refused: Refused, ask: Ask, *, node: str) -> str:
    """The one sentence of a refusal: what was asked, on which machine, and why not."""
    models = dict.fromkeys(alternative.model for alternative in ask.alternatives if alternative.model)
    isolation = ask.isolation.value if ask.isolation else "the"
    sentences = {
        Reason.NO_ROOM: f"No room for {ask} on {node} now",
        Reason.NEVER_FITS: f"{ask} would not fit on {node} were every GPU empty",
        Reason.NO_GPU: f"No GPU on {node} of which {ask} could be leased",
        Reason.NO_SUCH_MODEL: f"No {' or '.join(models)} on {node} for {ask}",
        Reason.BELOW_CONTEXT: f"{ask} is less than one CUDA context takes on {node}",
        Reason.NOT_ENFORCEABLE: f"{ask} with {isolation} isolation cannot be had on {node}",
        Reason.ALL_UNHEALTHY: f"No healthy, open GPU on {node} would fit {ask}",
    }
    return sentences.get(refused.reason, f"{refused.reason.title}: {ask} on {node}")


def explain(result: Placed | Refused, ask: Ask, *, width: int = WIDTH) -> tuple[str, ...]:
    """One line for each GPU looked at; with fallbacks, a heading above each alternative's.

    A line longer than ``width`` is broken and continued below its first word. Empty where
    there is no GPU.
    """
    taken = {share.gpu for share in result.shares} if isinstance(result, Placed) else set()
    labels = _labels(result.considered)
    numbered = [one for one in result.considered if _numbered(one)]
    widths = [max(map(len, texts), default=0) for texts in (map(_memory, numbered), map(_compute, numbered))]
    lines: list[str] = []
    for position, alternative in enumerate(ask.alternatives):
        seen = [one for one in result.considered if one.alternative == position]
        if seen and len(ask.alternatives) > 1:
            lines.append(f"{alternative}:")
        chosen = taken if isinstance(result, Placed) and position == result.alternative else set()
        for one in seen:
            verdict = _verdict(one, taken=one.gpu in chosen)
            if _numbered(one):
                verdict = f"{_memory(one).ljust(widths[0])}   {_compute(one).ljust(widths[1])}   {verdict}"
            lines += _broken(labels[one.index], verdict, width)
        if seen and alternative.count > 1 and not chosen:
            lines.append(_count(alternative.count, seen))
    return tuple(lines)


def _labels(considered: Iterable[Considered]) -> dict[int, str]:
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


def _numbered(one: Considered) -> bool:
    """Whether what is free is the answer, and so said; else what is in the way is."""
    return one.fit in (Fit.FITS, Fit.SHORT) and one.capacity is not None


def _memory(one: Considered) -> str:
    return f"free {format_bytes(one.free_memory)} of {format_bytes(one.capacity)}"


def _compute(one: Considered) -> str:
    return f"compute free {format_compute(one.free_compute)}"


def _verdict(one: Considered, *, taken: bool) -> str:
    detail = f" ({one.detail})" if one.detail else ""
    match one.fit:
        case Fit.FITS:
            return "taken" if taken else "fits"
        case Fit.SHORT:
            return f"short {_short(one)}{_outside(one)}"
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


def _short(one: Considered) -> str:
    memory = _format_up(one.short_memory) if one.short_memory else ""
    if not one.short_compute:
        return memory
    compute = format_compute(one.short_compute)
    return f"{memory}, {compute}" if memory else f"{compute} compute"


def _outside(one: Considered) -> str:
    """Said only where others' memory is part of what is missing."""
    if not one.short_memory or not one.outside_memory:
        return ""
    return f"; programs in no lease or beyond theirs hold {format_bytes(one.outside_memory)}"


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

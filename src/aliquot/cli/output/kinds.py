"""Kinds of values: how each is shown to people, given to programs, and compared in ``--where``.

A value is ``None`` where it is unknown: ``—`` for people, null for programs, and neither
smaller nor larger than anything.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from aliquot.cli.output.durations import format_duration, format_time, parse_duration
from aliquot.model import format_bytes, format_compute

UNKNOWN = "—"

_BYTES = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]+)")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. ``now`` is nanoseconds since the epoch."""

    unit: str
    """What a literal in ``--where`` looks like, for error messages."""
    show: Callable[[object, int], str]
    document: Callable[[object], object]
    literal: Callable[[str], float | str]
    """Parses a literal; ``ValueError`` with a sentence where it is none."""
    comparable: Callable[[object, int], float | str]
    right: bool = True
    percent_of_whole: bool = False
    """Whether ``10%`` means a part of the column's ``whole``."""


def _plain(value: object) -> object:
    return value


def _number_of(value: object, _now: int) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _whole_number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _text_literal(text: str) -> str:
    return text.casefold()


def parse_number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def parse_percent(text: str) -> float:
    """``25%`` → 25.0."""
    if not text.endswith("%") or not _NUMBER.fullmatch(text[:-1].strip()):
        hint = f"; write {text}%" if _NUMBER.fullmatch(text) else ""
        raise ValueError(f"{text!r} is no percentage{hint}")
    return float(text[:-1])


def parse_bytes(text: str) -> float:
    """``10GiB`` and ``10GB``, which differ; in the units of a SPEC, and a bare number is refused."""
    from aliquot.ask import UNITS

    match = _BYTES.fullmatch(text)
    factor = UNITS.get(match[2].lower()) if match else None
    if match is None or factor is None:
        number = text if _NUMBER.fullmatch(text) else match[1] if match else None
        hint = f"write {number}GiB or {number}GB" if number else "write 10GiB or 512MiB"
        raise ValueError(f"{text!r} is no size; {hint}")
    return float(match[1]) * factor


def _show_float(value: object, _now: int) -> str:
    number = _number_of(value, 0)
    if number == 0:
        return "0"
    if 0 < number < 0.0001:
        return "<0.0001"  # it was not nothing
    return f"{number:.4f}" if number < 1 else f"{number:.2f}"


def _show_remaining(value: object, now: int) -> str:
    left = _whole_number(value) - now
    return f"in {format_duration(left)}" if left > 0 else "past"


TEXT = Kind(
    unit="a word",
    show=lambda value, _now: str(value),
    document=_plain,
    literal=_text_literal,
    comparable=lambda value, _now: str(value).casefold(),
    right=False,
)
FLAG = Kind(
    unit="yes or no",
    show=lambda value, _now: "yes" if value else "no",
    document=_plain,
    literal=_text_literal,
    comparable=lambda value, _now: "yes" if value else "no",
    right=False,
)
COUNT = Kind(
    unit="a number",
    show=lambda value, _now: str(value),
    document=_plain,
    literal=parse_number,
    comparable=_number_of,
)
BYTES = Kind(
    unit="a size such as 10GiB, or a percentage",
    show=lambda value, _now: format_bytes(_whole_number(value)),
    document=_plain,
    literal=parse_bytes,
    comparable=_number_of,
    percent_of_whole=True,
)
COMPUTE = Kind(
    unit="a percentage such as 25%",
    show=lambda value, _now: format_compute(_whole_number(value)),
    document=_plain,
    literal=parse_percent,
    comparable=lambda value, _now: _number_of(value, 0) / 10,
)
PERCENT = Kind(
    unit="a percentage such as 25%",
    show=lambda value, _now: f"{value}%",
    document=_plain,
    literal=parse_percent,
    comparable=_number_of,
)
DEGREES = Kind(
    unit="degrees Celsius",
    show=lambda value, _now: f"{value}C",
    document=_plain,
    literal=lambda text: parse_number(text.removesuffix("C")),
    comparable=_number_of,
)
AMOUNT = Kind(
    unit="a number",
    show=_show_float,
    document=_plain,
    literal=parse_number,
    comparable=_number_of,
)
SPAN = Kind(
    unit="a span such as 90m or 2h",
    show=lambda value, _now: format_duration(_whole_number(value)),
    document=lambda value: _number_of(value, 0) / 1e9,
    literal=lambda text: float(parse_duration(text)),
    comparable=_number_of,
)
"""Nanoseconds; seconds in documents."""
AGE = Kind(
    unit="a span such as 90m or 2h",
    show=lambda value, now: format_duration(now - _whole_number(value)),
    document=lambda value: format_time(_whole_number(value)),
    literal=lambda text: float(parse_duration(text)),
    comparable=lambda value, now: float(now - _whole_number(value)),
)
"""A moment in the past, shown as the time since."""
REMAINING = Kind(
    unit="a span such as 90m or 2h",
    show=_show_remaining,
    document=lambda value: format_time(_whole_number(value)),
    literal=lambda text: float(parse_duration(text)),
    comparable=lambda value, now: float(_whole_number(value) - now),
)
"""A moment to come, shown as the time until then."""

"""Spans of time as people write and read them: ``90m``, ``2h``, ``1d12h``."""

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)([smhdw])", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LONGEST_SECONDS = 100 * 366 * 86400
NANOSECONDS = 1_000_000_000


def parse_duration(text: str) -> int:
    """Nanoseconds of ``2h``, ``90m``, ``1h30m``, ``7d``.

    Raises ``ValueError`` with a sentence for people: a bare number has no unit, and a guess
    between minutes and hours ends somebody's lease.
    """
    compact = text.strip().replace(" ", "")
    if _NUMBER.fullmatch(compact):
        raise ValueError(f"{compact} what? write {compact}m, {compact}h or {compact}d")
    seconds, position = 0.0, 0
    for part in _PART.finditer(compact):
        if part.start() != position:
            break
        seconds += float(part[1]) * _SECONDS[part[2].lower()]
        position = part.end()
    if not compact or position != len(compact):
        raise ValueError(f"{text!r} is no span of time; write 90m, 2h, 1h30m or 7d")
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is more than 100 years")
    return round(seconds * NANOSECONDS)


def format_duration(nanoseconds: int) -> str:
    """Short and rounded down: ``95s``, ``12m``, ``30h``, ``12d``."""
    seconds = max(0, nanoseconds) // NANOSECONDS
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600}h"
    return f"{seconds // 86400}d"


def format_time(nanoseconds: int) -> str:
    """ISO 8601 in UTC to the millisecond: ``2026-11-30T10:54:29.120Z``."""
    from datetime import UTC, datetime, timedelta

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Quantities: memory in bytes, compute in thousandths of one GPU.

Both are plain integers under a name of their own. Floats were rejected: a share must
divide the card exactly, and ``0.1 + 0.2`` does not.
"""

from typing import NewType

Bytes = NewType("Bytes", int)
Thousandths = NewType("Thousandths", int)
"""Compute: 1000 is all of one GPU."""

MIB = 1 << 20
GIB = 1 << 30
WHOLE = Thousandths(1000)

_BINARY = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_DECIMAL = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def format_bytes(count: int | None) -> str:
    """For people: at most one decimal, always rounded down, ``—`` where unknown.

    Rounded down so that a size typed back from a table always fits.
    """
    if count is None:
        return "—"
    for unit, size in _BINARY:
        if count >= size:
            exact = _tenths_exactly(count, size)
            return _in_tenths(count * 10 // size if exact is None else exact, unit)
    return f"{count}B"


def format_bytes_exactly(count: int) -> str:
    """For round trips: the largest unit that says ``count`` exactly with at most one decimal.

    ``10.1GiB`` is no whole number of bytes. It is read rounded down, and written so again.
    """
    for unit, size in sorted((*_BINARY, *_DECIMAL), key=lambda pair: -pair[1]):
        exact = _tenths_exactly(count, size)
        if count >= size and exact is not None:
            return _in_tenths(exact, unit)
    return f"{count}B"


def _tenths_exactly(count: int, size: int) -> int | None:
    """The tenths of ``size`` that, rounded down to bytes, are ``count``; None where none are."""
    tenths = -(-count * 10 // size)
    return tenths if tenths * size // 10 == count else None


def _in_tenths(tenths: int, unit: str) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}{unit}" if tenth else f"{whole}{unit}"


def format_compute(thousandths: int | None) -> str:
    """``25%``, ``12.5%``; ``—`` where unknown."""
    if thousandths is None:
        return "—"
    whole, tenth = divmod(thousandths, 10)
    return f"{whole}%" if tenth == 0 else f"{whole}.{tenth}%"

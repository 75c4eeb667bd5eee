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
            tenths = count * 10 // size
            return f"{tenths // 10}{unit}" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}{unit}"
    return f"{count}B"


def format_bytes_exactly(count: int) -> str:
    """For round trips: the largest unit that divides ``count`` without remainder."""
    for unit, size in sorted((*_BINARY, *_DECIMAL), key=lambda pair: -pair[1]):
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return f"{count}B"


def format_compute(thousandths: int | None) -> str:
    """``25%``, ``12.5%``; ``—`` where unknown."""
    if thousandths is None:
        return "—"
    whole, tenth = divmod(thousandths, 10)
    return f"{whole}%" if tenth == 0 else f"{whole}.{tenth}%"

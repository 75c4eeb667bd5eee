"""AMOUNT and COMPUTE: ``10GiB``, ``1/4``, ``25%``, and the part after ``@``.

``GiB`` and ``GB`` differ by 7 percent and both are meant. Case is forgiven, and so is the
``Gi`` of Kubernetes, because each can mean one thing only. A plain ``G`` is refused:
Kubernetes reads it as GB, Docker as GiB.
"""

from math import gcd

from aliquot.ask.cursors import SPACES, Cursor
from aliquot.ask.numbers import MOST_DIGITS, Number, read_number
from aliquot.ask.unreadable import UnreadableError, shown
from aliquot.model import Amount, Bytes, Fraction

_PREFIXES = "kmgtp"
UNITS = {"b": 1, "byte": 1, "bytes": 1}
UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate(_PREFIXES, start=1)}
UNITS |= {f"{prefix}i": 1024**power for power, prefix in enumerate(_PREFIXES, start=1)}
UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate(_PREFIXES, start=1)}
"""Bytes of each unit, which is in small letters."""

MOST_BYTES = 2**63 - 1
"""What the limits file and SQLite hold; far above any card."""
_MOST_COUNT_HINTED = 8


def read_amount(cursor: Cursor) -> Amount:
    """AMOUNT, and COMPUTE where an ``@`` follows.

    Raises:
        UnreadableError: it cannot be read, is nothing, or is more than one GPU.
    """
    number = read_number(cursor)
    cursor.skip_spaces()
    if cursor.next and cursor.next in "%/":
        amount = Amount(part=_read_part(cursor, number))
    elif letters := cursor.take_letters():
        amount = Amount(bytes=_bytes(number, letters, cursor.position - len(letters)))
    else:
        raise UnreadableError(cursor.position, _what(cursor, number))
    cursor.skip_spaces()
    if not cursor.take("@"):
        return amount
    return Amount(bytes=amount.bytes, part=amount.part, compute=read_compute(cursor))


def read_compute(cursor: Cursor) -> Fraction:
    """COMPUTE: a part of one GPU, as ``30%`` or ``3/10``.

    Raises:
        UnreadableError: it cannot be read, is nothing, or is more than one GPU.
    """
    cursor.skip_spaces()
    if cursor.at_end():
        raise UnreadableError(cursor.position, "how much compute? write a part of one GPU, such as 10GiB@30%")
    number = read_number(cursor)
    cursor.skip_spaces()
    if cursor.next and cursor.next in "%/":
        return _read_part(cursor, number)
    if cursor.take_letters():
        raise UnreadableError(number.position, "compute is a part of one GPU, not bytes: write 30%")
    instead = f"{number.text}%" if 0 < number.unscaled <= 100 * number.scale else "30%"
    raise UnreadableError(
        cursor.position, f"{number.text} what? compute is a part of one GPU: write {instead}"
    )


def _read_part(cursor: Cursor, number: Number) -> Fraction:
    """``25%`` or ``1/4``, from the character after the first number on."""
    if cursor.take("%"):
        return _part(number, number.unscaled, 100 * number.scale, f"{number.text}%")
    slash = cursor.position
    cursor.take("/")
    cursor.skip_spaces()
    start = cursor.position
    denominator = cursor.take_digits()
    if not denominator:
        raise UnreadableError(start, f"{number.text} of how many parts? write 1/4")
    if not number.whole or cursor.next == ".":
        raise UnreadableError(
            number.position, "a fraction has whole numbers: write 1/4, or 12.5% for a finer part"
        )
    if len(denominator) > MOST_DIGITS:
        raise UnreadableError(
            start, f"a number of {len(denominator)} digits is more parts than a GPU has: write 1/4"
        )
    if int(denominator) == 0:
        raise UnreadableError(start, "nothing can be cut into 0 parts: write 1/4")
    if letters := cursor.take_letters():
        raise UnreadableError(
            cursor.position - len(letters),
            f"a part of a GPU takes no unit: write {number.text}/{denominator}, or a size such as 10GiB",
        )
    written = f"{number.text}{cursor.text[slash]}{denominator}"
    return _part(number, number.unscaled, int(denominator), written)


def _part(number: Number, numerator: int, denominator: int, written: str) -> Fraction:
    if numerator == 0:
        raise UnreadableError(
            number.position, f"{written} of a GPU is nothing: write a part above it, such as 25%"
        )
    if numerator > denominator:
        whole, rest = divmod(numerator, denominator)
        instead = f"{whole}x100% for {whole} whole GPUs" if rest == 0 else "100% for a whole GPU"
        raise UnreadableError(number.position, f"{written} is more than one GPU: write {instead}")
    common = gcd(numerator, denominator)
    return Fraction(numerator // common, denominator // common)


def _bytes(number: Number, unit: str, position: int) -> Bytes:
    factor = UNITS.get(unit.lower())
    if factor is None:
        raise UnreadableError(position, _unknown_unit(number, unit))
    written = f"{number.text}{unit}"
    if number.unscaled == 0:
        raise UnreadableError(number.position, f"{written} is nothing: write a size above it, such as 1GiB")
    count = number.unscaled * factor // number.scale
    if count == 0:
        raise UnreadableError(number.position, f"{written} is less than one byte: write a size such as 1GiB")
    if count > MOST_BYTES:
        raise UnreadableError(
            number.position, f"{written} is more memory than any GPU has: write a size such as 10GiB"
        )
    return Bytes(count)


def _unknown_unit(number: Number, unit: str) -> str:
    first = unit[0].lower()
    prefix = first if first in _PREFIXES else "g"
    binary, decimal = f"{prefix.upper()}iB", "kB" if prefix == "k" else f"{prefix.upper()}B"
    problem = f"could be {binary} or {decimal}" if unit.lower() == prefix else "is not a unit"
    return f"'{shown(unit[:20])}' {problem}: write {number.text}{binary} or {number.text}{decimal}"


def _what(cursor: Cursor, number: Number) -> str:
    """The sentence for a bare number: ``10 what?``, and what else may have been meant."""
    text = number.text
    if number.unscaled == 0 and not cursor.text.strip("0123456789, \t"):
        return f"{text} is a size here, not an index: write 10GiB, 1/4, or 100% for a whole GPU"
    before = cursor.text[: number.position].rstrip(SPACES)
    after = cursor.text[cursor.position :]
    sentence = f"{text} what? write {text}GiB or {text}GB"
    if after[:1] == "," and after[1:2].isdigit() and number.whole:
        return f"{sentence}; a decimal has a point, not a comma: {text}.5GiB"
    if 0 < number.unscaled < number.scale:
        return f"{sentence}, or a part of a GPU such as 50%"
    if number.whole and number.unscaled <= _MOST_COUNT_HINTED and before[-1:] in ("", ","):
        if number.unscaled == 1:
            return f"{sentence}, or 100% for a whole GPU"
        if number.unscaled > 1:
            return f"{sentence}, or {text}x100% for {text} whole GPUs"
    return sentence

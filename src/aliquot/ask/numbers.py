"""Numbers as people write them, kept exact: ``1.5`` is 15/10, never a float."""

from dataclasses import dataclass

from aliquot.ask.cursors import Cursor
from aliquot.ask.unreadable import UnreadableError, named

MOST_DIGITS = 20
"""Enough for every byte count below 8 EiB; Python refuses to read integers of 4,300 digits."""
MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Number:
    """``unscaled`` divided by ten to the ``decimals``."""

    text: str
    position: int
    unscaled: int
    decimals: int

    @property
    def whole(self) -> bool:
        return self.decimals == 0

    @property
    def scale(self) -> int:
        return int(10**self.decimals)


def read_number(cursor: Cursor) -> Number:
    """Digits, perhaps a point and more digits.

    Raises:
        UnreadableError: anything else stands there, or more digits than a size can need.
    """
    start = cursor.position
    whole = cursor.take_digits()
    if not whole:
        raise UnreadableError(start, _no_digit(cursor))
    decimals = ""
    if cursor.take("."):
        decimals = cursor.take_digits()
        if not decimals:
            raise UnreadableError(
                cursor.position, f"digits are missing after '{whole[:MOST_DIGITS]}.': write 1.5GiB"
            )
    if len(whole) > MOST_DIGITS:
        raise UnreadableError(start, f"a number of {len(whole)} digits is more than any GPU has: write 10GiB")
    if len(decimals) > MOST_DECIMALS:
        raise UnreadableError(
            start, f"{len(decimals)} decimals are more than a size needs: write at most {MOST_DECIMALS}"
        )
    text = cursor.text[start : cursor.position]
    return Number(text, start, int(whole + decimals), len(decimals))


def _no_digit(cursor: Cursor) -> str:
    character = cursor.next
    if character and character in "-−":
        return "a size is never negative: write 10GiB"
    if character == ".":
        return "a number begins with a digit: write 0.5GiB"
    if character.isnumeric():
        return f"{named(character)} is not one of the digits 0 to 9: write the size with those, such as 10GiB"
    if not character:
        return "a size is missing: write 10GiB, 1/4 or 25%"
    return f"cannot read {named(character)} here: a size begins with a digit, such as 10GiB, 1/4 or 25%"

"""Words of a closed set: policies and isolation, as options and documents give them."""

from enum import Enum
from typing import TypeVar

from aliquot.ask.unreadable import shown
from aliquot.model import AliquotError, Isolation, PlacementPolicy, Policy, Reason, Unknown

_Word = TypeVar("_Word", bound=Enum)


def parse_policy(text: str) -> Policy:
    """``fair``, ``cap`` or ``priority``.

    Raises:
        AliquotError: BAD_USAGE, with the words that are known.
    """
    return _parse(Policy, "policy", text)


def parse_isolation(text: str) -> Isolation:
    """``hard``, ``firm``, ``soft`` or ``advisory``.

    Raises:
        AliquotError: BAD_USAGE, with the words that are known.
    """
    return _parse(Isolation, "isolation", text)


def parse_unknown(text: str) -> Unknown:
    """``refuse`` or ``pass``.

    Raises:
        AliquotError: BAD_USAGE, with the words that are known.
    """
    return _parse(Unknown, "treatment of unknown functions", text)


def parse_placement(text: str) -> PlacementPolicy:
    """``pack`` or ``spread``.

    Raises:
        AliquotError: BAD_USAGE, with the words that are known.
    """
    return _parse(PlacementPolicy, "placement", text)


def _parse(words: type[_Word], what: str, text: str) -> _Word:
    wanted = text.strip().lower()
    for word in words:
        if word.value == wanted:
            return word
    *others, last = (str(word.value) for word in words)
    known = f"{', '.join(others)} or {last}"
    raise AliquotError(Reason.BAD_USAGE, f"no {what} is called '{shown(text[:40])}': write {known}")

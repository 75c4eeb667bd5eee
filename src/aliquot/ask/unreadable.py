"""How a text that cannot be read is shown: the text, a caret under the place, what to write."""

import unicodedata

from aliquot.model import AliquotError, Reason

_BEFORE = 40
_AFTER = 30
_LONGEST_SENTENCE = 160
"""Sentences repeat parts of the text, which may be of any length."""


class UnreadableError(Exception):
    """Reading stopped at ``position`` of the text: one sentence with what to write.

    Private to ``ask``: it lacks the text, which only the outermost reader has whole.
    """

    def __init__(self, position: int, sentence: str) -> None:
        super().__init__(sentence)
        self.position = position
        self.sentence = sentence


def refusal(text: str, stopped: UnreadableError, reason: Reason = Reason.BAD_SPEC) -> AliquotError:
    """The error for people: its facts are the text and the caret, aligned in a terminal.

    An empty text has nothing to point at, and no facts.
    """
    sentence = shown(stopped.sentence)
    if len(sentence) > _LONGEST_SENTENCE:
        sentence = f"{sentence[:_LONGEST_SENTENCE]}..."
    return AliquotError(reason, sentence, facts=pointed(text, stopped.position) if text else ())


def pointed(text: str, position: int) -> tuple[str, str]:
    """A window of ``text`` around ``position``, and the caret's line below it."""
    start = max(0, position - _BEFORE)
    end = min(len(text), position + _AFTER)
    before = shown(text[start:position])
    head = "..." if start else ""
    tail = "..." if end < len(text) else ""
    line = head + before + shown(text[position:end]) + tail
    return line, " " * _columns(head + before) + "^"


def shown(text: str) -> str:
    """The text with each unprintable character as ``?``.

    One for one, so that the caret stays true; and unprintable ones never reach the terminal,
    where an escape sequence could hide or forge what is printed.
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def named(character: str) -> str:
    """A character as a sentence can hold it: ``'%'``, ``'Ａ' (U+FF21)``."""
    quoted = f"'{shown(character)}'"
    return quoted if character.isascii() and character.isprintable() else f"{quoted} (U+{ord(character):04X})"


def _columns(text: str) -> int:
    """Columns of a terminal that ``text`` takes: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )

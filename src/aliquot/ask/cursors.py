"""A place in a SPEC, moving forward only: what makes every error know its position."""

import re

SPACES = " \t\r\n"
TIMES = "xX×"

_INTEGER = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[^\W\d_]+")


class Cursor:
    """Reads ``text[position:end]``; positions are those of the whole text."""

    def __init__(self, text: str, position: int, end: int) -> None:
        self.text = text
        self.position = position
        self.end = end

    @property
    def next(self) -> str:
        """The next character; empty at the end, so that comparing needs no second question."""
        return self.text[self.position] if self.position < self.end else ""

    @property
    def rest(self) -> str:
        return self.text[self.position : self.end]

    def at_end(self) -> bool:
        return self.position >= self.end

    def skip_spaces(self) -> None:
        while self.next and self.next in SPACES:
            self.position += 1

    def take(self, characters: str) -> bool:
        """Step over the next character if it is one of ``characters``."""
        if self.next and self.next in characters:
            self.position += 1
            return True
        return False

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position, self.end)
        if match is not None:
            self.position = match.end()
        return match

    def take_digits(self) -> str:
        """ASCII digits only: ``\\d`` and ``int`` would take 750 others that no reader tells apart."""
        match = self.take_match(_INTEGER)
        return match.group() if match else ""

    def take_letters(self) -> str:
        match = self.take_match(_LETTERS)
        return match.group() if match else ""

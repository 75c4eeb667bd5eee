"""SPEC: ``[COUNT x] [MODEL[!] :] AMOUNT [@ COMPUTE]``, fallbacks by comma.

A model begins with a letter and an amount with a digit, which is all that tells ``A10``
(a card) from ``10`` (``10 what?``). Read by hand rather than by one regular expression:
an expression that does not match knows neither where nor why.
"""

import re
from collections.abc import Iterator

from aliquot.ask.amounts import UNITS, read_amount, read_compute
from aliquot.ask.cursors import SPACES, TIMES, Cursor
from aliquot.ask.numbers import MOST_DIGITS
from aliquot.ask.unreadable import UnreadableError, named, refusal, shown
from aliquot.model import Alternative, Amount, Ask, Fraction

_LONGEST = 1000
_COUNT = re.compile(rf"([0-9]+)[ \t]*[{TIMES}]")
_COUNT_WITH_POINT = re.compile(rf"[0-9]+\.[0-9]*[ \t]*[{TIMES}]")
_MODEL = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*(?:[ \t]+[A-Za-z0-9_.+-]+)*")
_COUNT_BEHIND = re.compile(rf"(.*[0-9])[{TIMES}]([0-9]{{1,3}})")
_LIKE_AN_AMOUNT = re.compile(r"[0-9.]+(?:[kmgtp]i?b?|b)", re.IGNORECASE)
WHOLE_GPU = Amount(part=Fraction(1, 1))


def parse(text: str) -> Ask:
    """The ask that a SPEC says, best alternative first.

    ``parse(str(ask)) == ask`` for every ask with default policy and isolation.

    Raises:
        AliquotError: BAD_SPEC; the facts are the text and a caret under the position.
    """
    try:
        return Ask(tuple(_alternatives(text)))
    except UnreadableError as stopped:
        raise refusal(text, stopped) from None


def parse_compute(text: str) -> Fraction:
    """COMPUTE by itself, as ``--compute`` and a document's ``compute`` give it: ``25%``, ``1/4``.

    Raises:
        AliquotError: BAD_SPEC; the facts are the text and a caret under the position.
    """
    cursor = Cursor(text[:_LONGEST], 0, min(len(text), _LONGEST))
    try:
        part = read_compute(cursor)
        cursor.skip_spaces()
        if not cursor.at_end():
            raise UnreadableError(
                cursor.position, f"cannot read {named(cursor.next)} after compute: write 25%"
            )
    except UnreadableError as stopped:
        raise refusal(text, stopped) from None
    return part


def _alternatives(text: str) -> Iterator[Alternative]:
    if not text.strip(SPACES):
        raise UnreadableError(0, "nothing is asked: write a size such as 10GiB, 1/4 or 25%")
    if not text.strip(SPACES + ","):
        raise UnreadableError(
            text.index(","), "only commas: write a size such as 10GiB, with fallbacks as 10GiB,5GiB"
        )
    if len(text) > _LONGEST:
        raise UnreadableError(
            _LONGEST, f"{len(text)} characters are too many for a size: write at most {_LONGEST}"
        )
    start = 0
    while start <= len(text):
        comma = text.find(",", start)
        end = comma if comma >= 0 else len(text)
        yield _read_alternative(Cursor(text, start, end))
        start = end + 1


def _read_alternative(cursor: Cursor) -> Alternative:
    cursor.skip_spaces()
    if cursor.at_end():
        where = "after the last comma" if cursor.end == len(cursor.text) else "before this comma"
        raise UnreadableError(
            cursor.position, f"nothing stands {where}: write another size or remove the comma"
        )
    if cursor.next == ":":
        raise UnreadableError(cursor.position, "a model goes before ':': write H100:10GiB")
    count = _read_count(cursor)
    model, exact = _read_model(cursor)
    start = cursor.position
    amount = WHOLE_GPU if model is not None and cursor.at_end() else read_amount(cursor)
    cursor.skip_spaces()
    if not cursor.at_end():
        raise UnreadableError(
            cursor.position, _trailing(cursor, cursor.text[start : cursor.position].strip(SPACES))
        )
    return Alternative(amount, count, model, exact)


def _read_count(cursor: Cursor) -> int:
    start = cursor.position
    if cursor.take_match(_COUNT_WITH_POINT):
        raise UnreadableError(start, "a count is a whole number of GPUs: write 2xH100")
    match = cursor.take_match(_COUNT)
    if match is None:
        return 1
    digits = match.group(1)
    if len(digits) > MOST_DIGITS:
        raise UnreadableError(
            start, f"a count of {len(digits)} digits is more GPUs than there are: write 2xH100"
        )
    count = int(digits)
    if count == 0:
        raise UnreadableError(start, "0 GPUs are nothing: write a count from 1 on, such as 2xH100")
    cursor.skip_spaces()
    if cursor.at_end():
        raise UnreadableError(cursor.position, f"{count}x what? write {count}x10GiB or {count}xH100")
    return count


def _read_model(cursor: Cursor) -> tuple[str | None, bool]:
    """The model and whether ``!`` follows; afterwards the cursor is at AMOUNT or the end."""
    start = cursor.position
    match = cursor.take_match(_MODEL)
    if match is None:
        return None, False
    words = match.group().split()
    model = "-".join(words)
    _refuse_what_is_no_model(start, match.group(), words)
    exact = cursor.take("!")
    cursor.skip_spaces()
    if cursor.at_end():
        return model, exact
    name = f"{model}!" if exact else model
    if cursor.next == "@":
        raise UnreadableError(
            cursor.position, f"say how much memory before @: write {name}:100%{cursor.rest.strip()}"
        )
    if cursor.next in "%/" and len(words) > 1:
        card, size = "-".join(words[:-1]), words[-1] + cursor.rest.strip()
        raise UnreadableError(
            cursor.position, f"a ':' goes between model and size: write {card}:{shown(size)}"
        )
    if not cursor.take(":"):
        raise UnreadableError(
            cursor.position, f"cannot read {named(cursor.next)} in a model: write {name}:10GiB"
        )
    cursor.skip_spaces()
    if cursor.at_end():
        raise UnreadableError(
            cursor.position, f"how much of each? write {name}:20GiB, or {name} for all of it"
        )
    return model, exact


def _refuse_what_is_no_model(start: int, text: str, words: list[str]) -> None:
    """Slips that would otherwise pass as the name of a card that nobody has."""
    if text.lower() == "all":
        raise UnreadableError(
            start, f"'{text}' is no size: write 100% for a whole GPU, or 2x100% for 2 whole GPUs"
        )
    if text.lower() in UNITS:
        raise UnreadableError(start, f"how many {text}? write 10{text}")
    if behind := _COUNT_BEHIND.fullmatch(text):
        model, count = behind.groups()
        raise UnreadableError(start + len(model), f"the count goes first: write {count}x{model}")
    for position, word in enumerate(words[1:], start=1):
        if _LIKE_AN_AMOUNT.fullmatch(word):
            card = "-".join(words[:position])
            raise UnreadableError(
                start + text.rindex(word),
                f"is {word} the size? write {card}:{word}; or {card}-{word} for the card of that name",
            )


def _trailing(cursor: Cursor, amount: str) -> str:
    """What to say of text after a complete amount."""
    written = shown(amount)
    match = _MODEL.fullmatch(cursor.rest.strip(f":{SPACES}"))
    if match is not None:
        word = match.group()
        if word.lower().startswith("x") and word[1:].isdigit():
            return f"the count goes first: write {word[1:]}x{written}"
        return f"the model goes first: write {'-'.join(word.split())}:{written}"
    return f"cannot read {named(cursor.next)} after {written}: a fallback follows a comma, as in 10GiB,5GiB"

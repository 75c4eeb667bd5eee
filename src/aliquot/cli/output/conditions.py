"""``--where``: a small language of comparisons, read without ``eval``.

::

    any     = all { "or" all }
    all     = one { "and" one }
    one     = "not" one | "(" any ")" | COLUMN OP VALUE
    OP      = "<" "<=" ">" ">=" "=" "==" "!=" "~" (contains)
    VALUE   = a word or a quoted string: 10GiB, 25%, 2h, alice, unknown

An unknown value makes a comparison neither true nor false (Kleene's logic, as in SQL):
``used<10%`` and ``not used<10%`` both leave out a GPU that does not tell; ``used=unknown``
finds it.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NoReturn

from aliquot.cli.output.columns import Column, Listing, Row
from aliquot.cli.output.kinds import UNKNOWN, parse_percent
from aliquot.model import AliquotError, Reason

Condition = Callable[[Row, int], bool | None]
"""(row, now) → whether it holds; ``None`` where that cannot be known."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<op><=|>=|!=|==|[<>=~()])|'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<word>[^\s<>=~()!'"]+))"""
)
_OPERATORS: dict[str, Callable[[float | str, float | str], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_UNKNOWNS = ("unknown", UNKNOWN)
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    at: int
    quoted: bool = False
    op: bool = False

    def is_word(self, word: str) -> bool:
        return not self.quoted and not self.op and self.text.lower() == word

    def is_op(self, *texts: str) -> bool:
        return self.op and self.text in texts


def parse_condition(text: str, listing: Listing[Row]) -> Condition[Row]:
    """The condition that ``text`` states; ``AliquotError`` (bad-usage) with a caret where it states none."""
    return _Parser(text, listing).parse()


class _Parser(Generic[Row]):
    def __init__(self, text: str, listing: Listing[Row]) -> None:
        self._text = text
        self._listing = listing
        self._tokens = self._read_tokens()
        self._next = 0
        self._depth = 0

    def parse(self) -> Condition[Row]:
        condition = self._any()
        if (left := self._peek()) is not None:
            self._fail(left.at, "expected `and`, `or` or the end")
        return condition

    def _any(self) -> Condition[Row]:
        condition = self._all()
        while (token := self._peek()) is not None and token.is_word("or"):
            self._next += 1
            condition = _either(condition, self._all())
        return condition

    def _all(self) -> Condition[Row]:
        condition = self._one()
        while (token := self._peek()) is not None and token.is_word("and"):
            self._next += 1
            condition = _both(condition, self._one())
        return condition

    def _one(self) -> Condition[Row]:
        token = self._take("a column's name")
        if token.is_word("not"):
            return self._deeper(token, lambda: _negated(self._one()))
        if token.is_op("("):
            condition = self._deeper(token, self._any)
            if not (closing := self._take("`)`")).is_op(")"):
                self._fail(closing.at, "expected `)`")
            return condition
        return self._comparison(token)

    def _deeper(self, token: _Token, parse: Callable[[], Condition[Row]]) -> Condition[Row]:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(token.at, f"nested more than {_DEEPEST} deep")
        condition = parse()
        self._depth -= 1
        return condition

    def _comparison(self, name: _Token) -> Condition[Row]:
        if name.op or name.quoted:
            self._fail(name.at, "expected a column's name")
        column = self._listing.find_column(name.text)
        if column is None:
            self._no_column(name)
        comparator = self._take("a comparison such as `<` or `=`")
        if not comparator.is_op(*_OPERATORS, "~"):
            self._fail(comparator.at, "expected one of < <= > >= = != ~")
        value = self._take("a value")
        if value.op:
            self._fail(value.at, "expected a value")
        return self._compare(column, comparator, value)

    def _compare(self, column: Column[Row], comparator: _Token, value: _Token) -> Condition[Row]:
        if value.text.lower() in _UNKNOWNS and not value.quoted:
            if not comparator.is_op("=", "==", "!="):
                self._fail(comparator.at, "unknown is compared with = or != only")
            wanted = comparator.text != "!="
            return lambda row, _now: (column.value(row) is None) is wanted
        if comparator.text == "~":
            needle = value.text.casefold()
            return lambda row, now: (
                None if column.value(row) is None else needle in column.text(row, now).casefold()
            )
        compare = _OPERATORS[comparator.text]
        if column.kind.percent_of_whole and column.whole is not None and value.text.endswith("%"):
            return _of_whole(column, compare, self._literal(parse_percent, value))
        literal = self._literal(column.kind.literal, value, unit=column.kind.unit)
        return _of_value(column, compare, literal)

    def _literal(
        self, parse: Callable[[str], float | str], value: _Token, *, unit: str | None = None
    ) -> float | str:
        try:
            return parse(value.text)
        except ValueError as error:
            self._fail(value.at, f"{error}", *([f"compares with  {unit}"] if unit else []))

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, expected: str) -> _Token:
        token = self._peek()
        if token is None:
            self._fail(len(self._text), f"expected {expected}")
        self._next += 1
        return token

    def _read_tokens(self) -> list[_Token]:
        tokens, position = [], 0
        end = len(self._text.rstrip())
        while position < end:
            match = _TOKEN.match(self._text, position)
            if match is None:
                start = position + len(self._text[position:]) - len(self._text[position:].lstrip())
                self._fail(start, "cannot be read from here on")
            kind = match.lastgroup or "word"
            at = match.start(kind) - (kind in ("single", "double"))
            tokens.append(_Token(match[kind], at, quoted=kind in ("single", "double"), op=kind == "op"))
            position = match.end()
        return tokens

    def _no_column(self, name: _Token) -> NoReturn:
        nearest, meant = self._listing.nearest_column(name.text), None
        if nearest is not None:
            meant = self._text[: name.at] + nearest.name + self._text[name.at + len(name.text) :]
        self._fail(name.at, f"no column {name.text!r}", *self._listing.column_lines(), meant=meant)

    def _fail(self, at: int, why: str, *facts: str, meant: str | None = None) -> NoReturn:
        steps = [] if meant is None else [(f"--where {_quoted(meant)}", "did you mean this?")]
        if self._listing.example:
            steps.append((f"--where {_quoted(self._listing.example)}", "an example"))
        raise AliquotError(
            Reason.BAD_USAGE, f"--where: {why}", facts=[self._text, " " * at + "^", *facts], next=steps
        )


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _of_value(
    column: Column[Row], compare: Callable[[float | str, float | str], bool], literal: float | str
) -> Condition[Row]:
    def holds(row: Row, now: int) -> bool | None:
        value = column.comparable(row, now)
        return None if value is None else compare(value, literal)

    return holds


def _of_whole(
    column: Column[Row], compare: Callable[[float | str, float | str], bool], percent: float | str
) -> Condition[Row]:
    def holds(row: Row, now: int) -> bool | None:
        value, whole = column.comparable(row, now), column.whole(row) if column.whole else None
        if not isinstance(value, int | float) or not whole:
            return None
        return compare(value * 100 / whole, percent)

    return holds


def _both(left: Condition[Row], right: Condition[Row]) -> Condition[Row]:
    def holds(row: Row, now: int) -> bool | None:
        answers = (left(row, now), right(row, now))
        return False if False in answers else None if None in answers else True

    return holds


def _either(left: Condition[Row], right: Condition[Row]) -> Condition[Row]:
    def holds(row: Row, now: int) -> bool | None:
        answers = (left(row, now), right(row, now))
        return True if True in answers else None if None in answers else False

    return holds


def _negated(condition: Condition[Row]) -> Condition[Row]:
    def holds(row: Row, now: int) -> bool | None:
        answer = condition(row, now)
        return None if answer is None else not answer

    return holds

"""One declaration a list: its columns, its labels, its name for programs.

Every form of a list (table, wide, json, csv …), ``--where``, ``-l`` and ``--sort`` read the
same declaration, so that what can be seen can be chosen by, and no form lags behind another.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from aliquot.cli.output.kinds import TEXT, UNKNOWN, Kind
from aliquot.cli.output.streams import printable

Row = TypeVar("Row")

_FACT_WIDTH = 78
"""Facts of an error stand two letters in."""


class Shown(Enum):
    TABLE = "table"
    WIDE = "wide"
    """In ``-o wide``, in CSV and in documents."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    name: str
    """On the command line: lower case, with dashes."""
    value: Callable[[Row], object]
    kind: Kind = TEXT
    key: str | None = None
    """In documents and CSV: camelCase, ending in its unit; the name where not given."""
    header: str | None = None
    """In tables; the name in capitals where not given."""
    shown: Shown = Shown.TABLE
    brief: Callable[[Row], str] | None = None
    """A shorter text for the plain table; every other form has the whole value."""
    narrow: Callable[[Row], str] | None = None
    """One shorter still, for a terminal that has no room for the others."""
    whole: Callable[[Row], int | None] | None = None
    """What ``10%`` in ``--where`` is a part of."""
    narrowest: int | None = None
    """On a terminal that is too narrow, this column's text may be cut to so many letters …"""
    spare: int = 0
    """… and then columns are left out, the highest number first; 0 never."""

    @property
    def title(self) -> str:
        return self.header or self.name.upper()

    @property
    def document_key(self) -> str:
        return self.key or self.name

    def spellings(self) -> tuple[str, ...]:
        """In small letters, all that may be typed for it: what any form of the list shows it as."""
        return self.name, self.title.lower(), self.document_key.lower()

    def narrow_text(self, row: Row, now: int) -> str:
        """As in the plain table, where the terminal has too little room for it."""
        if self.narrow is None or self.value(row) is None:
            return self.text(row, now, brief=True)
        return printable(self.narrow(row))

    def text(self, row: Row, now: int, *, brief: bool = False) -> str:
        value = self.value(row)
        if value is None:
            return UNKNOWN
        return printable(self.brief(row) if brief and self.brief else self.kind.show(value, now))

    def comparable(self, row: Row, now: int) -> float | str | None:
        value = self.value(row)
        return None if value is None else self.kind.comparable(value, now)

    def document(self, row: Row) -> object:
        value = self.value(row)
        return None if value is None else self.kind.document(value)


@dataclass(frozen=True, slots=True)
class Listing(Generic[Row]):
    kind: str
    """Of one item in documents; the list is ``kind`` + ``List``."""
    columns: Sequence[Column[Row]]
    name: Callable[[Row], str]
    """What ``-o name`` and ``-q`` print, and other commands take."""
    empty: str
    """What stderr says where there is nothing, with the next command; ``""`` where others say it."""
    example: str = ""
    """A condition for ``--where`` that this list can answer."""
    labels: Mapping[str, Callable[[Row], Iterable[str | None]]] = field(default_factory=dict)
    """Keys of ``-l`` and the values that a row answers to."""
    matchers: Mapping[str, Callable[[Row, str], bool]] = field(default_factory=dict)
    """Keys of ``-l`` whose values are not compared letter by letter."""
    nested: Callable[[Row], Mapping[str, object]] | None = None
    """What only documents hold: lists and objects inside an item."""

    def find_column(self, name: str) -> Column[Row] | None:
        """By its name, its header or its key in documents, in any case of letters."""
        return next((column for column in self.columns if name.lower() in column.spellings()), None)

    def nearest_column(self, name: str) -> Column[Row] | None:
        """The one that somebody who typed ``name`` may have meant."""
        import difflib

        spellings = [spelling for column in self.columns for spelling in column.spellings()]
        nearest = difflib.get_close_matches(name.lower(), spellings, n=1)
        return self.find_column(nearest[0]) if nearest else None

    def column_lines(self) -> list[str]:
        """The names of the columns, in lines for a terminal of 80 columns."""
        from textwrap import wrap

        names = ", ".join(column.name for column in self.columns)
        title = "columns  "
        return wrap(
            names,
            _FACT_WIDTH,
            initial_indent=title,
            subsequent_indent=" " * len(title),
            break_on_hyphens=False,
            break_long_words=False,
        )

    def item(self, row: Row) -> dict[str, object]:
        """One item as programs get it."""
        document = {column.document_key: column.document(row) for column in self.columns}
        return document | dict(self.nested(row)) if self.nested else document

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
from aliquot.model import AliquotError, Reason

Row = TypeVar("Row")


class Shown(Enum):
    TABLE = "table"
    WIDE = "wide"
    """In ``-o wide``, in CSV and in documents."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    name: str
    """On the command line and in CSV: lower case, with dashes."""
    value: Callable[[Row], object]
    kind: Kind = TEXT
    key: str | None = None
    """In documents: camelCase, ending in its unit; the name where not given."""
    header: str | None = None
    """In tables; the name in capitals where not given."""
    shown: Shown = Shown.TABLE
    brief: Callable[[Row], str] | None = None
    """A shorter text for the plain table; every other form has the whole value."""
    whole: Callable[[Row], int | None] | None = None
    """What ``10%`` in ``--where`` is a part of."""
    narrowest: int | None = None
    """On a terminal that is too narrow, this column's text may be cut to so many letters …"""
    spare: int = 0
    """… and then columns are left out, the highest number first; 0 never."""

    @property
    def title(self) -> str:
        return self.header or self.name.upper()

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
    labels: Mapping[str, Callable[[Row], Iterable[str | None]]] = field(default_factory=dict)
    """Keys of ``-l`` and the values that a row answers to."""
    nested: Callable[[Row], Mapping[str, object]] | None = None
    """What only documents hold: lists and objects inside an item."""

    def column(self, name: str) -> Column[Row]:
        """The column called ``name``; ``AliquotError`` (bad-usage) that lists them where none is."""
        for column in self.columns:
            if name.lower() in (column.name, (column.key or "").lower()):
                return column
        raise AliquotError(
            Reason.BAD_USAGE,
            f"No column {name!r}",
            facts=["columns  " + ", ".join(column.name for column in self.columns)],
        )

    def item(self, row: Row) -> dict[str, object]:
        """One item as programs get it."""
        document = {column.key or column.name: column.document(row) for column in self.columns}
        return document | dict(self.nested(row)) if self.nested else document

"""Which rows of a list, in which form: what ``-o -l --where --sort -n -q`` say."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from aliquot.cli.output.columns import Listing, Row
from aliquot.cli.output.documents import as_json, as_yaml, document
from aliquot.cli.output.streams import out, out_exactly, printable, say, styled, width
from aliquot.model import AliquotError, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMS = ("table", "wide", "json", "jsonl", "yaml", "csv", "name")


@dataclass(frozen=True, slots=True)
class Choice:
    form: str = "table"
    labels: tuple[str, ...] = ()
    """``key=value`` or ``key!=value``; all of them hold."""
    where: str | None = None
    sort: str | None = None
    """A column's name, header or key; with ``-`` before it the largest comes first."""
    limit: int | None = None

    @property
    def for_people(self) -> bool:
        return self.form in ("table", "wide")


def chosen(listing: Listing[Row], rows: Sequence[Row], choice: Choice, *, now: int) -> list[Row]:
    """The rows that ``choice`` names; ``AliquotError`` (bad-usage) where it cannot be read."""
    tests = [_label_test(listing, label) for label in choice.labels]
    kept = [row for row in rows if all(test(row) for test in tests)]
    if choice.where is not None:
        from aliquot.cli.output.conditions import parse_condition

        condition = parse_condition(choice.where, listing)
        kept = [row for row in kept if condition(row, now) is True]
    if choice.sort is not None:
        kept = _sorted(listing, kept, choice.sort, now=now)
    return kept if choice.limit is None else kept[: choice.limit]


def show_list(
    listing: Listing[Row],
    rows: Sequence[Row],
    choice: Choice,
    *,
    more: "Mapping[str, object] | None" = None,
    now: int | None = None,
) -> list[Row]:
    """Print the rows that ``choice`` names in its form, and return them.

    ``more`` are further keys of the list's document.
    """
    now = time.time_ns() if now is None else now
    kept = chosen(listing, rows, choice, now=now)
    if choice.for_people:
        if not kept:
            if rows or listing.empty:
                say(f"none of {len(rows)} match" if rows else listing.empty)
        else:
            _print_table(listing, kept, now=now, wide=choice.form == "wide")
    elif choice.form == "json":
        out_exactly(as_json(_list_document(listing, kept, more)))
    elif choice.form == "yaml":
        out_exactly(as_yaml(_list_document(listing, kept, more)))
    elif choice.form == "jsonl":
        for row in kept:
            out_exactly(as_json(document(listing.kind, listing.item(row)), indent=False))
    elif choice.form == "csv":
        out_exactly(_csv(listing, kept), end="")
    else:
        for row in kept:
            out_exactly(listing.name(row))
    return kept


def _print_table(listing: Listing[Row], rows: Sequence[Row], *, now: int, wide: bool) -> None:
    import sys

    from aliquot.cli.output.tables import stacked, table

    columns = width()
    header, *lines = table(listing, rows, now=now, wide=wide, width=None if wide else columns)
    if columns is not None and max(map(len, (header, *lines))) > columns:
        out("\n".join(stacked(listing, rows, now=now, width=columns)))
    else:
        out("\n".join([styled(header, "bold", sys.stdout), *lines]))


def _list_document(
    listing: Listing[Row], rows: Sequence[Row], more: "Mapping[str, object] | None"
) -> dict[str, object]:
    body = document(listing.kind + "List", {"items": [listing.item(row) for row in rows]})
    return body | dict(more) if more else body


def _csv(listing: Listing[Row], rows: Sequence[Row]) -> str:
    import csv
    import io

    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow([column.document_key for column in listing.columns])
    for row in rows:
        writer.writerow([_csv_value(column.document(row)) for column in listing.columns])
    return sheet.getvalue()


def _csv_value(value: object) -> object:
    """One line a row, whatever is in it: this form is read by ``cut`` and ``awk`` as well."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else printable(value) if isinstance(value, str) else value


_Value = TypeVar("_Value")


def _label_test(listing: Listing[Row], label: str) -> Callable[[Row], bool]:
    key, equals, value = label.partition("=")
    wanted = not key.endswith("!")
    key = key.removesuffix("!").strip().lower()
    known = [*listing.labels, *listing.matchers]
    if not equals or not key:
        raise AliquotError(
            Reason.BAD_USAGE, f"-l {label!r} is not key=value", facts=[f"keys  {', '.join(known)}"]
        )
    if key not in known:
        raise AliquotError(Reason.BAD_USAGE, f"-l: no key {key!r} here", facts=[f"keys  {', '.join(known)}"])
    value = value.strip()
    if (matcher := listing.matchers.get(key)) is not None:
        return lambda row: matcher(row, value) is wanted
    answers, value = listing.labels[key], value.casefold()

    def test(row: Row) -> bool:
        return (value in [answer.casefold() for answer in answers(row) if answer is not None]) is wanted

    return test


def _sorted(listing: Listing[Row], rows: list[Row], name: str, *, now: int) -> list[Row]:
    """Stable; unknown values come last either way."""
    minus, plain = "-" * name.startswith("-"), name.removeprefix("-")
    column = listing.find_column(plain)
    if column is None:
        nearest = listing.nearest_column(plain)
        raise AliquotError(
            Reason.BAD_USAGE,
            f"--sort: no column {plain!r}",
            facts=listing.column_lines(),
            next=[(f"--sort {minus}{nearest.name}", "did you mean this?")] if nearest else [],
        )
    known = [(value, row) for row in rows if (value := column.comparable(row, now)) is not None]
    unknown = [row for row in rows if column.value(row) is None]
    known.sort(key=lambda pair: pair[0], reverse=bool(minus))
    return [row for _, row in known] + unknown

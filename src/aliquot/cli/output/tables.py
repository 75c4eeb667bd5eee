"""Plain tables: aligned columns, two spaces between, no box.

Nothing is cut unless stdout is a terminal that is too narrow. Then columns that have a shorter
text show it, the ones that can be spared are left out, and the ones that allow it are cut.
``-o wide`` has them all, on such a terminal one below the other.
"""

from collections.abc import Mapping, Sequence

from aliquot.cli.output.columns import Column, Listing, Row, Shown

_GAP = "  "


def table(
    listing: Listing[Row], rows: Sequence[Row], *, now: int, wide: bool = False, width: int | None = None
) -> list[str]:
    """The lines of the table, its header first; ``width`` ``None`` cuts nothing."""
    columns = [column for column in listing.columns if wide or column.shown is Shown.TABLE]
    cells = {
        column.name: [column.title, *(column.text(row, now, brief=not wide) for row in rows)]
        for column in columns
    }
    widths = _widths(cells)
    if width is not None and _length(columns, widths) > width:
        cells |= {
            column.name: [column.title, *(column.narrow_text(row, now) for row in rows)]
            for column in columns
            if column.narrow
        }
        widths = _widths(cells)
        columns = _fit(columns, widths, width)
    return [
        _GAP.join(_cell(cells[column.name][line], widths[column.name], column) for column in columns).rstrip()
        for line in range(len(rows) + 1)
    ]


def stacked(listing: Listing[Row], rows: Sequence[Row], *, now: int, width: int) -> list[str]:
    """All columns of each row below each other, for a terminal on which they do not fit side by side."""
    from textwrap import wrap

    indent = max(len(column.title) for column in listing.columns) + len(_GAP)
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for column in listing.columns:
            text = column.text(row, now)
            first, *rest = wrap(text, max(20, width - indent), break_on_hyphens=False) or [""]
            lines.append((column.title.ljust(indent) + first).rstrip())
            lines += [" " * indent + line for line in rest]
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of left-aligned cells, for facts and stories."""
    widths: list[int] = []
    for row in rows:
        widths.extend([0] * (len(row) - len(widths)))
        # The last cell of a line pushes nothing, so a lone sentence does not widen its column.
        widths[: len(row) - 1] = map(max, widths, map(len, row[:-1]))
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` letters, its end as ``…`` where it was cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _cell(text: str, width: int, column: Column[Row]) -> str:
    text = shortened(text, width)
    return text.rjust(width) if column.kind.right else text.ljust(width)


def _widths(cells: Mapping[str, Sequence[str]]) -> dict[str, int]:
    return {name: max(map(len, texts)) for name, texts in cells.items()}


def _length(columns: Sequence[Column[Row]], widths: Mapping[str, int]) -> int:
    return sum(widths[column.name] + len(_GAP) for column in columns) - len(_GAP)


def _fit(columns: list[Column[Row]], widths: dict[str, int], width: int) -> list[Column[Row]]:
    """Shorten ``widths`` in place and return the columns that remain, so that a line fits ``width``."""
    columns = list(columns)
    while True:
        over = _length(columns, widths) - width
        room = sum(_elasticity(column, widths) for column in columns)
        spare = max(columns, key=lambda column: column.spare, default=None)
        if over <= room or spare is None or spare.spare == 0:
            break
        columns.remove(spare)
    for column in sorted(columns, key=lambda column: -_elasticity(column, widths)):
        cut = min(max(0, over), _elasticity(column, widths))
        widths[column.name] -= cut
        over -= cut
    return columns


def _elasticity(column: Column[Row], widths: dict[str, int]) -> int:
    """How many letters can be cut from it; its header always stays whole."""
    if column.narrowest is None:
        return 0
    return max(0, widths[column.name] - max(column.narrowest, len(column.title)))

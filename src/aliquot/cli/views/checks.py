"""What the doctor found: a line a check, each fault with its fix."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aliquot.cli.output.columns import Column, Listing
from aliquot.cli.output.kinds import FLAG
from aliquot.cli.output.streams import printable

if TYPE_CHECKING:
    from aliquot.node import Check

_MARKS = {True: "✓", False: "✗", None: "—"}


def check_lines(checks: "Sequence[Check]") -> list[str]:
    """``—`` marks what could not be checked, or does not apply here: no fault."""
    name_width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines.append(f"{_MARKS[check.ok]} {check.name.ljust(name_width)}  {printable(check.text)}")
        if check.fix and check.ok is not True:
            lines.append(f"  {' ' * name_width}  fix  {printable(check.fix)}")
    return lines


CHECKS: "Listing[Check]" = Listing(
    kind="Check",
    name=lambda check: check.name,
    empty="no checks",
    columns=(
        Column("name", lambda check: check.name),
        Column("ok", lambda check: check.ok, FLAG),
        Column("text", lambda check: check.text, narrowest=20),
        Column("fix", lambda check: check.fix, narrowest=20),
    ),
    labels={
        "ok": lambda check: [{True: "yes", False: "no", None: "unknown"}[check.ok]],
        "name": lambda check: [check.name],
    },
)

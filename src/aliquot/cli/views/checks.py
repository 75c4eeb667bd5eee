"""What the doctor found: a line a check, each fault with its fix."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aliquot.cli.output.columns import Column, Listing
from aliquot.cli.output.kinds import FLAG
from aliquot.cli.output.streams import printable

if TYPE_CHECKING:
    from aliquot.node import Check

_MARKS = {True: "✓", False: "✗", None: "—"}


_STARTS = {"docker": "sudo systemctl start docker"}
"""What starts an engine that does not answer; podman has no service that could be down."""


def told(checks: "Sequence[Check]") -> "list[Check]":
    """The same faults, each once, and with the fix that a person would type."""
    absent = next((check for check in checks if check.name == "driver: no-gpu"), None)
    shown = []
    for check in checks:
        if check is absent and any(other.name == "GPUs" for other in checks):
            continue  # the driver's words for what GPUs says
        if check.name == "GPUs" and check.ok is False and absent is not None:
            shown.append(replace(check, text=absent.text, fix=absent.fix or check.fix))
        elif check.ok is None and check.fix is not None and check.name in _STARTS:
            shown.append(replace(check, fix=_STARTS[check.name]))
        else:
            shown.append(check)
    return shown


def check_lines(checks: "Sequence[Check]", *, width: int | None = None) -> list[str]:
    """``—`` marks what could not be checked, or does not apply here: no fault.

    Broken into lines of ``width``; a fix never is, so that it can be copied.
    """
    column = max((len(check.name) for check in checks), default=0) + 4
    lines = []
    for check in checks:
        head = f"{_MARKS[check.ok]} {check.name}".ljust(column)
        first, *rest = _broken(printable(check.text), None if width is None else width - column)
        lines += [head + first, *(" " * column + line for line in rest)]
        if check.fix and check.ok is not True:
            lines.append(f"{' ' * column}fix  {printable(check.fix)}")
    return lines


def _broken(text: str, width: int | None) -> list[str]:
    from textwrap import wrap

    if width is None:
        return [text]
    return wrap(text, max(20, width), break_on_hyphens=False, break_long_words=False) or [""]


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
    example="ok=no",
)

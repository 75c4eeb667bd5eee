"""Conditions of the machine, said on stderr with their fix."""

from collections.abc import Iterable

from aliquot.cli.output.streams import printable, say
from aliquot.model import Notice, Severity

_MARKS = {Severity.INFO: "·", Severity.WARNING: "!", Severity.ERROR: "✗"}


def say_notices(notices: Iterable[Notice]) -> None:
    for notice in notices:
        say(f"{_MARKS[notice.severity]} {printable(notice.text)}   [{notice.code}]")
        if notice.fix:
            say(f"  fix   {printable(notice.fix)}")


def notice_items(notices: Iterable[Notice]) -> list[dict[str, object]]:
    return [
        {
            "code": notice.code,
            "severity": notice.severity.value,
            "text": notice.text,
            "fix": notice.fix,
        }
        for notice in notices
    ]

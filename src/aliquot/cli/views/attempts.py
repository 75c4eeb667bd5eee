"""What came of each attempt to break a share."""

from collections.abc import Sequence

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.kinds import BYTES, COUNT
from aliquot.model import Attempt, Outcome

ATTEMPTS: Listing[Attempt] = Listing(
    kind="Attempt",
    name=lambda attempt: attempt.name,
    empty="",
    columns=(
        Column("attempt", lambda attempt: attempt.name),
        Column("group", lambda attempt: attempt.group, narrowest=6, spare=2),
        Column("outcome", lambda attempt: attempt.outcome.value),
        Column("granted", lambda attempt: attempt.granted, BYTES, key="grantedBytes"),
        Column("limit", lambda attempt: attempt.limit, BYTES, key="limitBytes"),
        Column("result", lambda attempt: attempt.result, COUNT, spare=1),
        Column("what", lambda attempt: attempt.what, narrowest=20),
        Column("note", lambda attempt: attempt.note, shown=Shown.WIDE, narrowest=20),
    ),
    labels={
        "outcome": lambda attempt: [attempt.outcome.value],
        "group": lambda attempt: [attempt.group],
    },
    example="outcome=hole",
)


def verdict(attempts: Sequence[Attempt]) -> str:
    """One sentence: how many of each outcome."""
    counts = [(outcome, sum(attempt.outcome is outcome for attempt in attempts)) for outcome in Outcome]
    told = ", ".join(f"{count} {outcome.value}" for outcome, count in counts if count)
    return f"{len(attempts)} ways: {told}"


def failed_facts(attempts: Sequence[Attempt]) -> list[str]:
    """A line each of what did not hold, with its numbers."""
    from aliquot.model import format_bytes

    lines = []
    for attempt in attempts:
        if attempt.outcome.failed:
            numbers = (
                f"  {format_bytes(attempt.granted)} of {format_bytes(attempt.limit)}"
                if attempt.limit is not None
                else ""
            )
            lines.append(f"{attempt.outcome.value}  {attempt.name}{numbers}  {attempt.note or attempt.what}")
    return lines

"""What came of each attempt to break a share."""

from collections.abc import Sequence

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.kinds import BYTES, COMPUTE, COUNT
from aliquot.model import Attempt, Outcome, format_bytes, format_compute

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
        Column("achieved", lambda attempt: attempt.achieved, COMPUTE, key="achievedThousandths", spare=3),
        Column("allowed", lambda attempt: attempt.allowed, COMPUTE, key="allowedThousandths", spare=4),
        Column("error", lambda attempt: attempt.error, COMPUTE, key="errorThousandths", header="±", spare=5),
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
    lines = []
    for attempt in attempts:
        if attempt.outcome.failed:
            lines.append(
                f"{attempt.outcome.value}  {attempt.name}{_numbers(attempt)}  {attempt.note or attempt.what}"
            )
    return lines


def _numbers(attempt: Attempt) -> str:
    if attempt.limit is not None:
        return f"  {format_bytes(attempt.granted)} of {format_bytes(attempt.limit)}"
    if attempt.allowed is not None and attempt.achieved is not None and attempt.error is not None:
        error = format_compute(attempt.error)
        return f"  {format_compute(attempt.achieved)} of {format_compute(attempt.allowed)} ± {error}"
    return ""

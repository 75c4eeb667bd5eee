"""Errors, in one shape for people and one for programs.

People, on stderr::

    ✗ No room for 20GiB@50% on node a   [no-room]
      gpu0  H100  free 12 of 80GiB   compute free 40%   short 8GiB, 10%
      try   aliquot plan 12GiB@40%     fits now on gpu0
      or    aliquot release k3m9x      ends the lease of alice

Programs, on stdout where they asked for JSON: the same code, facts and next commands, and
the numbers of every GPU that was looked at.
"""

import sys
from collections.abc import Sequence

from aliquot.cli.output.documents import document
from aliquot.cli.output.streams import printable, say, styled
from aliquot.cli.output.tables import aligned
from aliquot.model import AliquotError, Considered, Reason


def failure_lines(error: AliquotError) -> list[str]:
    """The lines for people."""
    first, *rest = error.message.splitlines() or [error.reason.title]
    cross = styled("✗", "red", sys.stderr)
    code = styled(f"[{error.reason.code}]", "dim", sys.stderr)
    facts = [*rest, *error.facts]
    return [
        f"{cross} {printable(first)}   {code}",
        *(f"  {printable(line.rstrip())}" for fact in facts for line in fact.splitlines()),
        *next_lines(error.next),
    ]


def next_lines(steps: Sequence[tuple[str, str]]) -> list[str]:
    """``try …`` and ``or …``, the commands aligned with what they do."""
    rows = [
        ("try " if index == 0 else "or ", printable(command), printable(meaning))
        for index, (command, meaning) in enumerate(steps)
    ]
    return [f"  {line}" for line in aligned(rows)]


def check_failed(message: str, *, facts: Sequence[str] = ()) -> int:
    """The exit code of checks of which one failed. Said, and not raised: the one document on stdout is the
    list of checks, which has been printed."""
    error = AliquotError(Reason.CHECK_FAILED, message, facts=facts)
    say("\n".join(failure_lines(error)))
    return Reason.CHECK_FAILED.exit_code


def failure_document(error: AliquotError, exit_code: int) -> dict[str, object]:
    return document(
        "Error",
        {
            "error": {
                "code": error.reason.code,
                "exitCode": exit_code,
                "title": error.reason.title,
                "message": error.message,
                "facts": list(error.facts),
                "considered": [considered_item(one) for one in error.considered],
                "next": [{"command": command, "meaning": meaning} for command, meaning in error.next],
            }
        },
    )


def considered_item(one: Considered) -> dict[str, object]:
    return {
        "gpu": one.gpu,
        "index": one.index,
        "name": one.name,
        "alternative": one.alternative,
        "fit": one.fit.value,
        "wantedMemoryBytes": one.wanted.memory if one.wanted else None,
        "wantedComputeThousandths": one.wanted.compute if one.wanted else None,
        "capacityBytes": one.capacity,
        "freeMemoryBytes": one.free_memory,
        "freeComputeThousandths": one.free_compute,
        "outsideMemoryBytes": one.outside_memory,
        "shortMemoryBytes": one.short_memory,
        "shortComputeThousandths": one.short_compute,
        "detail": one.detail,
    }

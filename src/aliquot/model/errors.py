"""The one error that a user may see.

AliquotError
    carries a ``Reason`` (which fixes code and exit code), one sentence with the value and
    the rule, facts (a line a GPU, a candidate, a path) and the next commands to type.

Foreign exceptions are wrapped at the border where they arise, with ``from``.
"""

from collections.abc import Iterable

from aliquot.model.placements import Considered
from aliquot.model.reasons import Reason


class AliquotError(Exception):
    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        facts: Iterable[str] = (),
        next: Iterable[tuple[str, str]] = (),
        considered: Iterable[Considered] = (),
    ) -> None:
        """``next``: (command to type, what it does) pairs, best first."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.facts = tuple(facts)
        self.next = tuple(next)
        self.considered = tuple(considered)

"""One machine, from the ask to the end of the share: the only place that runs the sequence.

What lives here: the order of the stages, and the effects between them (files, processes,
signals). What may be imported: every stage, ``softgpu`` and ``model``. What never: click,
rich, another face; a decision that a stage could make purely.

The life of a share (each step is committed before the next relies on it)::

    look → place → reserve (preparing) → files → held → holder starts
         … → holder gone → releasing → ledger read → ended → files removed

Killed anywhere, the next command that opens the book finishes what was begun (``reaping``).
"""

from typing import TYPE_CHECKING

from aliquot.deferring import deferred
from aliquot.node.machine import Forms, Machine, UsageReport, open_machine
from aliquot.node.paths import Paths
from aliquot.node.taking import achievable

if TYPE_CHECKING:
    from aliquot.enforcement import Keeping
    from aliquot.lease import LeaseEvent
    from aliquot.metering import Coverage, UsageRow
    from aliquot.node.attesting import Ungoverned
    from aliquot.node.checking import Check
    from aliquot.node.explaining import Explanation
    from aliquot.softgpu import Profile

# Of commands that look, not of `run`, which pays for every module that it imports.
__getattr__ = deferred(
    __name__,
    {
        "attesting": "Ungoverned",
        "checking": "Check",
        "explaining": "Explanation",
        ".enforcement": "Keeping",
        ".lease": "LeaseEvent",
        ".metering": "Coverage UsageRow",
    },
)

__all__ = [
    "Check",
    "Coverage",
    "Explanation",
    "Forms",
    "Keeping",
    "LeaseEvent",
    "Machine",
    "Paths",
    "Ungoverned",
    "UsageReport",
    "UsageRow",
    "achievable",
    "open_machine",
    "softgpu_profiles",
]


def softgpu_profiles() -> "tuple[Profile, ...]":
    """What ``Machine.softgpu_create`` makes, smallest card first."""
    from aliquot.softgpu import profiles  # its TOML reader is paid only by who asks

    return profiles()

"""``aliquot gpus``."""

from typing import TYPE_CHECKING

from aliquot.cli.machines import this_machine
from aliquot.cli.options import list_options
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import command as declare
from aliquot.cli.views.gpus import GPUS

if TYPE_CHECKING:
    from aliquot.model import Lease
    from aliquot.node import Machine


@declare(
    "gpus",
    examples=[
        ("aliquot gpus", ""),
        ("aliquot gpus --where 'free>=10GiB'", "where a share of 10GiB fits"),
        ("aliquot gpus -l model=H100 -o json", "for programs"),
    ],
)
@list_options(GPUS)
def command(choice: Choice) -> None:
    """FREE is what a lease could still get: neither LEASED nor in use OUTSIDE the book.
    COMPUTE is what is leased of it. Read-only: no root, nothing is started."""
    from aliquot.cli.output.choices import show_list
    from aliquot.cli.views.gpus import gpu_rows
    from aliquot.cli.views.notices import notice_items, say_notices

    with this_machine() as machine:
        snapshot = machine.look()
        rows = gpu_rows(snapshot, _leases(machine))
    show_list(GPUS, rows, choice, more={"notices": notice_items(snapshot.notices)})
    if choice.for_people:
        say_notices(snapshot.notices)


def _leases(machine: "Machine") -> "tuple[Lease, ...] | None":
    """Live leases; ``None`` with a word on stderr where the book cannot be used.

    The cards are still worth showing then: what is leased of them is unknown, not zero.
    """
    from aliquot.model import AliquotError

    try:
        return machine.leases()
    except AliquotError as error:
        from aliquot.cli.output.failures import failure_lines
        from aliquot.cli.output.streams import say

        say("\n".join(failure_lines(error)))
        return None

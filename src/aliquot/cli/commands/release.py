"""``aliquot release ID…``."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.program import command as declare
from aliquot.model import AliquotError, format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aliquot.model import Lease, Usage


@declare(
    "release",
    examples=[
        ("aliquot release k3m9x", "by its id or name"),
        (
            "aliquot leases -l user=$USER --where 'age>12h' -q | xargs -r aliquot release",
            "your old ones",
        ),
    ],
)
@click.argument("ids", nargs=-1, required=True, type=LeaseIdentity(), metavar="ID...")
@click.option("--force", is_flag=True, help="Although processes still use it.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of what was used.")
def command(ids: tuple[str, ...], force: bool, quiet: bool) -> int:
    """Each is tried; the exit code is that of the first that could not be given back."""
    from aliquot.cli.output.failures import failure_lines
    from aliquot.cli.output.streams import say

    failures: list[AliquotError] = []
    with this_machine() as machine:
        for text in ids:
            try:
                lease = machine.find_lease(text)
                usages = machine.release(lease, force=force)
            except AliquotError as error:
                failures.append(error)
                continue
            if not quiet:
                say(released_line(lease, usages))
    for failure in failures[1:]:
        say("\n".join(failure_lines(failure)))
    if failures:
        raise failures[0]
    return 0


def released_line(lease: "Lease", usages: "Sequence[Usage]") -> str:
    """``released k3m9x · peak 3.1GiB of 4GiB``, or no peak where nothing measured it."""
    peaks = [
        f"peak {format_bytes(usage.peak_bytes)} of {format_bytes(usage.leased_bytes)}"
        for usage in usages
        if usage.peak_bytes is not None
    ]
    return " · ".join([f"released {lease.id}", *peaks])

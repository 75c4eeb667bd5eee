"""``aliquot resume ID``."""

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.program import command as declare


@declare("resume", examples=[("aliquot resume k3m9x", "they go on")])
@click.argument("identity", type=LeaseIdentity(), metavar="ID")
def command(identity: str) -> int:
    """Its launches go on at once."""
    from aliquot.cli.views.changes import say_change

    with this_machine() as machine:
        say_change(machine, machine.resume(machine.find_lease(identity)), "resumed")
    return 0

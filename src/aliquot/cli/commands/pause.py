"""``aliquot pause ID``."""

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.program import command as declare


@declare("pause", examples=[("aliquot pause k3m9x", "its programs wait at their next launch")])
@click.argument("identity", type=LeaseIdentity(), metavar="ID")
def command(identity: str) -> int:
    """Its launches wait until `aliquot resume`; what runs ends, and it keeps its memory and its share."""
    from aliquot.cli.views.changes import say_change

    with this_machine() as machine:
        say_change(machine, machine.pause(machine.find_lease(identity)), "paused")
    return 0

"""``aliquot extend ID --for SPAN``."""

import time

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import Duration
from aliquot.cli.program import command as declare


@declare("extend", examples=[("aliquot extend k3m9x --for 2h", "it ends two hours from now")])
@click.argument("identity", type=LeaseIdentity(), metavar="ID")
@click.option("--for", "span", type=Duration(), required=True, metavar="SPAN", help="From now: 90m, 2h, 7d.")
def command(identity: str, span: int) -> int:
    """Also of a lease that had no end, and also to a sooner one."""
    from aliquot.cli.views.changes import say_change

    with this_machine() as machine:
        lease = machine.extend(machine.find_lease(identity), time.time_ns() + span)
        say_change(machine, lease, "extended")
    return 0

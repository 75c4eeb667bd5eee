"""``aliquot leases``."""

import click

from aliquot.cli.machines import this_machine
from aliquot.cli.options import Moment, list_options
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import command as declare
from aliquot.cli.views.leases import LEASES


@declare(
    "leases",
    examples=[
        ("aliquot leases", ""),
        ("aliquot leases -l user=alice -q | xargs -r aliquot release", "give all of alice's back"),
        ("aliquot leases --ended --since 7d --sort -memory -n 5", "the largest of the week"),
    ],
)
@click.option("--ended", is_flag=True, help="Those that have ended, instead of the live ones.")
@click.option("--all", "everything", is_flag=True, help="Live and ended.")
@click.option("--since", type=Moment(), metavar="WHEN", help="With --ended or --all: 7d, 2026-11-30.")
@list_options(LEASES)
def command(choice: Choice, ended: bool, everything: bool, since: int | None) -> None:
    """A lease whose holder is gone is given back before the list is made."""
    from aliquot.cli.output.choices import show_list
    from aliquot.cli.output.streams import say
    from aliquot.cli.views.leases import compute_note, lease_rows

    with this_machine() as machine:
        leases = machine.leases(ended=ended or everything, since=since)
        snapshot = machine.look()
    if ended and not everything:
        leases = tuple(lease for lease in leases if not lease.state.live)
    shown = show_list(LEASES, lease_rows(leases, snapshot), choice)
    if choice.for_people and (note := compute_note(row.lease for row in shown)):
        say(note)

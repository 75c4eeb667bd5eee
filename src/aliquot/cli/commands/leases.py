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
@click.option("--since", type=Moment(), metavar="WHEN", help="Of that time, live and ended: 7d, 2026-11-30.")
@list_options(LEASES)
def command(choice: Choice, ended: bool, everything: bool, since: int | None) -> None:
    """A lease whose holder is gone is given back before the list is made. With --ended, --all or
    --since the newest come first."""
    from aliquot.cli.output.choices import show_list
    from aliquot.cli.views.leases import PAST_LEASES, lease_rows, newest_first

    past = ended or everything or since is not None
    only_ended = ended and not everything

    with this_machine() as machine:
        leases = machine.leases(ended=past, since=since)
        snapshot = machine.look()
    rows = lease_rows(newest_first(leases, by_end=only_ended) if past else leases, snapshot)
    if only_ended:
        rows = [row for row in rows if not row.lease.state.live]
    show_list(PAST_LEASES if past else LEASES, rows, choice)

"""``aliquot usage``."""

import click

from aliquot.cli.machines import this_machine
from aliquot.cli.options import Moment, list_options
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import command as declare
from aliquot.cli.views.usage import USAGE


@declare(
    "usage",
    examples=[
        ("aliquot usage --since 7d", "by lease"),
        ("aliquot usage --by user --since 2026-11-01 -o csv", "for a bill"),
    ],
)
@click.option(
    "--by",
    type=click.Choice(["lease", "command", "user"]),
    default="lease",
    metavar="WHAT",
    help="lease (default), command or user.",
)
@click.option("--since", type=Moment(), metavar="WHEN", help="7d, 2026-11-30; default: all there is.")
@click.option("--until", type=Moment(), metavar="WHEN", help="The same; default: now.")
@list_options(USAGE)
def command(choice: Choice, by: str, since: int | None, until: int | None) -> None:
    """Memory (GIB-H) and compute (GPU-H, as reserved) apart; BUSY is the GPU-H that the work took.
    Below them the cards that are here or were leased then: leased plus unleased is exactly the
    card. -l, --where and -n choose rows, not cards; -o json has all cards."""
    from aliquot.cli.output.choices import show_list
    from aliquot.cli.output.durations import format_time
    from aliquot.cli.program import usage_error
    from aliquot.cli.views.usage import (
        coverage_items,
        coverage_lines,
        of_interest,
        usage_lines,
        usage_listing,
    )

    if since is not None and until is not None and since > until:
        raise usage_error("--since lies after --until")
    with this_machine() as machine:
        report = machine.usage(by=by, since=since, until=until)
        leases = machine.leases(ended=True) if by == "lease" else ()
        here = {gpu.uuid for gpu in machine.look().gpus}
    more = {
        "by": by,
        "since": format_time(report.since),
        "until": format_time(report.until),
        "coverage": coverage_items(report.coverage),
    }
    show_list(usage_listing(by), usage_lines(report.rows, leases), choice, more=more)
    cards = of_interest(report.coverage, here=here)
    if choice.for_people and cards:
        from aliquot.cli.output.streams import out, width

        out("\n".join(["", *coverage_lines(cards, width=width())]))

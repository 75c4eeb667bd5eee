"""``aliquot verify ID|SPEC``."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import ask_options, lease_called, list_options, placement_option, size_called
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import command as declare
from aliquot.cli.views.attempts import ATTEMPTS
from aliquot.model import PlacementPolicy

if TYPE_CHECKING:
    from aliquot.model import Verification


@declare(
    "verify",
    examples=[
        ("aliquot verify 1/4", "takes a share, tries to break it, gives it back"),
        ("aliquot verify k3m9x", "in a lease: in its container, where it has one"),
        ("aliquot verify 1/4 --where outcome=hole -o json", "only the holes"),
    ],
)
@click.argument("what", metavar="ID|SPEC", type=LeaseIdentity())
@click.option("--force", is_flag=True, help="Though programs of the lease would be refused memory.")
@ask_options
@placement_option
@list_options(ATTEMPTS)
def command(
    what: str,
    force: bool,
    policy: str | None,
    isolation: str | None,
    unknown: str | None,
    placement: str,
    choice: Choice,
) -> int:
    """A program of ours, without privileges, takes all it can get by every way it knows, in the
    place of a tenant. Of its launches it prints the part of the time that they had, and the error (±)
    within which it can be held; a lease is a cap meanwhile. Exit code 7 where one is a hole, or broke off."""
    from aliquot.cli.output.choices import show_list
    from aliquot.cli.output.failures import check_failed
    from aliquot.cli.output.streams import say
    from aliquot.cli.views.attempts import failed_facts, verdict

    with this_machine() as machine:
        lease = lease_called(machine, what)
        if lease is not None:
            done = machine.verify(lease, force=force)
        else:
            ask = size_called(what, policy=policy, isolation=isolation, unknown=unknown)
            done = machine.verify_size(ask, placement=PlacementPolicy(placement))
    show_list(ATTEMPTS, done.attempts, choice, more=_about(done))
    say(verdict(done.attempts))
    facts = failed_facts(done.attempts)
    if not facts:
        return 0
    return check_failed(f"the share of lease {done.lease} does not hold", facts=facts)


def _about(done: "Verification") -> dict[str, object]:
    return {"lease": done.lease, "where": done.where}

"""``aliquot resize ID [SPEC]``."""

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import asked
from aliquot.cli.program import command as declare
from aliquot.cli.program import usage_error
from aliquot.model import Policy


@declare(
    "resize",
    examples=[
        ("aliquot resize k3m9x 12GiB@40%", "more or less, while its programs run"),
        ("aliquot resize k3m9x --policy cap", "its compute becomes a ceiling"),
    ],
)
@click.argument("identity", type=LeaseIdentity(), metavar="ID")
@click.argument("spec", required=False, metavar="[SPEC]")
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in Policy]),
    metavar="POLICY",
    help="Idle compute of others: fair (use it), cap, priority.",
)
def command(identity: str, spec: str | None, policy: str | None) -> int:
    """On the GPUs that it has. Its programs see it at their next call. Below what they use, they
    keep that and get no more until they are below the new size."""
    from aliquot.cli.views.changes import say_change

    if spec is None and policy is None:
        raise usage_error(
            "nothing to change: give a SPEC, --policy, or both",
            steps=[(f"aliquot resize {identity} 8GiB", "is a new size")],
        )
    ask = asked(spec) if spec is not None else None
    with this_machine() as machine:
        lease = machine.resize(machine.find_lease(identity), ask, None if policy is None else Policy(policy))
        say_change(machine, lease, "resized")
    return 0

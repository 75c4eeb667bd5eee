"""``aliquot plan SPEC``."""

import click

from aliquot.cli.completions import ShellFile
from aliquot.cli.machines import this_machine
from aliquot.cli.options import ask_options, asked, form_option, placement_option
from aliquot.cli.program import command as declare


@declare(
    "plan",
    examples=[
        ("aliquot plan 10GiB@30%", "what it means, and where it would go"),
        ("aliquot plan 2xH100:20GiB -o yaml > ask.yaml", "its normal form, as a file"),
        ("aliquot plan -f ask.yaml", "read back"),
    ],
)
@click.argument("spec", required=False, metavar="SPEC")
@click.option(
    "-f", "file", type=ShellFile(), metavar="FILE", help="An Ask as `-o yaml` prints it; - is stdin."
)
@ask_options
@placement_option
@click.option("--container", is_flag=True, help="As a container would get it (isolation differs).")
@form_option("json", "yaml", "name")
def command(
    spec: str | None,
    file: str | None,
    policy: str | None,
    isolation: str | None,
    unknown: str | None,
    placement: str,
    container: bool,
    form: str,
) -> int:
    """Nothing is taken. The exit code is what `aliquot run` would give: 0 where it fits,
    4 where there is no room now, 5 where it never fits."""
    from aliquot.ask import to_document
    from aliquot.cli.output.documents import as_json, as_yaml
    from aliquot.cli.output.failures import failure_lines
    from aliquot.cli.output.streams import out, out_exactly, say
    from aliquot.cli.views.plans import plan_document, plan_lines, refusal_of
    from aliquot.model import PlacementPolicy, Refused
    from aliquot.node import achievable

    ask = asked(spec, policy=policy, isolation=isolation, unknown=unknown, file=file)
    with this_machine() as machine:
        result = machine.plan(ask, placement=PlacementPolicy(placement), container=container)
        snapshot = machine.look()
    gets = achievable(ask, snapshot, container=container)
    if form == "name":
        out_exactly(str(ask))
    elif form == "yaml":
        out_exactly(as_yaml(to_document(ask)))
    elif form == "json":
        out_exactly(as_json(plan_document(ask, result, snapshot, isolation=gets)))
    else:
        out("\n".join(plan_lines(ask, result, snapshot, isolation=gets)))
    if not isinstance(result, Refused):
        return 0
    say("\n".join(failure_lines(refusal_of(ask, result, node=snapshot.node.name))))
    return result.reason.exit_code

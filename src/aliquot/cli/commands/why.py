"""``aliquot why SPEC|ID``."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import ask_options, form_option, lease_called, size_called
from aliquot.cli.program import command as declare

if TYPE_CHECKING:
    from aliquot.model import Ask, Lease
    from aliquot.node import Machine


@declare(
    "why",
    examples=[
        ("aliquot why 60%", "does it fit, and who holds what"),
        ("aliquot why H100:20GiB -o json", "the numbers of every GPU"),
        ("aliquot why k3m9x", "why a lease is held, or how it ended"),
    ],
)
@click.argument("what", metavar="SPEC|ID", type=LeaseIdentity())
@ask_options
@form_option("json", "yaml")
def command(what: str, policy: str | None, isolation: str | None, unknown: str | None, form: str) -> int:
    """Every GPU that was looked at, with what was free and what was short. The exit code is
    what `aliquot run` would give: 0, 4 (no room now) or 5 (never fits)."""
    with this_machine() as machine:
        lease = lease_called(machine, what)
        if lease is not None:
            return _explain_lease(machine, lease, form)
        return _explain_ask(
            machine, size_called(what, policy=policy, isolation=isolation, unknown=unknown), form
        )


def _explain_ask(machine: "Machine", ask: "Ask", form: str) -> int:
    from aliquot.cli.views.explanations import explanation_document, explanation_lines

    explanation = machine.why(ask)
    snapshot = machine.look()
    if form == "text":
        _print("\n".join(explanation_lines(explanation, snapshot)))
    else:
        _print_document(explanation_document(explanation, snapshot), form)
    return 0 if explanation.refused is None else explanation.refused.reason.exit_code


def _explain_lease(machine: "Machine", lease: "Lease", form: str) -> int:
    from aliquot.cli.output.documents import document
    from aliquot.cli.views.explanations import lease_lines
    from aliquot.cli.views.leases import LEASES, lease_rows

    (row,) = lease_rows([lease], machine.look())
    if form == "text":
        _print("\n".join(lease_lines(row, machine.story(lease))))
    else:
        _print_document(document("Lease", LEASES.item(row)), form)
    return 0


def _print_document(body: dict[str, object], form: str) -> None:
    from aliquot.cli.output.documents import as_json, as_yaml
    from aliquot.cli.output.streams import out_exactly

    out_exactly(as_json(body) if form == "json" else as_yaml(body))


def _print(text: str) -> None:
    from aliquot.cli.output.streams import out

    out(text)

"""``aliquot lease``."""

import time
from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import ShellFile
from aliquot.cli.machines import this_machine
from aliquot.cli.options import Duration, ask_options, asked, form_option, lease_name, placement_option
from aliquot.cli.program import command as declare
from aliquot.cli.views.forms import FORMS, form_texts, ways_in

if TYPE_CHECKING:
    from aliquot.cli.views.leases import LeaseRow
    from aliquot.node import Forms


@declare(
    "lease",
    examples=[
        ("aliquot lease --gpu 1/4 --for 2h", "prints its id and how to use it"),
        ('eval "$(aliquot lease --gpu 10GiB -o env)"', "this shell is in the share"),
        ("docker run $(aliquot lease --gpu 1/4 -o docker) IMAGE", "the container is in the share"),
        ("aliquot lease -f ask.yaml --name night", "from a file"),
    ],
)
@click.option("--gpu", "spec", metavar="SPEC", help="[COUNT x] [MODEL :] AMOUNT [@ COMPUTE].")
@click.option(
    "-f",
    "file",
    type=ShellFile(),
    metavar="FILE",
    help="An Ask as `aliquot plan -o yaml` prints it; - is stdin.",
)
@click.option("--for", "span", type=Duration(), metavar="SPAN", help="Ends by itself: 90m, 2h, 7d.")
@click.option("--name", metavar="NAME", callback=lease_name, help="A name for the lease.")
@ask_options
@placement_option
@form_option(*FORMS, "json", "yaml", "name")
def command(
    spec: str | None,
    file: str | None,
    span: int | None,
    name: str | None,
    policy: str | None,
    isolation: str | None,
    unknown: str | None,
    placement: str,
    form: str,
) -> None:
    """It is held until `aliquot release`, or for --for. -o prints one form alone:
    env, docker, podman, compose, json, yaml or name (the id)."""
    from aliquot.cli.views.leases import lease_rows
    from aliquot.model import PlacementPolicy

    ask = asked(spec, policy=policy, isolation=isolation, unknown=unknown, file=file)
    with this_machine() as machine:
        lease = machine.lease(
            ask,
            name=name,
            expires_at=None if span is None else time.time_ns() + span,
            placement=PlacementPolicy(placement),
        )
        (row,) = lease_rows([lease], machine.look())
        forms = machine.forms(lease)
    _print(row, forms, form)


def _print(row: "LeaseRow", forms: "Forms", form: str) -> None:
    from aliquot.cli.output.streams import out, out_exactly

    texts = form_texts(forms)
    if form == "text":
        out(_for_people(row, forms))
    elif form == "name":
        out_exactly(row.lease.id)
    elif form in texts:
        out_exactly(texts[form].rstrip("\n"))
    else:
        from aliquot.cli.output.documents import as_json, as_yaml, document
        from aliquot.cli.views.leases import LEASES

        body = document("Lease", LEASES.item(row) | {"forms": texts})
        out_exactly(as_json(body) if form == "json" else as_yaml(body))


def _for_people(row: "LeaseRow", forms: "Forms") -> str:
    from aliquot.cli.output.durations import format_time
    from aliquot.cli.output.tables import aligned
    from aliquot.cli.views.leases import compute_text, isolation_text, share_text

    lease = row.lease
    until = "until released"
    if lease.expires_at is not None:
        until = f"until {format_time(lease.expires_at)}, or until released"
    lines = [
        lease.id,
        *_indented(
            aligned(
                [
                    ("size", lease.ask),
                    ("on", ", ".join(share_text(share, row) for share in lease.shares)),
                    ("isolation", isolation_text(lease)),
                    ("compute", compute_text(lease)),
                    ("held", until),
                    ("use", f"aliquot run --lease {lease.id} -- CMD"),
                    ("end", f"aliquot release {lease.id}"),
                ]
            )
        ),
    ]
    return "\n".join([*lines, *ways_in(lease.id, forms)])


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}".rstrip() for line in lines]

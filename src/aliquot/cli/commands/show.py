"""``aliquot show ID``."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.machines import this_machine
from aliquot.cli.options import LeaseIdentity, form_option
from aliquot.cli.program import command as declare
from aliquot.cli.views.forms import FORMS, form_texts
from aliquot.model import AliquotError, Gpu, Lease, Reason

if TYPE_CHECKING:
    from aliquot.node import Machine


@declare(
    "show",
    examples=[
        ("aliquot show k3m9x", "a lease: asked beside peak, and its story"),
        ("docker run $(aliquot show k3m9x -o docker) IMAGE", "a container in that lease"),
        ("aliquot show 0", "a GPU by its index"),
        ("aliquot show GPU-5f3a12bc -o json", "or by the beginning of its UUID"),
    ],
)
@click.argument("what", metavar="ID", type=LeaseIdentity())
@form_option("json", "yaml", *FORMS)
def command(what: str, form: str) -> None:
    """ID is a lease's id or name, a GPU's index, or the beginning of its UUID. Of a lease, -o
    env, docker, podman and compose print one way into it, to paste."""
    from aliquot.cli.output.documents import as_json, as_yaml
    from aliquot.cli.output.streams import out, out_exactly

    with this_machine() as machine:
        machine.reap()
        found = _find(machine, what)
        if form in FORMS:
            out_exactly(_way_in(machine, found, form).rstrip("\n"))
            return
        lines, body = _lease(machine, found) if isinstance(found, Lease) else _gpu(machine, found)
    if form == "text":
        out("\n".join(lines))
    else:
        out_exactly(as_json(body) if form == "json" else as_yaml(body))


def _find(machine: "Machine", what: str) -> Lease | Gpu:
    """A GPU's index is all digits and a lease's id never is, so only UUIDs and names could clash."""
    if what.isdigit():
        return machine.find_gpu(what)
    try:
        return machine.find_lease(what)
    except AliquotError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
    try:
        return machine.find_gpu(what)
    except AliquotError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
    raise AliquotError(
        Reason.NOT_FOUND,
        f"no lease and no GPU here is called {what!r}",
        next=[("aliquot leases --all", "lists the leases"), ("aliquot gpus", "lists the GPUs")],
    )


def _way_in(machine: "Machine", found: Lease | Gpu, form: str) -> str:
    if isinstance(found, Gpu) or not found.state.live:
        what = "a GPU" if isinstance(found, Gpu) else f"lease {found.id}, which has ended"
        raise AliquotError(
            Reason.BAD_USAGE,
            f"there is no way into {what}: -o {form} is of a lease that is held",
            next=[("aliquot lease --gpu 1/4", "takes one"), ("aliquot leases", "lists those there are")],
        )
    return form_texts(machine.forms(found))[form]


def _lease(machine: "Machine", lease: Lease) -> tuple[list[str], dict[str, object]]:
    import time

    from aliquot.cli.views.lease_story import LeaseStory, story_document, story_lines
    from aliquot.cli.views.leases import lease_rows

    (row,) = lease_rows([lease], machine.look())
    story = LeaseStory(
        row=row,
        usages=machine.usage_of(lease),
        ledger=machine.ledger(lease) if lease.state.live else None,
        ungoverned=machine.ungoverned(lease),
        events=machine.story(lease),
        keeping=machine.keeping(lease),
        keeper_pid=machine.keeper_pid(lease),
    )
    return story_lines(story, now=time.time_ns()), story_document(story)


def _gpu(machine: "Machine", gpu: Gpu) -> tuple[list[str], dict[str, object]]:
    from aliquot.cli.output.documents import document
    from aliquot.cli.views.gpu_detail import gpu_lines
    from aliquot.cli.views.gpus import GPUS, gpu_rows

    snapshot = machine.look()
    rows = gpu_rows(snapshot, machine.leases())
    row = next(row for row in rows if row.gpu.uuid == gpu.uuid)
    return gpu_lines(row), document("Gpu", GPUS.item(row))

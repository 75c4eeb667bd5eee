"""``aliquot softgpu create|list|remove|env``; softgpu_failures.py has ``fail``, ``log`` and ``busy``."""

import re
from typing import TYPE_CHECKING

import click

from aliquot.cli.commands.softgpu_failures import busy, fail, log
from aliquot.cli.completions import ProfileCount, SoftGpuIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import form_option, list_options
from aliquot.cli.output.choices import Choice
from aliquot.cli.program import Command, Group, usage_error
from aliquot.cli.registry import COMMANDS
from aliquot.cli.views.software_gpus import SOFTWARE_GPUS

if TYPE_CHECKING:
    from aliquot.model import Bytes

_PROFILE = re.compile(r"(?:(?P<count>\d{1,9})\s*[xX×]\s*)?(?P<profile>[A-Za-z][A-Za-z0-9_-]*)")


class _SoftGpu(Group):
    examples = (
        ("aliquot softgpu create T4", "one software GPU"),
        ("aliquot softgpu list", ""),
        ("aliquot softgpu remove all", ""),
    )


@click.group(
    "softgpu",
    cls=_SoftGpu,
    help=COMMANDS["softgpu"].summary
    + """

A software GPU runs real CUDA programs (PTX, as numba-cuda makes it) on the CPU. It is found in
every shell until removed. It is not NVIDIA's driver: PyTorch and CuPy need a real GPU.""",
)
def command() -> None:
    pass


class _Create(Command):
    """Help that ends with the profiles there are."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        from aliquot.node import softgpu_profiles

        with formatter.section("Profiles: compute capability, memory"):
            for profile in softgpu_profiles():
                formatter.write(f"{'':{formatter.current_indent}}{profile.line}\n")


@command.command(
    "create",
    cls=_Create,
    help="Create software GPUs: all that are asked for, or none.",
    examples=[
        ("aliquot softgpu create T4", ""),
        ("aliquot softgpu create 4xA100-80 2xT4 --name lab", "a set of two kinds"),
        ("aliquot softgpu create H100 --memory 2GiB", "smaller than the card it is named for"),
        ("aliquot softgpu create T4 --time virtual", "with a clock of its own, for tests"),
    ],
)
@click.argument("profiles", nargs=-1, required=True, type=ProfileCount(), metavar="[Nx]PROFILE...")
@click.option("--name", metavar="NAME", help="Of the set, to list, use and remove it by.")
@click.option("--memory", metavar="SIZE", help="Memory of each, such as 2GiB; default: the card's.")
@click.option("--time", "mode", metavar="MODE", help="real (default), scaled=FACTOR or virtual.")
@click.option("--slice", "slice_", metavar="TIME", help="Of a process beside others, such as 2ms (default).")
@click.option("-q", "--quiet", is_flag=True, help="UUIDs only.")
def create(
    profiles: tuple[str, ...],
    name: str | None,
    memory: str | None,
    mode: str | None,
    slice_: str | None,
    quiet: bool,
) -> None:
    from aliquot.cli.output.streams import out
    from aliquot.model import format_bytes

    wanted = [_profile(text) for text in profiles]
    size = None if memory is None else _memory(memory)
    with this_machine() as machine:
        for gpu in machine.softgpu_create(wanted, name=name, memory=size, time_mode=mode, time_slice=slice_):
            out(gpu.uuid if quiet else f"{gpu.uuid}  {gpu.name}  {format_bytes(gpu.memory)}")


@command.command(
    "list",
    cls=Command,
    help="List the software GPUs.",
    examples=[("aliquot softgpu list -o wide", ""), ("aliquot softgpu list lab", "those of one set")],
)
@click.argument("which", nargs=-1, type=SoftGpuIdentity(), metavar="[SET|UUID]...")
@list_options(SOFTWARE_GPUS)
def list_(which: tuple[str, ...], choice: Choice) -> None:
    from dataclasses import replace

    from aliquot.cli.output.choices import show_list
    from aliquot.cli.views.gpus import gpu_rows
    from aliquot.cli.views.software_gpus import software_gpu_rows, software_gpus_with
    from aliquot.model import Vendor

    with this_machine() as machine:
        leases = machine.leases()
        snapshot = machine.look()
        chosen = machine.softgpu_select(which) if which else None
        failures, times = machine.softgpu_failures(), machine.softgpu_times()
    ours = chosen or tuple(gpu for gpu in snapshot.gpus if gpu.vendor is Vendor.SOFTWARE)
    rows = software_gpu_rows(gpu_rows(replace(snapshot, gpus=ours), leases), failures, times)
    show_list(software_gpus_with(rows), rows, choice)


@command.command(
    "remove",
    cls=Command,
    help="Remove software GPUs that nothing uses: all that are named, or none.",
    examples=[
        ("aliquot softgpu remove GPU-5f3a12bc", "by the beginning of its UUID"),
        ("aliquot softgpu remove lab", "a set, by its name"),
        ("aliquot softgpu remove all", ""),
    ],
)
@click.argument("which", nargs=-1, required=True, type=SoftGpuIdentity(), metavar="SET|UUID...|all")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing.")
def remove(which: tuple[str, ...], quiet: bool) -> None:
    from aliquot.cli.output.streams import say

    with this_machine() as machine:
        for gpu in machine.softgpu_remove(which):
            if not quiet:
                say(f"removed {gpu.uuid}  {gpu.name}")


@command.command(
    "env",
    cls=Command,
    help="""Print what a program needs to use the software GPUs without a lease.

LD_LIBRARY_PATH is for every program; the variables of Triton name a ptxas that passes PTX through,
which Triton needs in a lease on a software GPU too.""",
    examples=[
        ('eval "$(aliquot softgpu env)"', "this shell sees them whole: no share, no limit"),
        ('eval "$(aliquot softgpu env lab)"', "its CUDA programs see one set"),
    ],
)
@click.argument("which", nargs=-1, type=SoftGpuIdentity(), metavar="[SET|UUID]...")
@form_option("json", "yaml")
def env(which: tuple[str, ...], form: str) -> None:
    import shlex

    from aliquot.cli.output.documents import as_json, as_yaml, document
    from aliquot.cli.output.streams import out_exactly, say
    from aliquot.model import AliquotError

    with this_machine() as machine:
        try:
            variables = machine.softgpu_environment(which)
        except AliquotError:
            if form == "text":
                out_exactly("false")  # so that `eval "$(…)"` fails too, and with it a script under `set -e`
            raise
        none = not machine.softgpu_list()
    if none:
        say("there is no software GPU yet: `aliquot softgpu create T4` makes one")
    if form == "text":
        for name, value in variables.items():
            out_exactly(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}")
        return
    body = document("Environment", {"env": dict(variables)})
    out_exactly(as_json(body) if form == "json" else as_yaml(body))


def _profile(text: str) -> tuple[int, str]:
    match = _PROFILE.fullmatch(text)
    if match is None:
        raise usage_error(
            f"{text!r} is not [Nx]PROFILE: a whole number, an x, and the name of a card",
            steps=[("aliquot softgpu create 2xT4", "an example")],
        )
    return int(match["count"] or 1), match["profile"]


def _memory(text: str) -> "Bytes":
    """A size in the grammar of SPEC; a part of a card that is not there yet means nothing."""
    from aliquot.ask import parse

    wrong = usage_error(
        f"--memory {text!r}: write a size such as 2GiB, at least 64MiB, in steps of 2MiB",
        steps=[("aliquot softgpu create T4 --memory 2GiB", "an example")],
    )
    if not text.strip("0 "):  # which the grammar takes for an index
        raise wrong
    alternatives = parse(text).alternatives
    size = alternatives[0].amount.bytes
    if size is None or len(alternatives) != 1 or str(alternatives[0]) != str(alternatives[0].amount):
        raise wrong
    return size


command.add_command(fail)
command.add_command(log)
command.add_command(busy)

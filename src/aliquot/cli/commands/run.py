"""``aliquot run``."""

from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import LeaseIdentity, ShellFile
from aliquot.cli.machines import say_what_happened, this_machine
from aliquot.cli.options import ask_options, asked, lease_name, placement_option
from aliquot.cli.program import command as declare
from aliquot.model import AliquotError, Reason

if TYPE_CHECKING:
    from aliquot.model import Lease, Snapshot

_EXAMPLE_SPEC = "1/4"


@declare(
    "run",
    examples=[
        ("aliquot run --gpu 1/4 -- python train.py", "a quarter of a GPU"),
        ("aliquot run --gpu 10GiB@30% -- jupyter lab", "memory and compute apart"),
        ("aliquot run --gpu 2xH100 -- podman run IMAGE CMD", "two whole GPUs, in a container"),
        ("aliquot run --lease k3m9x -- python eval.py", "in a lease that you hold"),
    ],
    context_settings={"allow_interspersed_args": False},
)
@click.option("--gpu", "spec", metavar="SPEC", help="[COUNT x] [MODEL :] AMOUNT [@ COMPUTE].")
@click.option("--lease", "lease", type=LeaseIdentity(), metavar="ID", help="Use this lease; it stays.")
@click.option("--name", metavar="NAME", callback=lease_name, help="A name for the lease.")
@ask_options
@placement_option
@click.option(
    "--release-on-stop", is_flag=True, help="A container's lease ends when it stops, not when removed."
)
@click.option(
    "--inject",
    type=click.Choice(["auto", "cdi", "flags", "path"]),
    default="auto",
    metavar="HOW",
    help="auto (default); a container: cdi or flags; a process: path (no mounts).",
)
@click.option("--user", metavar="USER", help="Run it as USER, who cannot change the share (root).")
@click.option("-q", "--quiet", is_flag=True, help="Do not say which share it is.")
@click.argument("words", nargs=-1, type=ShellFile(), metavar="-- CMD...")
def command(
    spec: str | None,
    lease: str | None,
    name: str | None,
    policy: str | None,
    isolation: str | None,
    unknown: str | None,
    placement: str,
    release_on_stop: bool,
    inject: str,
    user: str | None,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """The share is given back when CMD ends, or its container is removed. The exit code is
    CMD's; 125 where Aliquot itself failed, 4 where there is no room now, 5 where it never fits."""
    _check_words(spec, lease, words)
    if lease is not None and (name or policy or isolation or unknown):
        raise AliquotError(
            Reason.BAD_USAGE,
            "--name, --policy, --isolation and --unknown belong to a new lease, not to --lease",
        )
    from aliquot.model import PlacementPolicy

    ask = asked(spec, policy=policy, isolation=isolation, unknown=unknown) if spec is not None else None
    with this_machine() as machine:

        def announce(lease: "Lease", snapshot: "Snapshot") -> None:
            say_what_happened(machine)
            if not quiet:
                _say_share(lease, snapshot)

        return machine.run(
            words,
            ask=ask,
            lease=machine.find_lease(lease) if lease is not None else None,
            name=name,
            placement=PlacementPolicy(placement),
            release_on_stop=release_on_stop,
            inject=inject,
            user=user,
            announce=announce,
        )


def _say_share(lease: "Lease", snapshot: "Snapshot") -> None:
    """The one line on stderr, before the command starts."""
    from aliquot.cli.output.streams import printable, say
    from aliquot.cli.views.leases import lease_rows, one_line

    (row,) = lease_rows([lease], snapshot)
    say(printable(one_line(row)))


def _check_words(spec: str | None, lease: str | None, words: tuple[str, ...]) -> None:
    """Say what line was meant where ``--gpu`` or the command is missing."""
    if spec is not None and lease is not None:
        raise AliquotError(Reason.BAD_USAGE, "give --gpu SPEC or --lease ID, not both")
    if spec is None and lease is None:
        raise _without_size(words)
    if not words:
        size = ["--gpu", spec] if spec is not None else ["--lease", lease or ""]
        raise AliquotError(
            Reason.BAD_USAGE,
            "`aliquot run` needs a command",
            next=[(_line(size, ("CMD",)), "the command comes last, after --")],
        )


def _without_size(words: tuple[str, ...]) -> AliquotError:
    """No ``--gpu``: it may stand behind the command, or stand there without its name."""
    if "--gpu" in words[:-1]:
        at = words.index("--gpu")
        size, rest = words[at + 1], (*words[:at], *words[at + 2 :])
        return AliquotError(
            Reason.BAD_USAGE,
            "--gpu stands after the command, so that it would be the command's own",
            next=[(_line(["--gpu", size], rest), "did you mean this?")],
        )
    if words and _is_spec(words[0]):
        rest = words[1:]
        rest = rest[1:] if rest[:1] == ("--",) else rest
        return AliquotError(
            Reason.BAD_USAGE,
            "`aliquot run` needs --gpu before the size",
            next=[(_line(["--gpu", words[0]], rest or ("CMD",)), "did you mean this?")],
        )
    return AliquotError(
        Reason.BAD_USAGE,
        "`aliquot run` needs --gpu SPEC (how much) or --lease ID",
        next=[
            (_line(["--gpu", _EXAMPLE_SPEC], words or ("CMD",)), "a quarter of a GPU"),
            ("aliquot gpus", "what there is"),
        ],
    )


def _is_spec(word: str) -> bool:
    """Whether it reads as a size rather than as a program: ``1/4`` and ``2xH100``, not ``python``."""
    from aliquot.ask import parse

    if not any(letter.isdigit() for letter in word):
        return False
    try:
        ask = parse(word)
    except AliquotError:
        return False
    first = ask.alternatives[0]
    return first.model is None or first.count > 1 or not first.amount.whole


def _line(size: list[str], words: tuple[str, ...]) -> str:
    import shlex

    return shlex.join(["aliquot", "run", *size, "--", *words])

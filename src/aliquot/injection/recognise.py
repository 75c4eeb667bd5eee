"""Whether the command given to ``aliquot run`` starts a container, and what to type where it is
another of an engine's commands."""

from collections.abc import Sequence
from posixpath import basename
from typing import TYPE_CHECKING

from aliquot.injection.words import CLIENTS, COMPOSE_CLIENTS, OTHER_CLIENTS, VERBS, WRAPPERS
from aliquot.model import AliquotError, Reason

if TYPE_CHECKING:
    from aliquot.injection.command_line import ContainerCommand

_LEASE_FIRST = "aliquot lease --gpu SPEC"


def container_command(argv: Sequence[str]) -> "ContainerCommand | None":
    """``None`` for a program of this machine, which becomes a child process.

    Raises ``AliquotError`` (``command-not-understood``), with what to type instead, for an
    engine's command that starts no container, and where another program stands in front of it.
    Started as plain child processes, those would seem to work and give the container no share.
    """
    program = basename(argv[0])
    if program in COMPOSE_CLIENTS:
        raise _compose(program)
    if program in OTHER_CLIENTS:
        raise AliquotError(
            Reason.COMMAND_NOT_UNDERSTOOD,
            f"`{program}` is not a client that Aliquot can give a share to; it knows podman and docker",
            next=[(_LEASE_FIRST, "prints the mounts and variables of a share, to be passed by hand")],
        )
    if program not in CLIENTS:
        _refuse_wrapped(argv, program)
        return None
    from aliquot.injection.command_line import ContainerCommand, find_verb
    from aliquot.injection.engine import EngineKind

    kind = EngineKind(CLIENTS[program])
    client_end, at = find_verb(argv, kind)
    if at >= len(argv) or argv[at] not in VERBS:
        raise _other_verb(argv, at)
    return ContainerCommand(tuple(argv), kind, client_end, at)


def _refuse_wrapped(argv: Sequence[str], wrapper: str) -> None:
    if wrapper not in WRAPPERS:
        return
    for at, word in enumerate(argv[1:], start=1):
        starts = {*VERBS, "compose"} & set(argv[at + 1 :])
        if (basename(word) in CLIENTS and starts) or basename(word) in COMPOSE_CLIENTS:
            front, engine = " ".join(argv[:at]), " ".join(argv[at:])
            raise AliquotError(
                Reason.COMMAND_NOT_UNDERSTOOD,
                f"`{wrapper}` stands before `{word}`, where Aliquot cannot put the share's options",
                next=[(f"{front} aliquot run --gpu SPEC -- {engine}", f"puts `{wrapper}` in front of all")],
            )


def _other_verb(argv: Sequence[str], at: int) -> AliquotError:
    words = [word for word in argv[at : at + 2] if not word.startswith("-")]
    verb = words[0] if words else ""
    command = " ".join(argv)
    if verb == "compose":
        return _compose(f"{basename(argv[0])} compose")
    if verb == "container" and len(words) > 1:
        verb = words[1]
    answers = {
        "start": "a container keeps the share it was created with, and starting it takes no new one",
        "restart": "a container keeps the share it was created with",
        "exec": "a command in a running container is in that container's share already",
        "attach": "a running container has its share already",
        "build": "a build runs without a GPU; only the containers of the image get a share",
        "buildx": "a build runs without a GPU; only the containers of the image get a share",
    }
    pods = ("kube", "play", "pod", "generate", "quadlet", "stack", "service", "swarm")
    if verb in pods:
        return AliquotError(
            Reason.COMMAND_NOT_UNDERSTOOD,
            f"`{verb}` reads its containers from elsewhere, where Aliquot cannot put the share's options",
            next=[(_LEASE_FIRST, "prints the options to write there")],
        )
    if verb in answers:
        return AliquotError(
            Reason.COMMAND_NOT_UNDERSTOOD,
            f"`{verb}` needs no share of its own: {answers[verb]}",
            next=[(command, "without Aliquot")],
        )
    return AliquotError(
        Reason.COMMAND_NOT_UNDERSTOOD,
        f"Aliquot gives a share to `run` and `create`; `{verb or command}` starts no container",
        next=[
            (command, "without Aliquot"),
            (f"aliquot run --gpu SPEC -- {basename(argv[0])} run [OPTIONS] IMAGE …", "starts one"),
        ],
    )


def _compose(program: str) -> AliquotError:
    return AliquotError(
        Reason.COMMAND_NOT_UNDERSTOOD,
        f"`{program}` reads its containers from a file, where Aliquot cannot put the share's options",
        next=[(_LEASE_FIRST, "prints the lines to add to a service in that file")],
    )

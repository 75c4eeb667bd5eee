"""The user's own command line with the share's options in the right place."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aliquot.injection.command_line import ContainerCommand, Option, parse_run
from aliquot.injection.engine import Engine
from aliquot.injection.for_processes import RUNTIME_DEVICES
from aliquot.injection.grants import refusals, warnings
from aliquot.model import AliquotError, Notice, Reason, Severity


@dataclass(frozen=True, slots=True)
class Rewritten:
    argv: tuple[str, ...]
    notices: tuple[Notice, ...] = ()
    """What was neutralised (``info``), and what weakens the share (``warning``)."""


def image_of(command: ContainerCommand, *, engine: Engine) -> str | None:
    """The image's name as the user wrote it; ``None`` where the command takes a root file system
    (Podman's ``--rootfs``). Raises ``AliquotError`` (``command-not-understood``)."""
    options, at = parse_run(command, engine.kind)
    rootfs = any(option.name == "rootfs" and option.on for option in options)
    return None if rootfs else command.argv[at]


def rewrite(
    command: ContainerCommand,
    *,
    engine: Engine,
    insertion: Sequence[str],
    image_env: Sequence[str] | None = None,
    own_folders: Sequence[str] = (),
) -> Rewritten:
    """``command`` with ``insertion`` directly after its verb. Pure.

    ``insertion`` is what ``flags`` or ``cdi_flags`` gave; ``image_env`` the image's ``NAME=value``
    pairs, ``None`` where they are not known; ``own_folders`` where the book and the shares lie.
    The user's words are kept, each of them and in their order. Raises ``AliquotError``:
    ``command-not-understood``, ``gives-every-gpu``.
    """
    options, _ = parse_run(command, engine.kind)
    refused = list(refusals(options, engine))
    if refused:
        raise _refusal(command, options, refused)
    runtime, runtime_notices = _plain_runtime(options, engine)
    # Directly after the verb: the first word that is certainly the client's own. Between the
    # options and the image would let ours win over the user's, which no caller wants.
    after = command.verb_at + 1
    argv = (*command.argv[:after], *runtime, *insertion, *command.argv[after:])
    notices = (*runtime_notices, *_image(image_env), *warnings(options, own_folders=own_folders))
    return Rewritten(argv, notices)


def _refusal(
    command: ContainerCommand, options: Sequence[Option], refused: Sequence[tuple[Option, str]]
) -> AliquotError:
    words = [" ".join(command.argv[option.start : option.end]) for option, _ in refused]
    rest = _without(command, options, [option for option, _ in refused])
    return AliquotError(
        Reason.GIVES_EVERY_GPU,
        f"`{words[0]}`: {refused[0][1]}",
        facts=[f"{word}  {why}" for word, (_, why) in zip(words, refused, strict=True)],
        next=[(f"aliquot run --gpu SPEC -- {shlex.join(rest)}", "the same without it")],
    )


def _without(command: ContainerCommand, options: Sequence[Option], refused: Sequence[Option]) -> list[str]:
    """The words without the refused options; of a cluster such as ``-ite A=B`` the rest is kept."""
    words: list[str | None] = list(command.argv)
    for option in refused:
        others = sum(other.start == option.start and other is not option for other in options)
        words[option.start : option.end] = [None] * (option.end - option.start)
        if others:
            words[option.start] = command.argv[option.start][: 1 + others]
    return [word for word in words if word is not None]


def _plain_runtime(options: Sequence[Option], engine: Engine) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """What keeps a default runtime of NVIDIA's out of the way, where that is the default.

    Both belts: its variable is ``void`` in every insertion, and another runtime is named, since
    a runtime's own configuration can make it ignore the variable.
    """
    if not engine.defaults_to_nvidia or any(option.name == "runtime" for option in options):
        return (), ()
    if engine.plain_runtime is None:
        raise AliquotError(
            Reason.GIVES_EVERY_GPU,
            f"the default runtime of {engine.kind.value}, `{engine.default_runtime}`, hands out cards by "
            "itself, and no other runtime is known",
            next=[
                ("apt-get install runc", "installs one"),
                ("aliquot doctor", "shows the engine's runtimes"),
            ],
        )
    text = (
        f"{engine.kind.value}'s default runtime, `{engine.default_runtime}`, hands out cards by itself; "
        f"the container runs with `{engine.plain_runtime}`"
    )
    notice = Notice("default-runtime-neutralised", Severity.INFO, text)
    return ("--runtime", engine.plain_runtime), (notice,)


def _image(image_env: Sequence[str] | None) -> Iterator[Notice]:
    for pair in image_env or ():
        name, _, value = pair.partition("=")
        if name == RUNTIME_DEVICES and value != "void":
            text = f"the image asks for cards ({pair}); inside it is `{RUNTIME_DEVICES}=void`"
            yield Notice("image-neutralised", Severity.INFO, text)

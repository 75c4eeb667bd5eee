"""Mistakes on the command line, answered with the line that was meant.

click finds them; its messages keep their facts and lose their shape (usage, hint, error) to
the one shape of Aliquot.
"""

import difflib
import shlex
from collections.abc import Iterable, Sequence

import click

from aliquot.model import AliquotError, Reason


def unknown_command(path: str, words: Sequence[str], known: Iterable[str]) -> AliquotError:
    """``aliquot gpu`` → did you mean ``aliquot gpus``?"""
    name, *rest = words
    nearest = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    steps = [(f"{path} --help", "lists the commands")]
    if name == "help":
        steps.insert(0, (shlex.join([*path.split(), *rest, "--help"]), "did you mean this?"))
    elif nearest:
        steps.insert(0, (shlex.join([*path.split(), nearest[0], *rest]), "did you mean this?"))
    return AliquotError(Reason.BAD_USAGE, f"No command {name!r} in `{path}`", next=steps)


def explained(error: click.ClickException, arguments: Sequence[str]) -> AliquotError:
    """click's exception in our shape, with the corrected line where one can be told."""
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else _path(arguments)
    steps = [(f"{path} --help", "shows examples")]
    if isinstance(error, click.NoSuchOption):
        corrected = _corrected_option(error, arguments)
        if corrected:
            steps.insert(0, (corrected, "did you mean this?"))
        return AliquotError(Reason.BAD_USAGE, f"No option {error.option_name} in `{path}`", next=steps)
    if isinstance(error, click.MissingParameter) and isinstance(context, click.Context):
        usage = " ".join([path, *context.command.collect_usage_pieces(context)])
        return AliquotError(
            Reason.BAD_USAGE, _missing(error, context, path), facts=[f"usage  {usage}"], next=steps
        )
    if corrected := _corrected_choice(error, arguments):
        steps.insert(0, (corrected, "did you mean this?"))
    message = error.format_message().strip().rstrip(".")
    return AliquotError(Reason.BAD_USAGE, _one_line(message), next=steps)


def _missing(error: click.MissingParameter, context: click.Context, path: str) -> str:
    what = error.param.get_error_hint(context).strip("'") if error.param is not None else "an argument"
    return f"`{path}` needs {what}"


def _corrected_option(error: click.NoSuchOption, arguments: Sequence[str]) -> str | None:
    """The typed line with the misspelt option replaced by the nearest one of the same command."""
    context = error.ctx
    if context is None:
        return None
    known = [
        name
        for parameter in context.command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in parameter.opts
        if name.startswith("--")
    ]
    nearest = difflib.get_close_matches(error.option_name, [*known, "--help"], n=1)
    if not nearest:
        return None
    words = [
        word.replace(error.option_name, nearest[0], 1)
        if word.partition("=")[0] == error.option_name
        else word
        for word in arguments
    ]
    return shlex.join(["aliquot", *words]) if words != list(arguments) else None


def _corrected_choice(error: click.ClickException, arguments: Sequence[str]) -> str | None:
    """The typed line with a misspelt value replaced by the nearest that the option knows."""
    kind = error.param.type if isinstance(error, click.BadParameter) and error.param else None
    if not isinstance(kind, click.Choice):
        return None
    for position, word in enumerate(arguments):
        head, equals, value = word.rpartition("=")
        nearest = difflib.get_close_matches(value, list(kind.choices), n=1, cutoff=0.5)
        if nearest and f"'{value}' is not one of" in error.format_message():
            words = [*arguments[:position], head + equals + nearest[0], *arguments[position + 1 :]]
            return shlex.join(["aliquot", *words])
    return None


def _path(arguments: Sequence[str]) -> str:
    """click gives some errors no context; the command is then the first word, if it is one."""
    from aliquot.cli.registry import COMMANDS

    word = arguments[0] if arguments else ""
    return f"aliquot {word}" if word in COMMANDS else "aliquot"


def _one_line(text: str) -> str:
    return " ".join(text.split())

"""Mistakes on the command line, answered with the line that was meant.

click finds them; its messages keep their facts and lose their shape (usage, hint, error) to
the one shape of Aliquot.
"""

import difflib
import re
import shlex
from collections.abc import Iterable, Sequence

import click

from aliquot.model import AliquotError, Reason

_OTHERS_CALL_IT = {
    "delete": ("release", "remove"),
    "kill": ("release",),
    "list": ("leases",),
    "ls": ("leases", "list"),
    "ps": ("leases",),
    "rm": ("release", "remove"),
    "status": ("doctor", "gpus"),
    "stop": ("release",),
}
"""Words of other programs, which no likeness of letters would find."""

_NEGATIVE = re.compile(r"-\d")
_EXTRA = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)", re.DOTALL)


def unknown_command(path: str, words: Sequence[str], known: Iterable[str]) -> AliquotError:
    """``aliquot gpu`` → did you mean ``aliquot gpus``?"""
    name, *rest = words
    lines = []
    if name == "help":
        lines.append([*path.split(), *rest, "--help"])
    else:
        lines += [[*path.split(), meant, *rest] for meant in _meant(name, list(known))]
    steps = [(shlex.join(line), "did you mean this?") for line in lines]
    if (everything := f"{path} --help") not in (command for command, _ in steps):
        steps.append((everything, "lists the commands"))
    return AliquotError(Reason.BAD_USAGE, f"No command {name!r} in `{path}`", next=steps)


def _meant(name: str, known: list[str]) -> list[str]:
    called = [meant for meant in _OTHERS_CALL_IT.get(name.lower(), ()) if meant in known]
    return called or difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)


def explained(error: click.ClickException, arguments: Sequence[str]) -> AliquotError:
    """click's exception in our shape, with the corrected line where one can be told."""
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else _path(arguments)
    steps = [(f"{path} --help", "shows examples")]
    if isinstance(error, click.NoSuchOption) and _NEGATIVE.match(error.option_name):
        return _negative(error.option_name, arguments)
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
    corrected = _corrected_choice(error, arguments) or _corrected_size(error, arguments)
    if corrected:
        steps.insert(0, (corrected, "did you mean this?"))
    return AliquotError(Reason.BAD_USAGE, _sentence(error, path), next=steps)


def _negative(option: str, arguments: Sequence[str]) -> AliquotError:
    """click takes ``-5GiB`` and ``-1xT4`` for options."""
    word = next((word for word in arguments if word.startswith(option)), option)
    meant = ["aliquot", *(word[1:] if typed == word else typed for typed in arguments)]
    return AliquotError(
        Reason.BAD_USAGE,
        f"{word!r} begins with a minus: a size and a count are above 0",
        next=[(shlex.join(meant), "did you mean this?")],
    )


def _sentence(error: click.ClickException, path: str) -> str:
    """What click found, in our words."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        return f"`{path}` needs one of {', '.join(error.ctx.command.list_commands(error.ctx))}"
    if extra := _EXTRA.fullmatch(error.message):
        return f"`{path}` takes no argument {extra['words']!r} here"
    if isinstance(error, click.BadOptionUsage) and "requires" in error.message:
        return f"{error.option_name} needs a value"
    message = error.message if isinstance(error, click.BadParameter) else error.format_message()
    text = " ".join(message.split()).rstrip(".")
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{'/'.join(error.param.opts) if error.param.opts[0][0] == '-' else _argument(error)}: {text}"
    return text


def _argument(error: click.BadParameter) -> str:
    return error.param.human_readable_name if error.param is not None else ""


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
        nearest = difflib.get_close_matches(value.lower(), list(kind.choices), n=1, cutoff=0.5)
        if nearest and f"'{value}' is not one of" in error.format_message():
            words = [*arguments[:position], head + equals + nearest[0], *arguments[position + 1 :]]
            return shlex.join(["aliquot", *words])
    return None


def _corrected_size(error: click.ClickException, arguments: Sequence[str]) -> str | None:
    """``aliquot lease 1/4`` → ``aliquot lease --gpu 1/4``."""
    context, extra = getattr(error, "ctx", None), _EXTRA.fullmatch(error.message)
    if extra is None or not isinstance(context, click.Context) or "--gpu" in arguments:
        return None
    takes_size = any("--gpu" in parameter.opts for parameter in context.command.params)
    size = extra["words"].partition(" ")[0]
    if not takes_size or size not in arguments or not _is_size(size):
        return None
    at = list(arguments).index(size)
    return shlex.join(["aliquot", *arguments[:at], "--gpu", *arguments[at:]])


def _is_size(word: str) -> bool:
    """Without a digit it could be a model, or anything else."""
    from aliquot.ask import parse

    if not any(letter.isdigit() for letter in word):
        return False
    try:
        parse(word)
    except AliquotError:
        return False
    return True


def _path(arguments: Sequence[str]) -> str:
    """click gives some errors no context; the command is then the first word, if it is one."""
    from aliquot.cli.registry import COMMANDS

    word = arguments[0] if arguments else ""
    return f"aliquot {word}" if word in COMMANDS else "aliquot"

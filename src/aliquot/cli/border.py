"""Where every failure of the command line ends: its shape, its stream and its exit code."""

import contextlib
import sys
from collections.abc import Sequence

import click

from aliquot.cli.output.streams import out_exactly, say
from aliquot.cli.program import OUR_FAILURE_IN_RUN, debugging
from aliquot.model import AliquotError, Reason


def report(error: Exception, arguments: Sequence[str]) -> int:
    """Tell people (stderr) and, where they asked for it, programs (stdout); returns the exit code."""
    refusal = as_refusal(error, arguments)
    code = _exit_code(refusal, arguments)
    if debugging(arguments):
        import traceback

        say("".join(traceback.format_exception(error)), end="")
    with contextlib.suppress(AliquotError):  # stdout itself may be what failed; stderr tells
        _print_document(refusal, code, arguments)
    from aliquot.cli.output.failures import failure_lines

    say("\n".join(failure_lines(refusal)))
    return code


def as_refusal(error: Exception, arguments: Sequence[str]) -> AliquotError:
    """Any exception as the one that a user may see."""
    if isinstance(error, AliquotError):
        return error
    if isinstance(error, click.ClickException):
        from aliquot.cli.usage_errors import explained

        return explained(error, arguments)
    return _unexpected(error, arguments)


def _exit_code(refusal: AliquotError, arguments: Sequence[str]) -> int:
    """``run`` passes the child's code through, so that a failure of our own must not look like one."""
    code = refusal.reason.exit_code
    return OUR_FAILURE_IN_RUN if code == 1 and _command_of(arguments) == "run" else code


def _print_document(refusal: AliquotError, code: int, arguments: Sequence[str]) -> None:
    form = _asked_form(arguments)
    if form not in ("json", "jsonl", "yaml"):
        return
    from aliquot.cli.output.documents import as_json, as_yaml
    from aliquot.cli.output.failures import failure_document

    body = failure_document(refusal, code)
    out_exactly(as_yaml(body) if form == "yaml" else as_json(body, indent=form == "json"))


def _unexpected(error: Exception, arguments: Sequence[str]) -> AliquotError:
    """A fault of ours or of the machine: one line, and the traceback in a file for the report."""
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    log = _write_log(error, arguments)
    return AliquotError(
        Reason.FAILED,
        f"aliquot failed: {what}",
        facts=[f"log  {log}"] if log else [],
        next=[(f"aliquot --debug {_quoted(arguments)}".rstrip(), "shows where")],
    )


def _write_log(error: Exception, arguments: Sequence[str]) -> str | None:
    """Path of a new file with the traceback, readable by its user only; ``None`` where none can be made."""
    import os
    import tempfile
    import traceback

    from aliquot import __version__

    try:
        descriptor, path = tempfile.mkstemp(prefix="aliquot-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"aliquot {__version__}  python {sys.version.split()[0]}\n")
            file.write(f"aliquot {_quoted(arguments)}\n\n")
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return None
    return path


def _quoted(arguments: Sequence[str]) -> str:
    import shlex

    return shlex.join(arguments)


def _command_of(arguments: Sequence[str]) -> str | None:
    return next((argument for argument in arguments if not argument.startswith("-")), None)


def _asked_form(arguments: Sequence[str]) -> str | None:
    """What ``-o`` says, read without the parser: it may be the parser that failed."""
    words = list(arguments)
    if _command_of(words) == "run":  # what follows may be the child's own options
        return None
    if "--" in words:
        words = words[: words.index("--")]
    form = None
    for word, after in zip(words, [*words[1:], ""], strict=False):
        if word in ("-o", "--output"):
            form = after
        elif word.startswith("--output="):
            form = word.removeprefix("--output=")
        elif word.startswith("-o") and not word.startswith("--"):
            form = word[2:].removeprefix("=")
        elif word == "--json":
            form = "json"
    return form

"""The entry point of ``aliquot``.

Only ``sys`` and the version are imported before it is known that more is needed: a shell
prompt or a script may call ``aliquot --version`` often (``bench/cli.py`` holds its cost).
"""

import sys

from aliquot import __version__

TYPE_CHECKING = False  # importing `typing` to know that takes 5 ms
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130
"""The exit code after Ctrl-C: 128 and SIGINT, as shells have it."""


def main() -> "NoReturn":
    """Run the command line in ``sys.argv`` and exit; see ``aliquot.model.Reason`` for the codes."""
    arguments = sys.argv[1:]
    try:
        if arguments in (["--version"], ["version"]):
            code = _print_version()
        else:
            from aliquot.cli.program import invoke

            code = invoke(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    _leave(code)


def _print_version() -> int:
    try:
        print(f"aliquot {__version__}", flush=True)
    except BrokenPipeError:
        return 0
    except OSError as error:
        print(f"aliquot: cannot write the version: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _leave(code: int) -> "NoReturn":
    """Exit with ``code``, whatever became of the pipes.

    The interpreter flushes both streams once more at its end, and would print a traceback
    and replace the code if a reader has gone: they are flushed here first, and pointed to
    /dev/null where that fails.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            _discard(stream.fileno())
    sys.exit(code)


def _discard(descriptor: int) -> None:
    import os

    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, descriptor)
    os.close(sink)

"""The two streams: stdout is data, stderr is talk.

Writing never raises for a reader that has gone (``aliquot leases | head -1``) and never for
a character that the terminal cannot show: under ``LANG=C`` the few symbols that Aliquot uses
have ASCII forms, and anything else is escaped.
"""

import os
import sys
from typing import TextIO

# One letter for one, so that aligned columns stay aligned.
_ASCII = str.maketrans(
    {"—": "-", "–": "-", "…": "~", "✗": "x", "✓": "+", "×": "x", "→": ">", "·": ".", "│": "|"}
)
_RESET = "\x1b[0m"
_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m", "red": "\x1b[31m", "green": "\x1b[32m", "yellow": "\x1b[33m"}


def out(text: str, *, end: str = "\n") -> None:
    """Data for people, to stdout; ``AliquotError`` where it cannot be written, as on a full disk."""
    _write_data(text + end, exactly=False)


def out_exactly(text: str, *, end: str = "\n") -> None:
    """Data for programs: UTF-8 whatever the locale, nothing replaced (JSON is UTF-8 by RFC 8259)."""
    _write_data(text + end, exactly=True)


def say(text: str, *, end: str = "\n") -> None:
    """Talk, to stderr; it never fails the command."""
    try:
        _write(sys.stderr, text + end)
    except OSError:
        return


def presentable(text: str, stream: TextIO | None = None) -> str:
    """``text`` in characters that ``stream`` (stdout where not given) can show."""
    if speaks_unicode(stream or sys.stdout):
        return text
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def speaks_unicode(stream: TextIO | None) -> bool:
    """Whether the stream is UTF-8 *and* the user's locale says that the terminal is.

    Python alone cannot tell: in the C locale it coerces itself to UTF-8 (PEP 538), sets
    LC_CTYPE for it, and a terminal that shows ASCII gets bytes it does not know. So LC_CTYPE
    is believed only where LANG does not say C.
    """
    encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
    if encoding != "utf8":
        return False
    effective = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    if not os.environ.get("LC_ALL") and effective not in ("", "C", "POSIX"):
        effective = os.environ.get("LC_CTYPE") or effective
    return "utf8" in effective.lower().replace("-", "")


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def width(stream: TextIO | None = None) -> int | None:
    """Columns of the terminal; ``None`` where the stream is none, and nothing is cut."""
    if not is_terminal(stream or sys.stdout):
        return None
    import shutil

    return max(20, shutil.get_terminal_size((80, 24)).columns)


def styled(text: str, style: str, stream: TextIO | None) -> str:
    """``text`` in a style of the terminal, plain everywhere else.

    ``NO_COLOR`` (https://no-color.org, any value but the empty one) and ``TERM=dumb`` turn it off.
    """
    if not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") in (None, "", "dumb"):
        return text
    return f"{_STYLES[style]}{text}{_RESET}"


def printable(text: str) -> str:
    """``text`` on one line and without control characters.

    A command line or a container's name is somebody else's text: a newline in it would break
    a table, an escape sequence would drive the terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode("ascii")
        for letter in text
    )


def _write_data(text: str, *, exactly: bool) -> None:
    try:
        _write(sys.stdout, text, exactly=exactly)
    except OSError as error:
        from aliquot.model import AliquotError, Reason

        raise AliquotError(Reason.FAILED, f"the output cannot be written: {error.strerror}") from error


def _write(stream: TextIO | None, text: str, *, exactly: bool = False) -> None:
    if stream is None:  # the descriptor was closed before we started: nobody listens
        return
    try:
        shown = text if exactly else presentable(text, stream)
        data = shown.encode("utf-8" if exactly else stream.encoding or "utf-8", "backslashreplace")
        stream.flush()
        stream.buffer.write(data)
        stream.flush()
    except BrokenPipeError:
        _forget(stream)


def _forget(stream: TextIO) -> None:
    """Let later writes go nowhere: the reader has what it wanted, and that is no failure."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, stream.fileno())
    os.close(sink)

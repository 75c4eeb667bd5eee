"""One question to an engine's client: run it, wait no longer than asked, and take its answer."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from aliquot.model import AliquotError, Reason

PATIENCE = 10.0
"""Seconds that an engine may take to answer: a cold rootless Podman needs one or two."""


def ask(
    command: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
    reading: IO[bytes] | None = None,
) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of ``command``, which reads ``reading`` and nothing from our terminal.

    Raises ``AliquotError`` (``engine-missing``) where it cannot be run or does not end in time.
    """
    environment = dict(os.environ if environ is None else environ)
    try:
        # A session of its own, so that Ctrl-C at our terminal is answered by us alone.
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL if reading is None else reading,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=environment,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AliquotError(
            Reason.ENGINE_MISSING,
            f"`{command[0]}` did not answer within {timeout:g} s",
            next=[("aliquot doctor", "asks every engine and says what it found")],
        ) from error
    except OSError as error:
        raise AliquotError(
            Reason.ENGINE_MISSING,
            f"cannot run `{command[0]}`: {error.strerror}",
            next=[("aliquot doctor", "asks every engine and says what it found")],
        ) from error
    return done.returncode, done.stdout, done.stderr


def last_words(stderr: str, stdout: str = "") -> str:
    """The last line that the client said, for our own message."""
    lines = [line.strip() for line in (stderr.strip() or stdout.strip()).splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"

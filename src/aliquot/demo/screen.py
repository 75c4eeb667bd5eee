"""What the audience sees: a heading, a prompt with a command, and what it printed."""

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Queue
from time import monotonic

from aliquot.model import AliquotError, Reason

ALIQUOT = (sys.executable, "-m", "aliquot")


def say(text: str = "") -> None:
    print(text, flush=True)


def heading(text: str) -> None:
    say(f"\n── {text}" if _unicode() else f"\n-- {text}")


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def command(*words: str, environ: Mapping[str, str] | None = None, expect: int = 0) -> str:
    """Run ``aliquot WORDS`` to its end, showing it and its output. Gives its stdout.

    Raises AliquotError(FAILED) where its exit code is not ``expect``.
    """
    say(f"$ aliquot {shlex.join(words)}")
    done = subprocess.run(
        [*ALIQUOT, *words],
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    for line in done.stdout.rstrip().splitlines():
        say(f"  {line}".rstrip())
    if done.returncode != 0:
        say(f"  [exit {done.returncode}]")
    if done.returncode != expect:
        raise AliquotError(
            Reason.FAILED, f"`aliquot {shlex.join(words)}` gave exit code {done.returncode}, not {expect}"
        )
    return done.stdout


def ask(*words: str) -> str:
    """Run ``aliquot WORDS`` without showing it. Gives its stdout."""
    return subprocess.run([*ALIQUOT, *words], text=True, capture_output=True, check=True).stdout


def shown_lines(lines: Iterable[str]) -> Iterator[str]:
    """Of a program's output what belongs to the story.

    Of a traceback its last line, which is the error; of numba's warnings about its own
    packaging, two lines each, nothing.
    """
    skipping = False
    for line in lines:
        text = line.rstrip()
        if text.startswith("Traceback ") or "Warning: " in text:
            skipping = True
        elif text and not (skipping and text.startswith(" ")):
            skipping = False
            yield text


class Program:
    """A program in the background whose lines are shown as they come, under its name."""

    def __init__(
        self, name: str, argv: Sequence[str], *, shown: str, environ: Mapping[str, str] | None = None
    ):
        self.name = name
        self.lines: list[str] = []
        say(f"$ {shown}")
        self._process = subprocess.Popen(
            argv,
            env=None if environ is None else {**os.environ, **environ},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._queue: Queue[str | None] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in shown_lines(self._process.stdout):
            say(f"  {self.name:>9} | {line}")
            self._queue.put(line)
        self._queue.put(None)

    def wait_for(self, words: str, *, within: float) -> str:
        """The first line, of those not yet waited for, that contains ``words``."""
        deadline = monotonic() + within
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                line = None
            if line is None:
                raise AliquotError(
                    Reason.FAILED, f"{self.name} did not print “{words}” within {within:.0f} s"
                ) from None
            self.lines.append(line)
            if words in line:
                return line

    def forget(self) -> None:
        """Let ``wait_for`` see only lines that come from now on."""
        with suppress(Empty):
            while (line := self._queue.get_nowait()) is not None:
                self.lines.append(line)
            self._queue.put(None)

    def terminate(self) -> None:
        self._process.terminate()

    def end(self, *, within: float) -> int:
        """Its exit code, waited for; killed and -9 where it takes longer."""
        try:
            code = self._process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

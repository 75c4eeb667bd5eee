"""Start a program that waits for our word, and stand between it and the terminal's signals.

The child is forked before its lease is committed as held and executes only after: until
then it blocks on a pipe. If we are killed in between the pipe closes and the child leaves
without having run anything, so a program never runs outside the book. After the word it
needs us no more: killed, we leave it running in its share.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_NOT_STARTED = 125
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127

_SENT_BY_KERNEL = 0x80  # SI_KERNEL: the terminal sent it to the whole foreground group
_FORWARDED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
    signal.SIGALRM,
    signal.SIGWINCH,
)
_LOOK_EVERY_S = 1.0
_HANDLED = {*_FORWARDED, signal.SIGCHLD}


@dataclass(slots=True)
class WaitingChild:
    pid: int
    _word: int
    _mask: set[signal.Signals]

    def go(self, tick: Callable[[], None] | None = None) -> int:
        """Let it execute, wait for its end, pass on what we are sent. Gives its exit code.

        ``tick`` is called about once a second meanwhile; it must come back at once.
        128 + N where signal N ended it, as shells do; 127 and 126 where the command was
        not found or not executable.
        """
        os.write(self._word, b"g")
        os.close(self._word)
        try:
            return _wait(self.pid, tick)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def abandon(self) -> None:
        """Close the pipe unsaid: the child leaves without executing anything."""
        os.close(self._word)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)


class NotReadyError(Exception):
    """The child could not make itself ready, and has left; the text says which step failed."""


def fork_waiting(
    argv: Sequence[str], environ: Mapping[str, str], *, ready: Callable[[], None] | None = None
) -> WaitingChild:
    """Fork a child that will execute ``argv`` once told ``go``.

    ``ready`` runs first, in the child; NotReadyError where it raised OSError. Signals are blocked
    from here until the child's end, so that one that arrives early is passed on rather than lost.
    """
    listen, word = os.pipe()
    told, tell = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    pid = os.fork()
    if pid == 0:
        os.close(word)
        _make_ready(ready, tell)
        _become(listen, argv, environ, mask)
    os.close(listen)
    os.close(tell)
    child = WaitingChild(pid=pid, _word=word, _mask={signal.Signals(number) for number in mask})
    with os.fdopen(told, "rb") as pipe:
        failure = pipe.read() if ready is not None else b""
    if failure:
        child.abandon()
        raise NotReadyError(failure.decode(errors="replace"))
    return child


def _make_ready(ready: Callable[[], None] | None, tell: int) -> None:
    """In the child: tells what failed, and then leaves."""
    try:
        if ready is not None:
            ready()
    except OSError as error:
        os.write(tell, f"{error.filename}: {error.strerror}".encode(errors="replace"))
        os._exit(_NOT_STARTED)
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}".encode(errors="replace"))
        os._exit(_NOT_STARTED)
    os.close(tell)


def _become(listen: int, argv: Sequence[str], environ: Mapping[str, str], mask: set[int]) -> None:
    """In the child: wait for the word, then execute. Never returns."""
    code = _NOT_STARTED
    try:
        if os.read(listen, 1) == b"g":
            os.close(listen)
            # Python ignores these by itself; a program expects the default. What it catches
            # (SIGINT) becomes the default at exec, and what we inherited as ignored stays so.
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execvpe(argv[0], list(argv), dict(environ))
    except OSError as error:
        code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        with contextlib.suppress(OSError):
            os.write(2, f"aliquot run: {argv[0]}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(code)


def _wait(pid: int, tick: Callable[[], None] | None) -> int:
    while True:
        # A thread of ours that does not block SIGCHLD yet may take it: we look now and then as well.
        received = signal.sigtimedwait(_HANDLED, _LOOK_EVERY_S)
        if received is None and tick is not None:
            tick()
        if received is None or received.si_signo == signal.SIGCHLD:
            code = _reap(pid)
            if code is not None:
                return code
        elif received.si_code < _SENT_BY_KERNEL:  # the terminal's own signals reached the child too
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, received.si_signo)


def _reap(pid: int) -> int | None:
    """The child's exit code, or None while it lives.

    When Ctrl-Z stops it, so do we (job control), and ``fg`` wakes us both. Stopped by anything
    else we wait on: who stopped the child alone will continue the child alone.
    """
    while True:
        try:
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return _NOT_STARTED
        if found == 0:
            return None
        if os.WIFSTOPPED(status):
            if os.WSTOPSIG(status) == signal.SIGTSTP and _in_the_foreground():
                os.kill(os.getpid(), signal.SIGSTOP)
            continue
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _in_the_foreground() -> bool:
    """Whether the terminal's keys go to our process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)

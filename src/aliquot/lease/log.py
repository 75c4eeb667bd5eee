"""The book's write-ahead log as a file beside SQLite's use of it: whose turn it is, and its sync.

The turn. SQLite has no queue for writers: who finds the book locked can only try again, at the
price of a step for each try and, if it sleeps in between, with the book idle meanwhile. A
``flock`` on the log costs a microsecond to try, so a waiter can watch it closely for about as
long as a step takes and goes on the moment that it is free. It is a courtesy, not the lock: who
does not get it in time goes to SQLite's lock all the same, so that a stopped process, or an older
release that knows no turns, costs a moment and never correctness. (A blocking ``flock`` has no
time limit without a signal or a thread.) SQLite locks the book and its -shm with POSIX locks,
which know nothing of ``flock``, and it never locks the log: closing our descriptor drops nothing.

The sync. SQLite's synchronous=FULL is, with a WAL, NORMAL plus one sync of the log after each
commit, made while it keeps all other writers out. We run NORMAL and make the same sync of the
same file after the commit, when the lock is free, so that others write meanwhile and one flush of
the disk serves several. It covers every commit before it, since the log is one sequence. A log
that was begun anew in between was folded into the book first, and NORMAL syncs both for that.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Self

_WATCH_S = 0.001
"""Some steps. A look is a system call: who watches for longer only takes the processor
from whoever holds the turn."""
_FIRST_SLEEP_S = 0.001
_LONGEST_SLEEP_S = 0.004
_COURTESY_S = 0.25


def sleep_about(seconds: float) -> None:
    """Between a half and one and a half of it, so that waiters do not come back at once. One byte of
    entropy is jitter enough; importing `random` costs more than opening a book."""
    time.sleep(seconds * (0.5 + os.urandom(1)[0] / 255))


class Log:
    """Of one connection, which is open for longer than this: it is what keeps the log in place."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def of(cls, book: Path) -> Self:
        """The log of an open book. Raises OSError."""
        return cls(os.open(f"{book}-wal", os.O_RDWR | os.O_CLOEXEC))

    def close(self) -> None:
        os.close(self._descriptor)

    def sync(self) -> None:
        """Every commit up to now outlives a loss of power on return. Raises OSError."""
        os.fdatasync(self._descriptor)

    def take_turn(self) -> bool:
        """Wait for the turn, for a moment; whether it came. Who got it gives it back: ``end_turn``."""
        if self._take():
            return True
        begun = time.monotonic()
        sleep = _FIRST_SLEEP_S
        while not self._take():
            waited = time.monotonic() - begun
            if waited > _COURTESY_S:
                return False
            if waited > _WATCH_S:
                sleep_about(sleep)
                sleep = min(sleep * 1.5, _LONGEST_SLEEP_S)
        return True

    def end_turn(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _take(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

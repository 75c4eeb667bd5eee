"""Who keeps a share: a thread of ``aliquot run``, or a process of its own beside every other share."""

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from aliquot.enforcement import Keeping, read_kept
from aliquot.model import AliquotError, Lease, LeaseState, Notice, Reason, Severity
from aliquot.node.paths import Paths, unwritable
from aliquot.node.share_folder import limits_file

_PARTING = 0.5
"""Seconds."""
_NOT_ITS_SHARE = ("ALIQUOT_", "CUDA_", "LD_")
"""Variables of who starts a keeper that would make it a program of some share, or see other devices."""


@dataclass(slots=True)
class HostedKeeper:
    """The keeper of a share within the process that waits for its command.

    In a thread: a driver that hangs holds up neither the command's signals nor its end.
    """

    paths: Paths
    lease: Lease
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def tick(self) -> None:
        """Once a second while the command runs; the first one starts it."""
        if self._thread is None and self.lease.governed:
            self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The command has ended. The thread sleeps nearly always, so this takes no time; one that hangs in a
        driver is left behind, and ends with us."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(_PARTING)

    def _keep(self) -> None:
        from aliquot.node.keeping import keep

        # Whatever it is, it is the program's terminal that we would write on; a fault stands in the story.
        with contextlib.suppress(Exception):
            keep(self.paths, self.lease.id, wait=self._end.wait)


def start_keeper(paths: Paths, lease: Lease) -> None:
    """A process of its own that keeps ``lease`` until it ends. Where it cannot be started the share is held
    all the same, and shown as one whose keeper is gone."""
    if not lease.governed:
        return
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_ITS_SHARE)}
    environ |= {"ALIQUOT_STATE_DIR": str(paths.state), "ALIQUOT_RUNTIME_DIR": str(paths.runtime)}
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    # -P: what lies in the folder where we were started is nobody's package.
    words = [sys.executable, "-P", "-m", "aliquot", "keeper", lease.id]
    with contextlib.suppress(OSError):
        # `aliquot run` blocks the signals that it waits for, and a keeper that did could not be ended.
        os.posix_spawn(sys.executable, words, environ, file_actions=nowhere, setsid=True, setsigmask=())


def keep_by_hand(paths: Paths, lease: Lease, wait: Callable[[float], bool]) -> int | None:
    """See ``Machine.keep``."""
    from aliquot.node.keeping import AlreadyKeptError, keep

    if lease.state is not LeaseState.HELD:
        raise AliquotError(
            Reason.LEASE_ENDED,
            f"lease {lease.id} is {lease.state.value}: there is nothing to keep",
            next=[(f"aliquot show {lease.id}", "shows its story")],
        )
    if not lease.governed:
        raise AliquotError(
            Reason.BAD_USAGE,
            f"lease {lease.id} is of whole GPUs: no governor stands there for whom to keep it",
        )
    try:
        keep(paths, lease.id, wait=wait)
    except AlreadyKeptError as kept:
        return kept.pid or 0
    except OSError as error:
        raise unwritable(limits_file(paths, lease.id), error) from error
    return None


def keeping_of(paths: Paths, lease: Lease, *, now: int) -> Keeping | None:
    """``now``: of CLOCK_MONOTONIC. None where nobody keeps such a lease, or its limits cannot be read."""
    if lease.state is not LeaseState.HELD or not lease.governed:
        return None
    kept = read_kept(limits_file(paths, lease.id))
    return None if kept is None else kept.keeping(now)


def keeper_gone(paths: Paths, lease: Lease) -> Notice:
    """Of a lease whose keeper has not looked for ten seconds: what it means, and what mends it."""
    from aliquot.node.keeping import keeper_pid

    pid = keeper_pid(paths, lease.id)
    who = "has no keeper" if pid is None else f"has a keeper that is stopped or hangs (process {pid})"
    text = f"lease {lease.id} {who}: {lease.policy.value} acts as cap, and nobody watches over it"
    fix = f"aliquot keeper {lease.id}" if pid is None else f"kill -CONT {pid}"
    return Notice("keeper-gone", Severity.WARNING, text, fix)

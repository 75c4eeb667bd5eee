"""That a lease is being verified: a cap meanwhile, changed by nobody else, and itself again afterwards.

The mark is a file of the share that its verifier holds, with the policy that the lease had.
That ends with the process, so a mark that nobody holds is one of a verifier that was killed, and
the next command gives the lease its policy back (``give_back``).
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from aliquot.lease import Book
from aliquot.model import AliquotError, Lease, LeaseState, Policy, Reason, Snapshot
from aliquot.node.changing import resize
from aliquot.node.held_files import hold, is_held
from aliquot.node.paths import Paths
from aliquot.node.share_folder import mark_of_trial


@contextlib.contextmanager
def as_a_cap(paths: Paths, book: Book, snapshot: Snapshot, lease: Lease) -> Iterator[Lease]:
    """``lease`` through the book, so that a command that mends limits meanwhile does not undo it.

    Raises AliquotError(LEASE_BUSY) where another process verifies it.
    """
    descriptor = _mark(paths, lease)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, lease.policy.value.encode(), 0)
        try:
            yield (
                lease
                if lease.policy is Policy.CAP
                else resize(paths, book, snapshot, lease, None, Policy.CAP)
            )
        finally:
            _give_back(paths, book, snapshot, book.find(lease.id))
    finally:
        os.close(descriptor)


def refuse_while_tried(paths: Paths, lease: Lease) -> None:
    """Raises AliquotError(LEASE_BUSY): what is changed meanwhile would be judged by what was."""
    with contextlib.suppress(OSError):
        descriptor = _open(paths, lease, os.O_RDONLY)
        try:
            if is_held(descriptor):
                raise _busy(lease)
        finally:
            os.close(descriptor)


def give_back(paths: Paths, book: Book, live: Sequence[Lease], look: Callable[[], Snapshot]) -> None:
    """Those of ``live`` whose verifier was killed are as they were. Costs a look for a file each."""
    for lease in live:
        with contextlib.suppress(OSError):
            descriptor = _open(paths, lease, os.O_RDWR)
            try:
                if hold(descriptor):
                    _give_back(paths, book, look(), lease)
            finally:
                os.close(descriptor)


def _give_back(paths: Paths, book: Book, snapshot: Snapshot, lease: Lease) -> None:
    """By who holds the mark. One that names no policy is of a verifier that had changed nothing yet."""
    mark = mark_of_trial(paths, lease.id)
    try:
        was = Policy(mark.read_text())
    except (OSError, ValueError):
        was = lease.policy
    if lease.state is LeaseState.HELD and lease.policy is Policy.CAP and was is not Policy.CAP:
        with contextlib.suppress(AliquotError):  # it is being released, or its limits are gone
            resize(paths, book, snapshot, lease, None, was)
    mark.unlink(missing_ok=True)


def _mark(paths: Paths, lease: Lease) -> int:
    """The mark, locked. One that another command cleared away before it was locked is made again."""
    while True:
        descriptor = _open(paths, lease, os.O_RDWR | os.O_CREAT)
        if not hold(descriptor):
            os.close(descriptor)
            raise _busy(lease)
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == mark_of_trial(paths, lease.id).stat().st_ino:
                return descriptor
        os.close(descriptor)


def _open(paths: Paths, lease: Lease, flags: int) -> int:
    return os.open(mark_of_trial(paths, lease.id), flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _busy(lease: Lease) -> AliquotError:
    return AliquotError(
        Reason.LEASE_BUSY,
        f"lease {lease.id} is being verified, and is as it is until that has ended",
        next=[(f"aliquot show {lease.id}", "shows its story"), ("pgrep -af verify", "shows who verifies")],
    )

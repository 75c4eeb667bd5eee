"""``aliquot release``: end a lease because somebody said so."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Mapping

from aliquot.lease import Book
from aliquot.model import AliquotError, ContainerHolder, Gpu, GpuUuid, Lease, Reason, Usage
from aliquot.node.paths import Paths
from aliquot.node.releasing import release_lease, stop_new_work
from aliquot.node.using import Users, users_of

_PATIENCE = 5.0
"""Seconds between SIGTERM and SIGKILL of ``--force``."""


def end_by_hand(
    paths: Paths, book: Book, lease: Lease, gpus: Mapping[GpuUuid, Gpu], *, force: bool
) -> tuple[Usage, ...]:
    """End ``lease`` if nobody uses it; with ``force`` make them stop first.

    Raises AliquotError: LEASE_ENDED; LEASE_BUSY, which names who uses it, also where ``force``
    did not help (a container is its engine's to stop).
    """
    if not lease.state.live:
        raise AliquotError(
            Reason.LEASE_ENDED,
            f"lease {lease.id} has ended already",
            next=[(f"aliquot show {lease.id}", "shows its story")],
        )
    users = users_of(paths, lease)
    if users and force and users.pids:
        stop_new_work(paths, lease, gpus)
        _end_processes(users.pids)
        users = users_of(paths, lease)
    if users:
        raise _busy(lease, users, forced=force)
    return release_lease(paths, book, lease, why="released")


def _busy(lease: Lease, users: Users, *, forced: bool) -> AliquotError:
    next_: list[tuple[str, str]] = []
    if users.containers and isinstance(lease.holder, ContainerHolder):
        remove = f"{lease.holder.engine} rm -f {' '.join(users.containers)}"
        next_.append((remove, "removes them; the lease ends"))
    elif not forced:
        next_.append((f"aliquot release --force {lease.id}", "ends them: SIGTERM, and SIGKILL 5 s later"))
    return AliquotError(
        Reason.LEASE_BUSY, f"lease {lease.id} is in use by {users}", facts=users.lines(), next=next_
    )


def _end_processes(pids: Iterable[int]) -> None:
    """SIGTERM, then SIGKILL to those that are left; through pidfds, so that no reused pid is hit."""
    descriptors: list[int] = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(pid))
    try:
        _signal(descriptors, signal.SIGTERM)
        _signal(_wait_for_end(descriptors, _PATIENCE), signal.SIGKILL)
        _wait_for_end(descriptors, _PATIENCE)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _signal(descriptors: Iterable[int], number: signal.Signals) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptor, number)


def _wait_for_end(descriptors: Iterable[int], seconds: float) -> set[int]:
    """Those that have not ended after ``seconds``. A pidfd is readable when its process ended."""
    poll = select.poll()
    left = set(descriptors)
    for descriptor in left:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    while left and (remaining := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(remaining * 1000):
            left.discard(descriptor)
            poll.unregister(descriptor)
    return left

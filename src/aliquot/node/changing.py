"""A lease changes while its programs run: its size, its policy, whether it is paused, when it ends.

The limits file is changed within the transaction of the book, as its last step: nobody can decide
on the one without the other, and the tenant sees the new limits at its next call. Killed in
between, the book is right, and the next command brings the limits to it (``make_agree``).
"""

import time
from collections.abc import Callable, Mapping, Sequence

from aliquot import placement
from aliquot.enforcement import limits_agree, write_limits
from aliquot.lease import Book, Event, Paused, Resized, Resumed
from aliquot.model import (
    AliquotError,
    Ask,
    Gpu,
    GpuUuid,
    Lease,
    LeaseState,
    Policy,
    Reason,
    Refused,
    Snapshot,
)
from aliquot.node.looking import by_uuid
from aliquot.node.paths import Paths
from aliquot.node.share_folder import limits_file


def resize(
    paths: Paths, book: Book, snapshot: Snapshot, lease: Lease, ask: Ask | None, policy: Policy | None
) -> Lease:
    """Raises AliquotError with the refusal where it has no room; then nothing is changed."""
    gpus = by_uuid(snapshot)

    def decide(now: Lease, others: tuple[Lease, ...]) -> Event | Refused:
        _refuse_not_held(now)
        wanted, shares = now.ask, now.shares
        if ask is not None:
            held = [share for other in others for share in other.shares]
            found = placement.refit(ask, now.shares, snapshot, held, achievable=now.isolation)
            if isinstance(found, Refused):
                return found
            wanted, shares = str(ask.alternatives[found.alternative]), found.shares
        return Resized(time.time_ns(), wanted, shares, policy or now.policy)

    changed = _change(paths, book, lease, decide, gpus)
    if isinstance(changed, Refused):
        if ask is None:
            raise RuntimeError("only a size can be refused")
        others = [other for other in book.leases(live=True) if other.id != lease.id]
        from aliquot.node.explaining import refusal

        refused = refusal(ask, changed, snapshot, others)
        # What fits on another GPU is no size for this lease: it stays on those that it has.
        refused.next = (("aliquot gpus", "shows what is free on the GPUs that it has"),)
        raise refused
    return changed


def pause(paths: Paths, book: Book, snapshot: Snapshot, lease: Lease) -> Lease:
    """Its launches wait from now on; what it holds it keeps. Paused already, nothing changes."""
    return _pause_or_resume(paths, book, snapshot, lease, Paused)


def resume(paths: Paths, book: Book, snapshot: Snapshot, lease: Lease) -> Lease:
    return _pause_or_resume(paths, book, snapshot, lease, Resumed)


def _pause_or_resume(
    paths: Paths, book: Book, snapshot: Snapshot, lease: Lease, event: type[Paused] | type[Resumed]
) -> Lease:
    def decide(now: Lease, others: tuple[Lease, ...]) -> Event:  # noqa: ARG001 - Book.change's face
        _refuse_not_held(now)
        if not now.governed:
            raise AliquotError(
                Reason.BAD_USAGE,
                f"lease {now.id} is of whole GPUs: no governor stands there that could make launches wait",
            )
        return event(time.time_ns())

    if (lease.paused_at is not None) is (event is Paused) and lease.state is LeaseState.HELD:
        return lease
    changed = _change(paths, book, lease, decide, by_uuid(snapshot))
    if isinstance(changed, Refused):
        raise RuntimeError("a pause is never refused for room")
    return changed


def _change(
    paths: Paths,
    book: Book,
    lease: Lease,
    decide: Callable[[Lease, tuple[Lease, ...]], Event | Refused],
    gpus: Mapping[GpuUuid, Gpu],
) -> Lease | Refused:
    try:
        return book.change(lease.id, decide, then=lambda after: _write_or_refuse(paths, after, gpus))
    except BaseException:
        # The commit itself may have failed: then the limits are ahead of the book.
        make_agree(paths, book, [lease], gpus)
        raise


def make_agree(paths: Paths, book: Book, live: Sequence[Lease], gpus: Mapping[GpuUuid, Gpu]) -> None:
    """Bring to the book what a command that was killed left between. Leases that agree cost a read.

    What cannot be mended here (a limits file that is gone or of another lease) is left: a governor
    refuses it.
    """
    for lease in live:
        if limits_differ(paths, lease):
            book.agree(lease.id, lambda now: _write(paths, now, gpus))


def limits_differ(paths: Paths, lease: Lease) -> bool:
    """Whether its limits say something else than the book. Unreadable ones do not: see ``make_agree``."""
    if lease.state is not LeaseState.HELD or not lease.governed:
        return False
    return limits_agree(limits_file(paths, lease.id), lease) is False


def _write_or_refuse(paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu]) -> None:
    """Its programs have the limits mapped: where the file is gone nothing reaches them, and what the book
    took from them would be given to others while they use it."""
    path = limits_file(paths, lease.id)
    if lease.governed and not path.exists():
        raise AliquotError(
            Reason.FAILED,
            f"{path} is gone while lease {lease.id} is in use: its programs cannot be told; "
            "nothing was changed",
            next=[(f"aliquot release --force {lease.id}", "ends them and the lease")],
        )
    _write(paths, lease, gpus)


def _write(paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu]) -> None:
    path = limits_file(paths, lease.id)
    if lease.state is LeaseState.HELD and lease.governed and path.exists():
        write_limits(path, lease=lease, gpus=gpus, paused=lease.paused_at is not None)


def _refuse_not_held(lease: Lease) -> None:
    if lease.state is LeaseState.HELD:
        return
    raise AliquotError(
        Reason.LEASE_ENDED,
        f"lease {lease.id} is {lease.state.value}: it is not changed any more",
        next=[(f"aliquot show {lease.id}", "shows its story")],
    )

"""The book: who holds which share, from its preparation to its end and its figures.

What is on disk when a call returns (see ``storage``):

========================  =========  ====================================================
step                      on disk    why
========================  =========  ====================================================
reserve (preparing)       later      nobody was told of it; its files lie in a runtime folder
held, by a process        later      a loss of power ends the process, and the lease with it
held, by a container      at once    both are expected to be there after the boot
or by nobody
releasing, and waiting    later      done again when it is lost
ended, with its usage     at once    the figures exist nowhere else; the share is given away
cordons, other changes    at once    somebody was told
========================  =========  ====================================================

"Later" is with the next commit that is "at once", or when the kernel writes back. A kill of any
process, ours included, loses nothing in either case.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Self

from aliquot.lease import cards, looking_up
from aliquot.lease.booking import refuse_double_booking
from aliquot.lease.drafts import LeaseDraft, LeaseEvent
from aliquot.lease.lifecycle import (
    BootSet,
    Ended,
    Event,
    ExpirySet,
    Flagged,
    Held,
    HolderSet,
    IllegalStepError,
    ReleaseBegun,
    format_moment,
    step,
)
from aliquot.lease.liveness import describe
from aliquot.lease.rows import (
    IN_ORDER,
    SELECT_LEASES,
    StoredLease,
    leases_of,
)
from aliquot.lease.storage import BookFile
from aliquot.lease.writing import change_of, insert, write
from aliquot.model import (
    AliquotError,
    Gpu,
    GpuUuid,
    Holder,
    KnownGpu,
    Lease,
    LeaseId,
    LeaseState,
    Placed,
    ProcessHolder,
    Reason,
    Refused,
    Stretch,
    Usage,
)

_LIVE = f"{SELECT_LEASES} WHERE lease.ended_at IS NULL{IN_ORDER}"


class StaleDecisionError(AliquotError):
    """The lease changed between the look that a decision rests on and the step."""

    def __init__(self, lease: LeaseId) -> None:
        super().__init__(
            Reason.FAILED,
            f"lease {lease} changed while its release was being decided; nothing was changed",
            next=[("aliquot leases", "decides again")],
        )


def draw() -> int:
    """64 bits of the system's entropy."""
    return int.from_bytes(os.urandom(8), "little")


class Book:
    """Open one with ``open_book``. For one thread of one process; every method may raise
    AliquotError with BOOK_LOCKED, BOOK_CORRUPT, BOOK_NEWER or BOOK_UNWRITABLE, having changed
    nothing."""

    def __init__(self, file: BookFile) -> None:
        self._file = file
        self._me: ProcessHolder | None = None
        self._newest: StoredLease | None = None
        """What this book wrote last. A lease's next step usually comes from who took its last, so
        it is decided on this without another look; ``write`` tells when somebody else was faster."""

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def read_only(self) -> bool:
        return self._file.read_only

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def check(self) -> tuple[str, ...]:
        """What is wrong with the file, a line each; empty where it is sound. Reads all of it."""
        return self._file.check()

    # ---- the life of a lease ----

    def reserve(
        self,
        draft: LeaseDraft,
        decide: Callable[[tuple[Lease, ...]], Placed | Refused],
        *,
        entropy: Callable[[], int] = draw,
    ) -> Lease | Refused:
        """Read the live leases, decide, draw an id, write it as PREPARING: one transaction.

        ``decide`` runs while nobody else can write, so it must be pure and quick. A refusal
        writes nothing. Raises AliquotError: NAME_TAKEN; FAILED where ``decide`` handed out twice.
        """
        worker = draft.worker or self._worker()
        with self._file.transaction(on_disk=False) as db:
            live = tuple(leases_of(db.execute(_LIVE)))
            _refuse_taken_name(db, draft.name, live)
            decision = decide(live)
            if isinstance(decision, Refused):
                return decision
            capacities = cards.capacities(db, [share.gpu for share in decision.shares])
            refuse_double_booking(live, decision.shares, capacities)
            born = insert(db, lambda id_: _drafted(id_, draft, decision, worker), live, entropy)
        self._newest = born
        return born.lease

    def advance(
        self,
        lease: LeaseId,
        to: LeaseState,
        *,
        at: int,
        holder: Holder | None = None,
        isolation_why: str | None = None,
        why: str | None = None,
        seen: Lease | None = None,
    ) -> Lease:
        """To HELD (perhaps with its true ``holder``, and why its isolation is what it is) or to
        RELEASING (perhaps with ``why``).

        ``seen``: the lease that the decision rests on; StaleDecisionError is raised where the book
        has another by now. RELEASING may be entered again: the caller takes the release over.
        Raises AliquotError: NOT_FOUND, LEASE_ENDED, or IllegalStepError with the lease's story.
        """
        if to is LeaseState.HELD:
            own = isinstance(holder, ProcessHolder)
            return self._apply(lease, _always(Held(at, holder, isolation_why)), on_disk=not own, seen=seen)
        if to is LeaseState.RELEASING:
            event = ReleaseBegun(at, self._worker(), why)
            return self._apply(lease, _always(event), on_disk=False, seen=seen)
        raise ValueError(f"a lease is advanced to held or releasing, not to {to.value}: see end()")

    def end(
        self, lease: LeaseId, *, at: int, why: str, usages: Sequence[Usage], seen: Lease | None = None
    ) -> Lease:
        """To ENDED with its figures, in one commit that is on disk on return.

        A lease that is not RELEASING yet passes through it in the same commit: nobody used it
        any more, so there was nothing to wait for in between. ``seen`` as in ``advance``.
        Raises AliquotError as ``advance`` does: LEASE_ENDED where another process was first.
        """

        def events(now: Lease) -> tuple[Event, ...]:
            ended = Ended(at, why)
            open_ = now.state in (LeaseState.PREPARING, LeaseState.HELD)
            return (ReleaseBegun(at, self._worker(), why), ended) if open_ else (ended,)

        return self._apply(lease, events, on_disk=True, seen=seen, usages=usages)

    def change(
        self,
        lease: LeaseId,
        decide: Callable[[Lease, tuple[Lease, ...]], Event | Refused],
        *,
        then: Callable[[Lease], None],
    ) -> Lease | Refused:
        """Read ``lease`` and all other live ones, decide, write, do ``then``: one transaction.

        Both run while nobody else can write. ``then`` makes the files of the changed lease agree
        and is the last step before the commit; killed in between, the book is the one that is
        right (``agree``). A refusal changes nothing. On disk on return.
        Raises AliquotError as ``advance`` does; FAILED where the change would book a card twice.
        """
        with self._file.transaction(on_disk=True) as db:
            live = tuple(leases_of(db.execute(_LIVE)))
            stored = looking_up.stored(self._file, lease)
            others = tuple(other for other in live if other.id != lease)
            event = decide(stored.lease, others)
            if isinstance(event, Refused):
                return event
            after, _ = self._decide(stored, _always(event), None)
            capacities = cards.capacities(db, [share.gpu for share in after.shares])
            refuse_double_booking(others, after.shares, capacities)
            newest = write(db, change_of(stored, after, (event,), ()))
            then(after)
        if newest is not None:
            self._newest = StoredLease(stored.seq, newest, after)
        return after

    def agree(self, lease: LeaseId, do: Callable[[Lease], None]) -> None:
        """``do`` with the lease as it is, while nobody can change it. Does nothing once it has ended."""
        with self._file.transaction(on_disk=False):
            now = looking_up.stored(self._file, lease).lease
            if now.state.live:
                do(now)

    def set_holder(self, lease: LeaseId, holder: Holder, *, at: int, seen: Lease | None = None) -> Lease:
        """Of a lease in PREPARING or HELD. Raises as ``advance``."""
        return self._apply(lease, _always(HolderSet(at, holder)), on_disk=True, seen=seen)

    def set_expiry(self, lease: LeaseId, expires_at: int | None, *, at: int) -> Lease:
        return self._apply(lease, _always(ExpirySet(at, expires_at)), on_disk=True)

    def set_boot(self, lease: LeaseId, boot_id: str, *, at: int) -> Lease:
        """Its files were made anew in the boot ``boot_id``."""
        return self._apply(lease, _always(BootSet(at, boot_id)), on_disk=True)

    def flag(self, lease: LeaseId, what: str, detail: str, *, at: int) -> bool:
        """Write into the story that something was seen which should not be, unless it stands there
        already. Whether it is new. Raises as ``advance``."""
        if any((event.what, event.detail) == (what, detail) for event in self.events(lease)):
            return False
        self._apply(lease, _always(Flagged(at, what, detail)), on_disk=False)
        return True

    # ---- look ----

    def leases(self, *, live: bool | None = True, since: int | None = None) -> tuple[Lease, ...]:
        """Oldest first. ``live=None`` is all; ``since`` leaves out what ended before that time."""
        return looking_up.leases(self._file, live=live, since=since)

    def find(self, text: str) -> Lease:
        """By id, name of a live lease, unique prefix of an id, or name of the newest ended lease.

        Exact beats prefix and live beats ended. Raises AliquotError: NOT_FOUND, AMBIGUOUS with
        the candidates.
        """
        return looking_up.find(self._file, text)

    def usages(self, *, lease: LeaseId | None = None, since: int | None = None) -> tuple[Usage, ...]:
        """Of ended leases, in the order of leases and shares; ``since`` as in ``leases``."""
        return looking_up.usages(self._file, lease=lease, since=since)

    def stretches(self, lease: LeaseId | None = None) -> dict[LeaseId, tuple[Stretch, ...]]:
        """What leases that were resized had before; a lease that never was is missing."""
        return looking_up.stretches(self._file, lease)

    def events(self, lease: LeaseId | None = None, *, after: int = 0) -> tuple[LeaseEvent, ...]:
        """The story of one lease, or of all; ``after``: only events with a larger ``seq``."""
        return looking_up.events(self._file, lease, after=after)

    # ---- cards ----

    def note_gpus(self, gpus: Iterable[Gpu], *, at: int) -> None:
        """Remember that these cards are here now: coverage is counted from it."""
        cards.note(self._file, tuple(gpus), at)

    def known_gpus(self) -> tuple[KnownGpu, ...]:
        """Every card ever seen, by UUID."""
        return cards.known(self._file)

    def cordon(self, gpu: GpuUuid, *, reason: str | None, at: int) -> None:
        """No new leases on ``gpu``; again with another reason replaces the reason."""
        cards.cordon(self._file, gpu, reason, at)

    def uncordon(self, gpu: GpuUuid) -> bool:
        """Whether it was cordoned."""
        return cards.uncordon(self._file, gpu)

    def cordons(self) -> dict[GpuUuid, str | None]:
        """Cordoned cards and why."""
        return cards.cordons(self._file)

    # ---- inside ----

    def _worker(self) -> ProcessHolder:
        if self._me is None or self._me.pid != os.getpid():
            self._me = describe(os.getpid())
        return self._me

    def _apply(
        self,
        lease: LeaseId,
        events_for: Callable[[Lease], tuple[Event, ...]],
        *,
        on_disk: bool,
        seen: Lease | None = None,
        usages: Sequence[Usage] = (),
    ) -> Lease:
        """Decide on a look without the lock, so that others wait for the writing only.

        The change is written only where the lease's newest event is still the one of the look
        (every change writes one); otherwise it is looked at and decided again.
        """
        remembered = self._newest if self._newest and self._newest.lease.id == lease else None
        while True:
            stored = remembered or looking_up.stored(self._file, lease)
            try:
                after, events = self._decide(stored, events_for, seen)
            except AliquotError:
                if remembered is None:
                    raise
                remembered = None  # what is told to the user is what the file says
                continue
            change = change_of(stored, after, events, usages)
            with self._file.transaction(on_disk=on_disk) as db:
                newest = write(db, change)
            if newest is not None:
                self._newest = StoredLease(stored.seq, newest, after)
                return after
            remembered = None

    def _decide(
        self, stored: StoredLease, events_for: Callable[[Lease], tuple[Event, ...]], seen: Lease | None
    ) -> tuple[Lease, tuple[Event, ...]]:
        if seen is not None and stored.lease != seen:
            raise StaleDecisionError(stored.lease.id)
        after, events = stored.lease, events_for(stored.lease)
        for event in events:
            try:
                after, _ = step(after, event)
            except IllegalStepError as error:
                raise IllegalStepError(stored.lease, event, self._story(stored.lease.id)) from error
        return after, events

    def _story(self, lease: LeaseId) -> tuple[str, ...]:
        return tuple(
            f"{format_moment(event.at)}  {event.what}{f'  {event.detail}' if event.detail else ''}"
            for event in self.events(lease)
        )


def _always(event: Event) -> Callable[[Lease], tuple[Event, ...]]:
    """The same event whatever state the lease is in: ``step`` says whether it is legal."""
    return lambda _: (event,)


def _drafted(id_: LeaseId, draft: LeaseDraft, placed: Placed, worker: ProcessHolder) -> Lease:
    return Lease(
        id=id_,
        state=LeaseState.PREPARING,
        ask=draft.ask,
        shares=placed.shares,
        policy=draft.policy,
        isolation=draft.isolation,
        isolation_why=draft.isolation_why,
        holder=draft.holder,
        user=draft.user,
        command=draft.command,
        created_at=draft.created_at,
        name=draft.name,
        expires_at=draft.expires_at,
        boot_id=draft.boot_id,
        worker=worker,
        unknown=draft.unknown,
    )


def _refuse_taken_name(db: Connection, name: str | None, live: Iterable[Lease]) -> None:
    if name is None:
        return
    for lease in live:
        if lease.name == name:
            raise AliquotError(
                Reason.NAME_TAKEN,
                f"`{name}` is the name of a live lease of {lease.user}; names of live leases are unique",
                facts=[f"{lease.id}  {lease.ask}  {lease.state.value}"],
                next=[
                    (f"aliquot show {lease.id}", "shows it"),
                    (f"aliquot release {lease.id}", "gives its share back and frees the name"),
                ],
            )
    # Of an ended one as well: an id in an old log never means another lease.
    if db.execute("SELECT 1 FROM lease WHERE id = ?", (name,)).fetchone():
        raise AliquotError(
            Reason.NAME_TAKEN,
            f"`{name}` is the id of a lease, so it cannot be the name of another",
            next=[(f"aliquot show {name}", "shows that lease")],
        )

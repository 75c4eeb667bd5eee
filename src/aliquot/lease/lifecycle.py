"""The life of a lease as a pure state machine: (lease, event) → (lease, commands).

    PREPARING ──Held──▶ HELD ──ReleaseBegun──▶ RELEASING ──Ended──▶ ENDED
        └────────────────ReleaseBegun──────────────▲  ╰─ReleaseBegun (another takes over)

Nothing else; while HELD it may be resized, paused and resumed. A lease whose preparation failed
is released like any other, because its files may be half made. Taking over is legal because a
releaser may be killed: each step of a release can be done twice. The book commits what ``step``
gives; ``node`` performs the commands, after the commit.
"""

import time
from dataclasses import dataclass, replace
from enum import Enum

from aliquot.model import (
    AliquotError,
    ContainerHolder,
    Holder,
    Lease,
    LeaseState,
    Policy,
    ProcessHolder,
    Reason,
    Share,
    Unknown,
)


class Command(Enum):
    """What is to be done once the step is committed, in this order."""

    START_HOLDER = "start-holder"
    STOP_NEW_WORK = "stop-new-work"
    SETTLE = "settle"
    """Read the ledger into usage, then end."""
    REMOVE_FILES = "remove-files"
    CHANGE_LIMITS = "change-limits"
    """Within the transaction of the step, before its commit: see ``Book.change``."""


@dataclass(frozen=True, slots=True)
class Held:
    at: int
    holder: Holder | None = None
    """Who holds it, where that is only known now."""
    isolation_why: str | None = None
    """Likewise; None leaves what is known."""


@dataclass(frozen=True, slots=True)
class ReleaseBegun:
    at: int
    worker: ProcessHolder
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    at: int
    why: str


@dataclass(frozen=True, slots=True)
class HolderSet:
    at: int
    holder: Holder


@dataclass(frozen=True, slots=True)
class ExpirySet:
    at: int
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class BootSet:
    at: int
    boot_id: str
    """Of the boot in which the lease's files were made anew."""


@dataclass(frozen=True, slots=True)
class Flagged:
    """Something was seen that should not be; the lease goes on as it was."""

    at: int
    what: str
    """One word for the story, such as ``ungoverned``."""
    detail: str


@dataclass(frozen=True, slots=True)
class Resized:
    at: int
    ask: str
    shares: tuple[Share, ...]
    """Of the same GPUs in the same order."""
    policy: Policy


@dataclass(frozen=True, slots=True)
class Paused:
    at: int


@dataclass(frozen=True, slots=True)
class Resumed:
    at: int


Event = Held | ReleaseBegun | Ended | HolderSet | ExpirySet | BootSet | Flagged | Resized | Paused | Resumed


class IllegalStepError(AliquotError):
    """An event that the lease's state does not allow. ``facts`` are the lease's story."""

    def __init__(self, lease: Lease, event: Event, story: tuple[str, ...] = ()) -> None:
        self.lease = lease
        self.event = event
        if lease.state is LeaseState.ENDED:
            reason = Reason.LEASE_ENDED
            message = f"lease {lease.id} has ended: {lease.end_why or 'no reason was kept'}"
            next_ = [(f"aliquot show {lease.id}", "shows what it was and used")]
        else:
            reason = Reason.FAILED
            twice = isinstance(event, Paused) and lease.paused_at is not None
            why = "it is paused already" if twice else _FORBIDDEN[type(event)]
            message = f"lease {lease.id} is {lease.state.value}: {why}"
            next_ = [(f"aliquot show {lease.id}", "shows its story")]
        super().__init__(reason, message, facts=story, next=next_)


_FORBIDDEN: dict[type, str] = {
    Held: "only a lease in preparation can become held",
    ReleaseBegun: "it cannot be released",
    Ended: "a lease ends only after it is releasing",
    HolderSet: "its holder can no longer change",
    ExpirySet: "its time limit can no longer change",
    BootSet: "its files are not made again",
    Flagged: "nothing more is said of it",
    Resized: "its size can no longer change",
    Paused: "it cannot be paused",
    Resumed: "it is not paused",
}

_OPEN = (LeaseState.PREPARING, LeaseState.HELD)


def step(lease: Lease, event: Event) -> tuple[Lease, tuple[Command, ...]]:
    """The lease after ``event`` and what is then to be done. Raises IllegalStepError."""
    match event:
        case Held(at, holder, why) if lease.state is LeaseState.PREPARING:
            held = replace(
                lease,
                state=LeaseState.HELD,
                held_at=at,
                holder=holder or lease.holder,
                isolation_why=why or lease.isolation_why,
                worker=None,
            )
            return held, (Command.START_HOLDER,)
        case ReleaseBegun(_, worker, why) if lease.state.live:
            releasing = replace(
                lease, state=LeaseState.RELEASING, worker=worker, end_why=why or lease.end_why
            )
            return releasing, (Command.STOP_NEW_WORK, Command.SETTLE)
        case Ended(at, why) if lease.state is LeaseState.RELEASING:
            ended = replace(lease, state=LeaseState.ENDED, ended_at=at, end_why=why, worker=None)
            return ended, (Command.REMOVE_FILES,)
        case HolderSet(_, holder) if lease.state in _OPEN and holder is not None:
            return replace(lease, holder=holder), ()
        case ExpirySet(_, expires_at) if lease.state in _OPEN:
            return replace(lease, expires_at=expires_at), ()
        case BootSet(_, boot_id) if lease.state in _OPEN:
            return replace(lease, boot_id=boot_id), ()
        case Flagged() if lease.state.live:
            return lease, ()
        case Resized(_, ask, shares, policy) if lease.state is LeaseState.HELD and _same_gpus(lease, shares):
            return replace(lease, ask=ask, shares=shares, policy=policy), (Command.CHANGE_LIMITS,)
        case Paused(at) if lease.state is LeaseState.HELD and lease.paused_at is None:
            return replace(lease, paused_at=at), (Command.CHANGE_LIMITS,)
        case Resumed() if lease.state is LeaseState.HELD and lease.paused_at is not None:
            return replace(lease, paused_at=None), (Command.CHANGE_LIMITS,)
        case _:
            raise IllegalStepError(lease, event)


def _same_gpus(lease: Lease, shares: tuple[Share, ...]) -> bool:
    """Its tenant has seen its devices, and they stay; nor does a governor come or go."""
    return [(share.gpu, share.whole) for share in shares] == [
        (share.gpu, share.whole) for share in lease.shares
    ]


def line_of_birth(lease: Lease) -> str:
    """Detail of the first line of a lease's story."""
    passing = "; unknown functions pass" if lease.unknown is Unknown.PASS else ""
    return f"for {describe_holder(lease.holder)}{passing}"


def line_of(event: Event) -> tuple[str, str | None]:
    """(what, detail) of the event in a lease's story."""
    match event:
        case Held(_, holder, _):
            return "held", None if holder is None else f"by {describe_holder(holder)}"
        case ReleaseBegun(_, worker, why):
            return "releasing", why or f"by process {worker.pid}"
        case Ended(_, why):
            return "ended", why
        case HolderSet(_, holder):
            return "holder", describe_holder(holder)
        case ExpirySet(_, expires_at):
            return "expiry", "none" if expires_at is None else format_moment(expires_at)
        case BootSet(_, boot_id):
            return "boot", boot_id
        case Flagged(_, what, detail):
            return what, detail
        case Resized(_, ask, _, policy):
            return "resized", f"to {ask}, {policy.value}"
        case Paused():
            return "paused", None
        case Resumed():
            return "resumed", None


def describe_holder(holder: Holder) -> str:
    """A holder in a few words, for stories and messages."""
    if isinstance(holder, ProcessHolder):
        return f"process {holder.pid}"
    if isinstance(holder, ContainerHolder):
        client = f", started by process {holder.client.pid}" if holder.client else ""
        return f"a container of {holder.engine}{client}"
    return "nobody"


def format_moment(at: int) -> str:
    """Nanoseconds since the epoch as ``2026-01-31T12:00:00Z``; out of range as the number."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 10**9))
    except (OverflowError, ValueError, OSError):
        return f"{at}ns"

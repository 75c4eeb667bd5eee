"""Which leases are over, which must be kept because nobody knows: decided, never done, here.

Whoever opens the book gathers evidence, asks ``due``, and performs the answer. The rule:
a lease is released when nobody can be using it, and kept when that is not known.

Every step may be killed, so each answer is one that a second process can give again and a
third can finish. Apply an answer with ``Book.advance(..., seen=due.lease)``: a lease that
changed since the look is left alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from aliquot.model import ContainerHolder, Lease, LeaseId, LeaseState, NobodyHolder, ProcessHolder


class ContainerState(Enum):
    """Of all containers with one lease's label: the liveliest."""

    RUNNING = "running"
    """Also paused, restarting or just created: it may run at any moment."""
    STOPPED = "stopped"
    ABSENT = "absent"
    """The engine answered, and has none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One look at the machine. What was not looked at, or did not answer, is missing or None."""

    boot_id: str | None
    alive: Mapping[ProcessHolder, bool]
    """Holders, clients and workers; a process that is missing counts as alive."""
    carrying: Mapping[LeaseId, tuple[int, ...]]
    """``processes_carrying``: a lease that is missing has none."""
    slots: Mapping[LeaseId, int | None]
    """Live slots of the ledger: 0 where there is no ledger file, None where it cannot be read."""
    containers: Mapping[LeaseId, ContainerState | None]
    """None: its engine does not answer."""


class Action(Enum):
    RELEASE = "release"
    """Advance to RELEASING, settle, end, remove the files."""
    FINISH = "finish"
    """Its releaser died: settle, end, remove the files."""
    KEEP_UNKNOWN = "keep-unknown"
    """Perhaps over. Tell somebody; do nothing."""


@dataclass(frozen=True, slots=True)
class Due:
    lease: Lease
    """As it was when judged."""
    action: Action
    why: str
    """``end_why`` of the lease, or what is not known."""


def due(leases: Iterable[Lease], evidence: Evidence, now: int) -> tuple[Due, ...]:
    """What is to be done with ``leases``, in their order; those to be kept are left out."""
    judged = (judge(lease, evidence, now) for lease in leases)
    return tuple(found for found in judged if found is not None)


def judge(lease: Lease, evidence: Evidence, now: int) -> Due | None:
    """None: keep it. Ended leases are kept as they are."""
    if lease.state is LeaseState.PREPARING:
        return _judge_preparing(lease, evidence)
    if lease.state is LeaseState.HELD:
        return _judge_held(lease, evidence, now)
    if lease.state is LeaseState.RELEASING:
        return _judge_releasing(lease, evidence)
    return None


def _judge_preparing(lease: Lease, evidence: Evidence) -> Due | None:
    if _worker_lives(lease, evidence):
        return None
    return _if_unused(lease, evidence, Action.RELEASE, "killed while preparing")


def _judge_held(lease: Lease, evidence: Evidence, now: int) -> Due | None:
    if lease.expires_at is not None and now >= lease.expires_at:
        # New work must stop at once, whoever still runs; it ends when they are gone.
        return Due(lease, Action.RELEASE, "expired")
    if isinstance(lease.holder, NobodyHolder):
        return None
    gone = _holder_gone(lease, evidence)
    if gone is None:
        return Due(lease, Action.KEEP_UNKNOWN, _silence(lease))
    return _if_unused(lease, evidence, Action.RELEASE, gone) if gone else None


def _judge_releasing(lease: Lease, evidence: Evidence) -> Due | None:
    if _worker_lives(lease, evidence):
        return None
    gone: str | None = "released"
    if not isinstance(lease.holder, NobodyHolder):
        gone = _holder_gone(lease, evidence, stopped_is_gone=True)
    if gone is None:
        return Due(lease, Action.KEEP_UNKNOWN, _silence(lease))
    return _if_unused(lease, evidence, Action.FINISH, lease.end_why or gone) if gone else None


def _holder_gone(lease: Lease, evidence: Evidence, *, stopped_is_gone: bool = False) -> str | None:
    """Why it is gone; empty where it is there; None where nobody knows."""
    holder = lease.holder
    if isinstance(holder, ProcessHolder):
        if _rebooted(lease, evidence):
            return "machine restarted"
        return "" if evidence.alive.get(holder, True) else "holder gone"
    if not isinstance(holder, ContainerHolder):
        return ""
    client = None if _rebooted(lease, evidence) else holder.client
    if client is not None and evidence.alive.get(client, True):
        return ""
    state = evidence.containers.get(lease.id)
    if state is None:
        return None
    if state is ContainerState.ABSENT:
        return "container removed"
    stopped = state is ContainerState.STOPPED and (holder.release_on_stop or stopped_is_gone)
    return "container stopped" if stopped else ""


def _if_unused(lease: Lease, evidence: Evidence, action: Action, why: str) -> Due | None:
    """``action``, unless processes of the lease live on, or nobody knows whether they do."""
    if evidence.carrying.get(lease.id):
        return None
    if not lease.governed or _rebooted(lease, evidence):
        return Due(lease, action, why)  # no ledger, or nobody left who could hold a lock in it
    slots = evidence.slots.get(lease.id)
    if slots is None:
        return Due(lease, Action.KEEP_UNKNOWN, "its ledger cannot be read")
    return Due(lease, action, why) if slots == 0 else None


def _worker_lives(lease: Lease, evidence: Evidence) -> bool:
    if lease.worker is None or _rebooted(lease, evidence):
        return False
    return evidence.alive.get(lease.worker, True)


def _rebooted(lease: Lease, evidence: Evidence) -> bool:
    """Whether every process of the lease's boot is certainly gone."""
    return None not in (lease.boot_id, evidence.boot_id) and lease.boot_id != evidence.boot_id


def _silence(lease: Lease) -> str:
    engine = lease.holder.engine if isinstance(lease.holder, ContainerHolder) else "the machine"
    return f"{engine} does not answer"

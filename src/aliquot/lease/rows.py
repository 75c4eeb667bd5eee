"""Leases to rows of the book and back. A row that does not decode is corruption, never "no lease"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from aliquot.lease.failures import CorruptRowError
from aliquot.lease.storage import Row
from aliquot.model import (
    Bytes,
    ContainerHolder,
    GpuUuid,
    Holder,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    ProcessHolder,
    Share,
    Thousandths,
    Unknown,
)

LEASE_COLUMNS = (
    "id",
    "state",
    "ask",
    "policy",
    "isolation",
    "holder",
    "holder_pid",
    "holder_start",
    "holder_namespace",
    "engine",
    "endpoint",
    "release_on_stop",
    "user",
    "command",
    "name",
    "created_at",
    "held_at",
    "ended_at",
    "expires_at",
    "boot_id",
    "end_why",
    "worker_pid",
    "worker_start",
    "worker_namespace",
    "isolation_why",
    "paused_at",
    "unknown",
)
_WIDTH = len(LEASE_COLUMNS)

SELECT_LEASES = f"""
SELECT lease.seq, {", ".join(f"lease.{column}" for column in LEASE_COLUMNS)},
       lease.last_event, share.gpu, share.memory, share.compute, share.whole
FROM lease LEFT JOIN share ON share.lease = lease.seq
"""
"""One row a share; to be followed by WHERE and ``ORDER BY lease.seq, share.position``.

LEFT, so that a lease without shares shows as the corruption it is.
"""

IN_ORDER = " ORDER BY lease.seq, share.position"


def lease_values(lease: Lease) -> dict[str, object]:
    """By the names of LEASE_COLUMNS."""
    return {
        "id": lease.id,
        "state": lease.state.value,
        "ask": lease.ask,
        "policy": lease.policy.value,
        "isolation": lease.isolation.value,
        **_holder_values(lease.holder),
        "user": lease.user,
        "command": lease.command,
        "name": lease.name,
        "created_at": lease.created_at,
        "held_at": lease.held_at,
        "ended_at": lease.ended_at,
        "expires_at": lease.expires_at,
        "boot_id": lease.boot_id,
        "end_why": lease.end_why,
        **_process_values("worker", lease.worker),
        "isolation_why": lease.isolation_why,
        "paused_at": lease.paused_at,
        "unknown": lease.unknown.value,
    }


def changed_values(before: Lease, after: Lease) -> dict[str, object]:
    """Of what a step may change, the columns that it did change.

    Only these are written: SQLite rewrites the index entry of every column that is named.
    """
    changed: dict[str, object] = {
        column: value for column in _PLAIN if (value := getattr(after, column)) != getattr(before, column)
    }
    if after.state is not before.state:
        changed["state"] = after.state.value
    if after.policy is not before.policy:
        changed["policy"] = after.policy.value
    if after.holder != before.holder:
        changed.update(_holder_values(after.holder))
    if after.worker != before.worker:
        changed.update(_process_values("worker", after.worker))
    return changed


_PLAIN = ("ask", "held_at", "ended_at", "expires_at", "boot_id", "end_why", "isolation_why", "paused_at")


def _holder_values(holder: Holder) -> dict[str, object]:
    if isinstance(holder, ContainerHolder):
        return {
            "holder": "container",
            **_process_values("holder", holder.client),
            "engine": holder.engine,
            "endpoint": holder.endpoint,
            "release_on_stop": int(holder.release_on_stop),
        }
    process = holder if isinstance(holder, ProcessHolder) else None
    return {
        "holder": "nobody" if process is None else "process",
        **_process_values("holder", process),
        "engine": None,
        "endpoint": None,
        "release_on_stop": None,
    }


def _process_values(prefix: str, process: ProcessHolder | None) -> dict[str, int | None]:
    return {
        f"{prefix}_pid": process.pid if process else None,
        f"{prefix}_start": process.start_time if process else None,
        f"{prefix}_namespace": process.pid_namespace if process else None,
    }


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A lease as it was read, and what tells whether it has changed since."""

    seq: int
    last_event: int
    lease: Lease


def stored_of(rows: Sequence[Row]) -> StoredLease:
    """Of the rows of one lease, at least one. Raises CorruptRowError."""
    return StoredLease(seq=rows[0][0], last_event=rows[0][1 + _WIDTH], lease=leases_of(rows)[0])


def leases_of(rows: Iterable[Row]) -> list[Lease]:
    """Of rows of SELECT_LEASES in IN_ORDER. Raises CorruptRowError."""
    found: list[Lease] = []
    shares: list[Share] = []
    last: Row | None = None
    for row in rows:
        if last is not None and row[0] != last[0]:
            found.append(_lease(last, tuple(shares)))
            shares = []
        shares.append(share_of(row))
        last = row
    if last is not None:
        found.append(_lease(last, tuple(shares)))
    return found


def share_of(row: Row) -> Share:
    """Of the last four of a row: gpu, memory, compute, whole. Raises CorruptRowError."""
    gpu, memory, compute, whole = row[-4:]
    if gpu is None:
        raise CorruptRowError(f"lease {row[1]} has no share")
    try:
        return Share(
            gpu=GpuUuid(gpu),
            memory=None if memory is None else Bytes(int(memory)),
            compute=Thousandths(int(compute)),
            whole=bool(whole),
        )
    except (TypeError, ValueError) as error:
        raise CorruptRowError(f"a share of lease {row[1]}: {error}") from error


# Each reservation reads all live leases while others wait, and few changed since the last one.
@lru_cache(maxsize=64)
def _lease(row: Row, shares: tuple[Share, ...]) -> Lease:
    (id_, state, ask, policy, isolation, kind, pid, start, namespace, engine, endpoint, stop, *rest) = row[
        1 : 1 + _WIDTH
    ]
    user, command, name, created, held, ended, expires, boot, why, *worker, isolation_why, paused, unknown = (
        rest
    )
    try:
        return Lease(
            id=LeaseId(id_),
            state=LeaseState(state),
            ask=ask,
            shares=shares,
            policy=Policy(policy),
            isolation=Isolation(isolation),
            holder=_holder(kind, _process(pid, start, namespace), engine, endpoint, stop),
            user=user,
            command=command,
            created_at=int(created),
            name=name,
            held_at=held,
            ended_at=ended,
            expires_at=expires,
            boot_id=boot,
            end_why=why,
            worker=_process(*worker),
            isolation_why=isolation_why,
            paused_at=paused,
            unknown=Unknown(unknown),
        )
    except (TypeError, ValueError) as error:
        raise CorruptRowError(f"lease {id_}: {error}") from error


def _holder(
    kind: str, process: ProcessHolder | None, engine: str | None, endpoint: str | None, stop: int | None
) -> Holder:
    if kind == "process" and process is not None:
        return process
    if kind == "container" and engine is not None:
        return ContainerHolder(engine=engine, client=process, release_on_stop=bool(stop), endpoint=endpoint)
    if kind == "nobody":
        return NobodyHolder()
    raise ValueError(f"{kind!r} is no holder")


def _process(pid: int | None, start: int | None, namespace: int | None) -> ProcessHolder | None:
    if pid is None or start is None or namespace is None:
        return None
    return ProcessHolder(pid=pid, start_time=start, pid_namespace=namespace)

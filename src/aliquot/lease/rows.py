"""Leases to rows of the book and back. A row that does not decode is corruption, never "no lease"."""

from collections.abc import Iterable

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
)
_WIDTH = len(LEASE_COLUMNS)

SELECT_LEASES = f"""
SELECT lease.seq, {", ".join(f"lease.{column}" for column in LEASE_COLUMNS)},
       share.gpu, share.memory, share.compute, share.whole
FROM lease LEFT JOIN share ON share.lease = lease.seq
"""
"""One row a share; to be followed by WHERE and ``ORDER BY lease.seq, share.position``.

LEFT, so that a lease without shares shows as the corruption it is.
"""

IN_ORDER = " ORDER BY lease.seq, share.position"


def lease_values(lease: Lease) -> tuple[object, ...]:
    """In the order of LEASE_COLUMNS."""
    return (
        lease.id,
        lease.state.value,
        lease.ask,
        lease.policy.value,
        lease.isolation.value,
        *_holder_values(lease.holder),
        lease.user,
        lease.command,
        lease.name,
        lease.created_at,
        lease.held_at,
        lease.ended_at,
        lease.expires_at,
        lease.boot_id,
        lease.end_why,
        *_process_values(lease.worker),
    )


def leases_of(rows: Iterable[Row]) -> list[tuple[int, Lease]]:
    """(seq, lease) of rows of SELECT_LEASES in IN_ORDER. Raises CorruptRowError."""
    found: list[tuple[int, Lease]] = []
    shares: list[Share] = []
    last: Row | None = None
    for row in rows:
        if last is not None and row[0] != last[0]:
            found.append((last[0], _lease(last, tuple(shares))))
            shares = []
        shares.append(_share(row))
        last = row
    if last is not None:
        found.append((last[0], _lease(last, tuple(shares))))
    return found


def _holder_values(holder: Holder) -> tuple[object, ...]:
    if isinstance(holder, ProcessHolder):
        return ("process", *_process_values(holder), None, None, None)
    if isinstance(holder, ContainerHolder):
        stop = int(holder.release_on_stop)
        return ("container", *_process_values(holder.client), holder.engine, holder.endpoint, stop)
    return ("nobody", None, None, None, None, None, None)


def _process_values(process: ProcessHolder | None) -> tuple[int | None, int | None, int | None]:
    return (None, None, None) if process is None else (process.pid, process.start_time, process.pid_namespace)


def _share(row: Row) -> Share:
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


def _lease(row: Row, shares: tuple[Share, ...]) -> Lease:
    (id_, state, ask, policy, isolation, kind, pid, start, namespace, engine, endpoint, stop, *rest) = row[
        1 : 1 + _WIDTH
    ]
    user, command, name, created, held, ended, expires, boot, why, *worker = rest
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

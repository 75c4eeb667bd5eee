"""The statements that write leases. All of them run inside a transaction that the caller opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from sqlite3 import Connection

from aliquot.lease.lifecycle import Event, describe_holder, line_of
from aliquot.lease.rows import LEASE_COLUMNS, StoredLease, changed_values, lease_values
from aliquot.model import AliquotError, Lease, Reason, Usage, lease_id

_DRAWS = 1000
_INSERT_LEASE = (
    f"INSERT INTO lease ({', '.join(LEASE_COLUMNS)}) "
    f"VALUES ({', '.join(f':{column}' for column in LEASE_COLUMNS)}) ON CONFLICT (id) DO NOTHING"
)
_INSERT_EVENT = "INSERT INTO event (at, lease, what, detail, before) VALUES (?, ?, ?, ?, ?)"
_INSERT_SHARE = "INSERT INTO share (lease, position, gpu, memory, compute, whole) VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_USAGE = (
    "INSERT INTO usage (lease, position, gpu, wall_ns, leased_bytes, leased_compute, peak_bytes, "
    "mean_bytes, denied) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one lease, decided and spelled out, but not written."""

    seq: int
    last_event: int
    """The newest event of the lease as it was read: every change writes one."""
    told: tuple[tuple[object, ...], ...]
    """A line of the story for each event, in their order."""
    statement: str
    values: tuple[object, ...]
    figures: list[tuple[object, ...]]


def change_of(stored: StoredLease, after: Lease, events: Sequence[Event], usages: Sequence[Usage]) -> Change:
    """From ``stored`` to ``after``, by ``events``: at least one."""
    changed = changed_values(stored.lease, after)
    assignments = ", ".join(f"{column} = ?" for column in (*changed, "last_event"))
    return Change(
        seq=stored.seq,
        last_event=stored.last_event,
        told=tuple((event.at, stored.seq, *line_of(event)) for event in events),
        statement=f"UPDATE lease SET {assignments} WHERE seq = ?",
        values=tuple(changed.values()),
        figures=[_usage_values(stored.seq, position, usage) for position, usage in enumerate(usages)],
    )


def insert(db: Connection, draft: Lease, live: Sequence[Lease], entropy: Callable[[], int]) -> Lease:
    """``draft`` with an id that was never used, its shares, and the first line of its story."""
    names = {lease.name for lease in live}
    for _ in range(_DRAWS):
        lease = replace(draft, id=lease_id(entropy()))
        # An id that is also somebody's name would make that name mean two leases.
        if lease.id in names or lease.id == lease.name:
            continue
        inserted = db.execute(_INSERT_LEASE, lease_values(lease))
        if inserted.rowcount == 1:
            break
    else:
        raise AliquotError(Reason.FAILED, f"no free lease id was drawn in {_DRAWS} tries; nothing was leased")
    seq = inserted.lastrowid
    db.executemany(
        _INSERT_SHARE,
        [
            (seq, position, share.gpu, share.memory, share.compute, int(share.whole))
            for position, share in enumerate(lease.shares)
        ],
    )
    line = ("preparing", f"for {describe_holder(lease.holder)}")
    last = db.execute(_INSERT_EVENT, (lease.created_at, seq, *line, None)).lastrowid
    db.execute("UPDATE lease SET last_event = ? WHERE seq = ?", (last, seq))
    return lease


def write(db: Connection, change: Change) -> bool:
    """False, with nothing written, where the lease changed since it was read."""
    found = db.execute("SELECT last_event FROM lease WHERE seq = ?", (change.seq,)).fetchone()
    if found != (change.last_event,):
        return False
    newest: int | None = change.last_event
    for line in change.told:
        newest = db.execute(_INSERT_EVENT, (*line, newest)).lastrowid
    db.execute(change.statement, (*change.values, newest, change.seq))
    if change.figures:
        db.executemany(_INSERT_USAGE, change.figures)
    return True


def _usage_values(seq: int, position: int, usage: Usage) -> tuple[object, ...]:
    return (
        seq,
        position,
        usage.gpu,
        usage.wall_ns,
        usage.leased_bytes,
        usage.leased_compute,
        usage.peak_bytes,
        usage.mean_bytes,
        usage.denied,
    )

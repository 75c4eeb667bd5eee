"""The statements that write leases. All of them run inside a transaction that the caller opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from aliquot.lease.lifecycle import Event, line_of, line_of_birth
from aliquot.lease.rows import LEASE_COLUMNS, StoredLease, changed_values, lease_values
from aliquot.model import AliquotError, Lease, LeaseId, Reason, Usage, lease_id

_DRAWS = 1000
# The number that the next row of ``event`` gets, by the rule of INTEGER PRIMARY KEY without
# AUTOINCREMENT. A lease may point at events that are written after it, in the same transaction:
# that saves a second UPDATE at its birth, and a SELECT before each step.
_NEXT_EVENT = "(SELECT coalesce(max(seq), 0) + 1 FROM event)"
_INSERT_LEASE = (
    f"INSERT INTO lease ({', '.join(LEASE_COLUMNS)}, last_event) "
    f"VALUES ({'?, ' * len(LEASE_COLUMNS)}{_NEXT_EVENT}) "
    "ON CONFLICT (id) DO NOTHING"
)
_INSERT_EVENT = "INSERT INTO event (at, lease, what, detail, before) VALUES (?, ?, ?, ?, ?)"
_INSERT_SHARE = "INSERT INTO share (lease, position, gpu, memory, compute, whole) VALUES (?, ?, ?, ?, ?, ?)"
_UPDATE_SHARE = "UPDATE share SET memory = ?, compute = ? WHERE lease = ? AND position = ?"
_INSERT_PAST = """
INSERT INTO past_share (lease, stretch, position, until, memory, compute)
SELECT share.lease, (SELECT count(DISTINCT stretch) FROM past_share WHERE lease = ?1), position, ?2,
       memory, compute
FROM share WHERE share.lease = ?1
"""
_INSERT_USAGE = (
    "INSERT INTO usage (lease, position, gpu, wall_ns, leased_bytes, leased_compute, peak_bytes, "
    "mean_bytes, denied, busy_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
    until: int
    """When the shares before the change ended, where ``shares`` has others."""
    shares: list[tuple[object, ...]]


def change_of(stored: StoredLease, after: Lease, events: Sequence[Event], usages: Sequence[Usage]) -> Change:
    """From ``stored`` to ``after``, by ``events``: at least one."""
    changed = changed_values(stored.lease, after)
    assignments = "".join(f"{column} = ?, " for column in changed)
    return Change(
        seq=stored.seq,
        last_event=stored.last_event,
        told=tuple((event.at, stored.seq, *line_of(event)) for event in events),
        statement=(
            f"UPDATE lease SET {assignments}last_event = {_NEXT_EVENT} + ? WHERE seq = ? AND last_event = ?"
        ),
        values=tuple(changed.values()),
        until=events[-1].at,
        shares=[]
        if after.shares == stored.lease.shares
        else [
            (share.memory, share.compute, stored.seq, position) for position, share in enumerate(after.shares)
        ],
        figures=[_usage_values(stored.seq, position, usage) for position, usage in enumerate(usages)],
    )


def insert(
    db: Connection, named: Callable[[LeaseId], Lease], live: Sequence[Lease], entropy: Callable[[], int]
) -> StoredLease:
    """The lease that ``named`` makes of an unused id, its shares, and the first line of its story."""
    names = {lease.name for lease in live}
    for _ in range(_DRAWS):
        lease = named(lease_id(entropy()))
        # An id that is also somebody's name would make that name mean two leases.
        if lease.id in names or lease.id == lease.name:
            continue
        inserted = db.execute(_INSERT_LEASE, tuple(lease_values(lease).values()))
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
    line = ("preparing", line_of_birth(lease))
    last = db.execute(_INSERT_EVENT, (lease.created_at, seq, *line, None)).lastrowid
    return StoredLease(seq=_rowid(seq), last_event=_rowid(last), lease=lease)


def write(db: Connection, change: Change) -> int | None:
    """The lease's newest event; None, with nothing written, where it changed since it was read."""
    updated = db.execute(
        change.statement, (*change.values, len(change.told) - 1, change.seq, change.last_event)
    )
    if updated.rowcount != 1:
        return None
    newest = change.last_event
    for line in change.told:
        newest = _rowid(db.execute(_INSERT_EVENT, (*line, newest)).lastrowid)
    if change.figures:
        db.executemany(_INSERT_USAGE, change.figures)
    if change.shares:
        db.execute(_INSERT_PAST, (change.seq, change.until))
        db.executemany(_UPDATE_SHARE, change.shares)
    return newest


def _rowid(found: int | None) -> int:
    if found is None:  # never after an INSERT of one row; sqlite3's types allow it
        raise RuntimeError("SQLite gave an inserted row no number")
    return found


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
        usage.busy_ns,
    )

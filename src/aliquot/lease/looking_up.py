"""Questions to the book that change nothing."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from aliquot.lease.drafts import LeaseEvent
from aliquot.lease.failures import CorruptRowError, explain
from aliquot.lease.rows import IN_ORDER, SELECT_LEASES, StoredLease, leases_of, share_of, stored_of
from aliquot.lease.storage import BookFile, Row
from aliquot.model import AliquotError, Bytes, GpuUuid, Lease, LeaseId, Reason, Stretch, Usage, spans_before

_CANDIDATES_SHOWN = 8

_EVENT = "SELECT event.seq, event.at, lease.id, event.what, event.detail FROM event "
_ALL_EVENTS = f"{_EVENT} JOIN lease ON lease.seq = event.lease WHERE event.seq > :after ORDER BY event.seq"
STORY = f"""
WITH RECURSIVE story (seq) AS (
  SELECT last_event FROM lease WHERE seq = :lease
  UNION ALL
  SELECT event.before FROM event JOIN story ON event.seq = story.seq
)
{_EVENT} JOIN story ON story.seq = event.seq JOIN lease ON lease.seq = event.lease
WHERE event.seq > :after ORDER BY event.seq
"""
"""Events of the lease whose seq is ``:lease``, back along the chain."""


def leases(file: BookFile, *, live: bool | None, since: int | None) -> tuple[Lease, ...]:
    conditions = {True: "lease.ended_at IS NULL", False: "lease.ended_at IS NOT NULL", None: "TRUE"}
    if since is None:
        return _select(file, conditions[live])
    recent = "(lease.ended_at IS NULL OR lease.ended_at >= ?)"
    return _select(file, f"{conditions[live]} AND {recent}", since)


def find(file: BookFile, text: str) -> Lease:
    if not text.isprintable():  # an argument that is no text: no name has it, and SQLite takes none
        raise not_found(text.encode(errors="backslashreplace").decode())
    exact = _select(file, "lease.id = ?1 OR (lease.name = ?1 AND lease.ended_at IS NULL)", text)
    if exact:
        return next((lease for lease in exact if lease.id == text), exact[0])
    if text.isascii() and text.isalnum():
        begun = _select(file, "lease.id >= ?1 AND lease.id < ?1 || '~'", text)
        live = [lease for lease in begun if lease.state.live]
        candidates = live or begun
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            raise _ambiguous(text, candidates)
    named = _select(file, "lease.seq = (SELECT max(seq) FROM lease WHERE name = ?)", text)
    if named:
        return named[0]
    raise not_found(text)


def stored(file: BookFile, lease: LeaseId) -> StoredLease:
    """Raises AliquotError: NOT_FOUND."""
    rows = file.rows(f"{SELECT_LEASES} WHERE lease.id = ?{IN_ORDER}", (lease,))
    if not rows:
        raise not_found(lease)
    try:
        return stored_of(rows)
    except CorruptRowError as error:
        raise explain(error, file.path) from error


def usages(file: BookFile, *, lease: LeaseId | None, since: int | None) -> tuple[Usage, ...]:
    rows = file.rows(
        "SELECT lease.id, usage.position, usage.gpu, wall_ns, leased_bytes, leased_compute, "
        "peak_bytes, mean_bytes, denied, busy_ns "
        "FROM usage JOIN lease ON lease.seq = usage.lease "
        "WHERE (?1 IS NULL OR lease.id = ?1) AND (?2 IS NULL OR lease.ended_at >= ?2) "
        "ORDER BY usage.lease, usage.position",
        (lease, since),
    )
    past = stretches(file, lease) if rows else {}
    return tuple(_usage(row, past.get(LeaseId(row[0]), ())) for row in rows)


def stretches(file: BookFile, lease: LeaseId | None) -> dict[LeaseId, tuple[Stretch, ...]]:
    """Those that are over, of leases that were resized. Times never run backwards, whatever the clock did."""
    rows = file.rows(
        "SELECT lease.id, lease.held_at, past_share.stretch, until, share.gpu, past_share.memory, "
        "past_share.compute, share.whole "
        "FROM past_share JOIN lease ON lease.seq = past_share.lease "
        "JOIN share ON share.lease = past_share.lease AND share.position = past_share.position "
        "WHERE ?1 IS NULL OR lease.id = ?1 "
        "ORDER BY past_share.lease, past_share.stretch, past_share.position",
        (lease,),
    )
    found: dict[LeaseId, tuple[Stretch, ...]] = {}
    for (id_, held, _, until), parts in groupby(rows, key=lambda row: row[:4]):
        before = found.get(LeaseId(id_), ())
        begin = before[-1].end if before else held
        shares = tuple(share_of(part) for part in parts)
        found[LeaseId(id_)] = (*before, Stretch(begin, max(begin, until), shares))
    return found


def events(file: BookFile, lease: LeaseId | None, *, after: int) -> tuple[LeaseEvent, ...]:
    if lease is None:
        rows = file.rows(_ALL_EVENTS, {"after": after})
    else:
        seqs = file.rows("SELECT seq FROM lease WHERE id = ?", (lease,))
        rows = file.rows(STORY, {"lease": seqs[0][0] if seqs else None, "after": after})
    return tuple(
        LeaseEvent(seq=seq, at=at, lease=LeaseId(id_), what=what, detail=detail)
        for seq, at, id_, what, detail in rows
    )


def not_found(text: str) -> AliquotError:
    return AliquotError(
        Reason.NOT_FOUND,
        f"no lease here has the id or name `{text}`",
        next=[("aliquot leases --all", "lists all, ended ones too")],
    )


def _ambiguous(text: str, candidates: Iterable[Lease]) -> AliquotError:
    found = list(candidates)
    lines = [f"{lease.id}  {lease.name or '—'}  {lease.state.value}  {lease.ask}" for lease in found]
    more = [f"… and {len(lines) - _CANDIDATES_SHOWN} more"] if len(lines) > _CANDIDATES_SHOWN else []
    return AliquotError(
        Reason.AMBIGUOUS,
        f"`{text}` begins the ids of {len(found)} leases; type more of the one that is meant",
        facts=[*lines[:_CANDIDATES_SHOWN], *more],
        next=[("aliquot leases", "lists the live ones")],
    )


def _select(file: BookFile, condition: str, *parameters: object) -> tuple[Lease, ...]:
    rows = file.rows(f"{SELECT_LEASES} WHERE {condition}{IN_ORDER}", parameters)
    try:
        return tuple(leases_of(rows))
    except CorruptRowError as error:
        raise explain(error, file.path) from error


def _usage(row: Row, past: Sequence[Stretch]) -> Usage:
    id_, position, gpu, wall, leased, compute, peak, mean, denied, busy = row
    return Usage(
        lease=LeaseId(id_),
        gpu=GpuUuid(gpu),
        wall_ns=wall,
        leased_bytes=None if leased is None else Bytes(leased),
        leased_compute=compute,
        peak_bytes=None if peak is None else Bytes(peak),
        mean_bytes=mean,
        denied=denied,
        busy_ns=busy,
        before=spans_before(past, position, wall=wall),
    )

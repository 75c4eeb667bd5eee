"""Sums of usage by lease, command or user. Integers of nanoseconds all the way to the reader."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from aliquot.metering.settling import believable
from aliquot.model import AliquotError, Lease, LeaseId, Reason, Usage, UsageSpan


class TallyBy(Enum):
    LEASE = "lease"
    COMMAND = "command"
    """Leases of no command (``aliquot lease``) are summed under ``—``."""
    USER = "user"


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Sums of all that has one key."""

    key: str
    leases: int
    wall_ns: int
    """Each lease counted once, however many GPUs it had."""
    byte_ns: int | None
    """Leased bytes times nanoseconds, of the shares whose memory is known; None if none is."""
    compute_ns: int
    """Thousandths of a GPU times nanoseconds, as reserved."""
    peak_bytes: int | None
    """The largest of one share on one GPU; None where nothing was measured."""
    denied: int | None
    busy_ns: int | None
    """GPU time that was charged, of the shares where it is known; None if none is."""
    unknown_memory: int
    """Shares that ``byte_ns`` leaves out because their card does not tell its memory."""

    @property
    def byte_seconds(self) -> float | None:
        return None if self.byte_ns is None else self.byte_ns / 1e9

    @property
    def compute_seconds(self) -> float:
        """GPU-seconds."""
        return self.compute_ns / 1e12

    @property
    def busy_seconds(self) -> float | None:
        """GPU-seconds."""
        return None if self.busy_ns is None else self.busy_ns / 1e9


def tally(
    usages: Iterable[tuple[Lease, Usage]],
    *,
    by: TallyBy | str,
    since: int | None = None,
    until: int | None = None,
) -> tuple[UsageRow, ...]:
    """Rows by falling compute time, then by key.

    With ``since`` or ``until`` (nanoseconds) only the part of each lease within counts, and a
    lease that lies outside gives nothing: leased memory and compute are constant from one resize
    to the next, so the part is exact. Peak, denials and busy time are the whole lease's, for nothing
    tells when they were. Raises AliquotError(BAD_USAGE) for an unknown ``by``.
    """
    key_of = _by(by)
    sums: dict[str, _Sum] = {}
    for lease, usage in usages:
        parts = _within(lease, usage, since, until)
        if parts is not None:
            sums.setdefault(_key(lease, key_of), _Sum()).add(lease.id, usage, parts)
    rows = (total.row(key) for key, total in sums.items())
    return tuple(sorted(rows, key=lambda row: (-row.compute_ns, row.key)))


class _Sum:
    def __init__(self) -> None:
        self._walls: dict[LeaseId, int] = {}
        self._byte_ns: list[int] = []
        self._compute_ns = 0
        self._peaks: list[int] = []
        self._denied: list[int] = []
        self._busy_ns: list[int] = []
        self._unknown = 0

    def add(self, lease: LeaseId, usage: Usage, parts: Sequence[UsageSpan]) -> None:
        wall = sum(part.wall_ns for part in parts)
        self._walls[lease] = max(wall, self._walls.get(lease, 0))
        self._compute_ns += sum(part.leased_compute * part.wall_ns for part in parts)
        if any(part.leased_bytes is None for part in parts):
            self._unknown += 1
        else:
            self._byte_ns.append(sum((part.leased_bytes or 0) * part.wall_ns for part in parts))
        if usage.peak_bytes is not None:
            self._peaks.append(usage.peak_bytes)
        denied = believable(usage.denied)  # books of older versions hold nonsense too
        if denied is not None:
            self._denied.append(denied)
        if usage.busy_ns is not None:
            self._busy_ns.append(usage.busy_ns)

    def row(self, key: str) -> UsageRow:
        return UsageRow(
            key=key,
            leases=len(self._walls),
            wall_ns=sum(self._walls.values()),
            byte_ns=sum(self._byte_ns) if self._byte_ns else None,
            compute_ns=self._compute_ns,
            peak_bytes=max(self._peaks, default=None),
            denied=sum(self._denied) if self._denied else None,
            busy_ns=sum(self._busy_ns) if self._busy_ns else None,
            unknown_memory=self._unknown,
        )


def _within(lease: Lease, usage: Usage, since: int | None, until: int | None) -> tuple[UsageSpan, ...] | None:
    """The parts of the usage inside the span; None where it lies outside."""
    if since is None and until is None:
        return usage.spans
    if lease.held_at is None:
        return None
    begin, inside = lease.held_at, []
    for span in usage.spans:
        end = begin + span.wall_ns
        first = begin if since is None else max(begin, since)
        last = end if until is None else min(end, until)
        if last > first:
            inside.append(replace(span, wall_ns=last - first))
        begin = end
    return tuple(inside) or None


def _by(by: TallyBy | str) -> TallyBy:
    try:
        return TallyBy(by)
    except ValueError:
        known = ", ".join(f"`{choice.value}`" for choice in TallyBy)
        raise AliquotError(Reason.BAD_USAGE, f"usage is summed by one of {known}, not by `{by}`") from None


def _key(lease: Lease, by: TallyBy) -> str:
    if by is TallyBy.LEASE:
        return lease.id
    if by is TallyBy.USER:
        return lease.user
    return lease.command or "—"

"""Over any span, leased plus unleased is exactly the card.

Counted in integers (bytes or thousandths, times nanoseconds), so that nothing is lost to
rounding whatever the order of addition.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aliquot.model import WHOLE, GpuUuid, KnownGpu, Lease, LeaseId, LeaseState, Share, Stretch


@dataclass(frozen=True, slots=True)
class Coverage:
    """One card over one span. Byte figures are None where the card does not tell its memory."""

    gpu: GpuUuid
    name: str
    span_ns: int
    """How much of the span the card was here."""
    card_byte_ns: int | None
    leased_byte_ns: int | None
    card_compute_ns: int
    """In thousandths of the card times nanoseconds."""
    leased_compute_ns: int

    @property
    def unleased_byte_ns(self) -> int | None:
        if self.card_byte_ns is None or self.leased_byte_ns is None:
            return None
        return self.card_byte_ns - self.leased_byte_ns

    @property
    def unleased_compute_ns(self) -> int:
        return self.card_compute_ns - self.leased_compute_ns

    @property
    def card_byte_seconds(self) -> float | None:
        return _seconds(self.card_byte_ns)

    @property
    def leased_byte_seconds(self) -> float | None:
        return _seconds(self.leased_byte_ns)

    @property
    def unleased_byte_seconds(self) -> float | None:
        return _seconds(self.unleased_byte_ns)

    @property
    def card_compute_seconds(self) -> float:
        return self.card_compute_ns / 1e12

    @property
    def leased_compute_seconds(self) -> float:
        return self.leased_compute_ns / 1e12

    @property
    def unleased_compute_seconds(self) -> float:
        return self.unleased_compute_ns / 1e12


@dataclass(frozen=True, slots=True)
class _Part:
    """A share over the time that it was held within the span."""

    begin: int
    end: int
    share: Share


def coverage(
    gpus: Iterable[KnownGpu],
    leases: Iterable[Lease],
    *,
    since: int,
    until: int,
    past: Mapping[LeaseId, Sequence[Stretch]] | None = None,
) -> tuple[Coverage, ...]:
    """A row a card that was here between ``since`` and ``until``, in the order of ``gpus``.

    A lease counts from ``held_at`` to ``ended_at``, as its Usage does, and a live one to
    ``until``, each stretch (``past`` has those before a resize) with its own shares. A card was
    here from its first to its last sight, and while a lease held it.
    """
    parts = [
        _Part(stretch.begin, stretch.end, share)
        for lease in leases
        for stretch in _stretches(lease, (past or {}).get(lease.id, ()), until)
        for share in stretch.shares
    ]
    rows = []
    for gpu in gpus:
        mine = [part for part in parts if part.share.gpu == gpu.uuid]
        row = _cover(gpu, mine, since, until)
        if row is not None:
            rows.append(row)
    return tuple(rows)


def _stretches(lease: Lease, past: Sequence[Stretch], until: int) -> tuple[Stretch, ...]:
    """All of a lease that was ever held, to its end or to ``until``."""
    if lease.held_at is None:
        return ()
    begin = past[-1].end if past else lease.held_at
    ended = lease.ended_at if lease.state is LeaseState.ENDED else None
    end = until if ended is None else ended
    return (*past, Stretch(begin, max(begin, end), lease.shares))


def _cover(gpu: KnownGpu, stretches: Sequence[_Part], since: int, until: int) -> Coverage | None:
    here_from = max(since, min([gpu.first_seen, *(stretch.begin for stretch in stretches)]))
    here_to = min(until, max([gpu.last_seen, *(stretch.end for stretch in stretches)]))
    span = here_to - here_from
    if span <= 0:
        return None
    inside = [
        _Part(max(stretch.begin, here_from), min(stretch.end, here_to), stretch.share)
        for stretch in stretches
        if stretch.begin < here_to and stretch.end > here_from
    ]
    capacity = gpu.capacity
    memory = [(piece.begin, piece.end, _memory(piece.share, capacity)) for piece in inside]
    return Coverage(
        gpu=gpu.uuid,
        name=gpu.name,
        span_ns=span,
        card_byte_ns=None if capacity is None else capacity * span,
        leased_byte_ns=None if capacity is None else _area(memory, ceiling=capacity),
        card_compute_ns=WHOLE * span,
        leased_compute_ns=_area([(p.begin, p.end, p.share.compute) for p in inside], ceiling=WHOLE),
    )


def _memory(share: Share, capacity: int | None) -> int:
    """A whole card whose share does not say its bytes holds all of them."""
    return share.memory if share.memory is not None else capacity or 0


def _area(pieces: Iterable[tuple[int, int, int]], *, ceiling: int) -> int:
    """The sum of height times time, where heights at one time add up to ``ceiling`` at most.

    They do in a book; but the card's memory may have been larger when it was leased (another
    driver, ECC switched on), and then the card was full, not more than full.
    """
    steps: dict[int, int] = {}
    for begin, end, height in pieces:
        steps[begin] = steps.get(begin, 0) + height
        steps[end] = steps.get(end, 0) - height
    total = level = last = 0
    for moment in sorted(steps):
        total += min(level, ceiling) * (moment - last)
        level += steps[moment]
        last = moment
    return total


def _seconds(amount_ns: int | None) -> float | None:
    return None if amount_ns is None else amount_ns / 1e9

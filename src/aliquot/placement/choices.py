"""Which of several GPUs that fit: by policy, alike where possible, never two drivers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction as Exact

from aliquot.model import PlacementPolicy, ShareRequest, Vendor
from aliquot.placement.rooms import Room

_VENDOR_ORDER = (Vendor.NVIDIA, Vendor.SOFTWARE, Vendor.AMD, Vendor.INTEL, Vendor.XILINX, Vendor.ALTERA)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A GPU that fits, and what would be taken of it."""

    room: Room
    wanted: ShareRequest

    @property
    def name(self) -> str:
        return self.room.gpu.name


_Key = tuple[int | Exact, ...]


def choose(
    candidates: Sequence[Candidate], count: int, policy: PlacementPolicy
) -> tuple[Candidate, ...] | None:
    """The best ``count`` distinct GPUs, by index; None where no vendor has as many."""
    key = {PlacementPolicy.PACK: _tightest, PlacementPolicy.SPREAD: _emptiest}[policy]
    for vendor in _VENDOR_ORDER:
        same_vendor = [candidate for candidate in candidates if candidate.room.gpu.vendor is vendor]
        if len(same_vendor) >= count:
            best = _alike(same_vendor, count, key) or sorted(same_vendor, key=key)[:count]
            return tuple(sorted(best, key=lambda candidate: candidate.room.gpu.index))
    return None


def _alike(
    candidates: Sequence[Candidate], count: int, key: Callable[[Candidate], _Key]
) -> list[Candidate] | None:
    """The best ``count`` of one name: a program that spans GPUs runs at the pace of the slowest."""
    by_name: dict[str, list[Candidate]] = {}
    for candidate in sorted(candidates, key=key):
        by_name.setdefault(candidate.name, []).append(candidate)
    groups = [group[:count] for group in by_name.values() if len(group) >= count]
    return min(groups, key=lambda group: [key(candidate) for candidate in group], default=None)


def _tightest(candidate: Candidate) -> _Key:
    """Least memory left, then least compute, then the smaller card, then the index."""
    room, wanted = candidate.room, candidate.wanted
    memory_left = 0 if room.free_memory is None or wanted.memory is None else room.free_memory - wanted.memory
    return (memory_left, room.free_compute - wanted.compute, room.capacity or 0, room.gpu.index)


def _emptiest(candidate: Candidate) -> _Key:
    """The largest part of memory free, then of compute, then the larger card, then the index.

    The part, not the bytes: a half-full large card has neighbours, an idle small one has none.
    """
    room = candidate.room
    free, capacity = room.free_memory, room.capacity
    part = Exact(0) if free is None or not capacity else Exact(free, capacity)
    return (-part, -room.free_compute, -(capacity or 0), room.gpu.index)

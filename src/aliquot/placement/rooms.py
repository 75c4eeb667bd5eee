"""What is left on each GPU: capacity less shares less what other programs hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aliquot.model import MIB, WHOLE, Bytes, Gpu, Share, Snapshot, Thousandths, Vendor

CUDA_VENDORS = (Vendor.NVIDIA, Vendor.SOFTWARE)
IDLE_MEMORY = Bytes(64 * MIB)
"""What others may hold of a GPU that is leased whole.

A display server without a display takes a few MiB and computes nothing. Every CUDA
context takes more than this (a Tesla T4's about 105 MiB, an H100's about 500), so no
program that computes hides below it.
"""

_IDLE_MEMORY_OF_OTHERS = Bytes(512 * MIB)
"""The same for other vendors: amdgpu's figure includes what the driver keeps for itself."""


@dataclass(frozen=True, slots=True)
class Room:
    """One GPU and what is on it."""

    gpu: Gpu
    shares: int
    held_memory: Bytes
    held_compute: Thousandths
    held_whole: bool

    @property
    def outside(self) -> Bytes | None:
        """Memory of programs in no lease, or the most that it can be; None where nothing is known."""
        return self.gpu.memory_used if self.gpu.outside_memory is None else self.gpu.outside_memory

    @property
    def capacity(self) -> Bytes | None:
        capacity = self.gpu.capacity
        return None if capacity is None else Bytes(max(0, capacity))

    @property
    def free_memory(self) -> Bytes | None:
        """Never negative: a card that shrank, or a neighbour that grew, leaves nothing, not less."""
        if self.capacity is None or self.outside is None:
            return None
        if self.held_whole:
            return Bytes(0)
        return Bytes(max(0, self.capacity - self.held_memory - self.outside))

    @property
    def free_compute(self) -> Thousandths:
        return Thousandths(0 if self.held_whole else max(0, WHOLE - self.held_compute))

    @property
    def idle_limit(self) -> Bytes:
        """How much others may hold of it for it to pass as empty: always less than one context."""
        if self.gpu.vendor not in CUDA_VENDORS:
            return _IDLE_MEMORY_OF_OTHERS
        context = self.gpu.context_bytes
        return IDLE_MEMORY if not context else Bytes(min(IDLE_MEMORY, context - 1))


def rooms(snapshot: Snapshot, held: Iterable[Share]) -> tuple[Room, ...]:
    """A room for each GPU, by index. Shares of GPUs that are not here weigh on none."""
    by_gpu: dict[str, list[Share]] = {}
    for share in held:
        by_gpu.setdefault(share.gpu, []).append(share)
    gpus = sorted(snapshot.gpus, key=lambda gpu: gpu.index)
    return tuple(_room(gpu, by_gpu.get(gpu.uuid, ())) for gpu in gpus)


def _room(gpu: Gpu, shares: Sequence[Share]) -> Room:
    return Room(
        gpu=gpu,
        shares=len(shares),
        held_memory=Bytes(sum(share.memory or 0 for share in shares)),
        held_compute=Thousandths(sum(share.compute for share in shares)),
        # A share of unknown memory can only have been the whole card: nothing else is leased of one.
        held_whole=any(share.whole or share.memory is None for share in shares),
    )

"""Cards and machines to place on."""

from collections.abc import Callable
from typing import Any

import pytest

from aliquot.model import (
    GIB,
    MIB,
    Bytes,
    Gpu,
    GpuUuid,
    Health,
    HealthState,
    Node,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)

NAMES = {
    "H100": ("NVIDIA H100 80GB HBM3", 80),
    "A100": ("NVIDIA A100-SXM4-80GB", 80),
    "RTX-4090": ("NVIDIA GeForce RTX 4090", 24),
    "T4": ("Tesla T4", 15),
    "MI300X": ("AMD Instinct MI300X", 192),
}


@pytest.fixture
def card() -> Callable[..., Gpu]:
    """``card(0, "H100", cordoned=True)``: an idle, healthy card unless said otherwise."""

    def make(index: int, model: str = "H100", **differing: Any) -> Gpu:
        name, size = NAMES[model]
        idle: dict[str, Any] = {
            "uuid": GpuUuid(f"GPU-{index}"),
            "index": index,
            "vendor": Vendor.AMD if model == "MI300X" else Vendor.NVIDIA,
            "name": name,
            "pci_id": f"0000:{index:02x}:00.0",
            "memory": Bytes(size * GIB),
            "memory_used": Bytes(0),
            "outside_memory": Bytes(0),
            "context_bytes": Bytes(500 * MIB),
            "health": Health(HealthState.HEALTHY),
        }
        return Gpu(**(idle | differing))

    return make


@pytest.fixture
def machine() -> Callable[..., Snapshot]:
    def make(*gpus: Gpu) -> Snapshot:
        return Snapshot(Node("a"), gpus)

    return make


@pytest.fixture
def share() -> Callable[..., Share]:
    """``share(0, memory=20, compute=250)``: GiB and thousandths of the card of that index."""

    def make(index: int, *, memory: float | None, compute: int, whole: bool = False) -> Share:
        count = None if memory is None else Bytes(int(memory * GIB))
        return Share(GpuUuid(f"GPU-{index}"), count, Thousandths(compute), whole)

    return make

"""Leases, cards and engines to inject into, as plain values."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from aliquot.injection import Client, Engine, EngineKind, ShareFolder
from aliquot.model import (
    Bytes,
    DriverFiles,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    Share,
    Thousandths,
    Vendor,
)

UUIDS = tuple(GpuUuid(f"GPU-{digit * 8}-0000-0000-0000-000000000000") for digit in "abc")
MakeLease = Callable[..., Lease]
MakeEngine = Callable[..., Engine]


@pytest.fixture
def folder() -> ShareFolder:
    return ShareFolder("/run/aliquot/shares/abcde")


@pytest.fixture
def lease() -> MakeLease:
    def make(*cards: int, whole: bool = False) -> Lease:
        shares = tuple(
            Share(UUIDS[card], Bytes(1 << 30), Thousandths(250), whole=whole) for card in cards or (0,)
        )
        return Lease(
            id=LeaseId("abcde"), state=LeaseState.HELD, ask="1GiB", shares=shares, policy=Policy.FAIR,
            isolation=Isolation.SOFT, holder=NobodyHolder(), user="someone", command=None, created_at=1,
        )  # fmt: skip

    return make


@pytest.fixture
def cards() -> Callable[[Vendor], tuple[Gpu, ...]]:
    def make(vendor: Vendor) -> tuple[Gpu, ...]:
        # Minor numbers in another order than the bus: they are two things.
        return tuple(
            Gpu(uuid, index, vendor, "Card", f"0000:0{index}:00.0", minor=2 - index)
            for index, uuid in enumerate(UUIDS)
        )

    return make


@pytest.fixture
def nvidia() -> DriverFiles:
    place = "/usr/lib/x86_64-linux-gnu"
    return DriverFiles(
        Vendor.NVIDIA,
        (
            ("libcuda.so.1", f"{place}/libcuda.so.580.95.05"),
            ("libnvidia-ml.so.1", f"{place}/libnvidia-ml.so.580.95.05"),
            ("libnvidia-ptxjitcompiler.so.1", f"{place}/libnvidia-ptxjitcompiler.so.580.95.05"),
        ),
        control_nodes=("/dev/nvidiactl", "/dev/nvidia-uvm"),
    )


@pytest.fixture
def software() -> DriverFiles:
    place = "/var/lib/aliquot/lib/0123/softgpu"
    names = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvJitLink.so.13")
    return DriverFiles(
        Vendor.SOFTWARE, tuple((name, f"{place}/{name}") for name in names), folder="/var/lib/aliquot/softgpu"
    )


@pytest.fixture
def engine() -> MakeEngine:
    def make(kind: str = "docker", **differences: object) -> Engine:
        client = Client(EngineKind(kind), (kind,))
        plain = Engine(client, (28, 2), (28, 2), (), "runc", frozenset(), "runc", False, False)
        return replace(plain, **differences)  # type: ignore[arg-type]

    return make

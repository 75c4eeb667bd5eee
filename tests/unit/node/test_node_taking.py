"""How strongly a share is held, and what a user's own book cannot promise."""

import os

import pytest

from aliquot.ask import parse
from aliquot.model import (
    GIB,
    Bytes,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Node,
    Policy,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)
from aliquot.node.looking import outside_memory
from aliquot.node.taking import achievable, other_books


def card(vendor: Vendor, number: int = 0) -> Gpu:
    uuid = GpuUuid(f"GPU-{number}")
    return Gpu(uuid, number, vendor, "T4", f"0000:0{number}:00.0", memory=Bytes(16 * GIB))


def lease_of(gpu: Gpu) -> Lease:
    return Lease(
        id=LeaseId("k3m9x"),
        state=LeaseState.HELD,
        ask="1GiB",
        shares=(Share(gpu.uuid, Bytes(GIB), Thousandths(60)),),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=NobodyHolder(),
        user="ann",
        command=None,
        created_at=1,
    )


@pytest.mark.parametrize(
    ("uid", "vendor", "spec", "container", "expected"),
    [
        (0, Vendor.NVIDIA, "1/4", False, Isolation.ADVISORY),
        (0, Vendor.NVIDIA, "1/4", True, Isolation.SOFT),
        (0, Vendor.NVIDIA, "T4", True, Isolation.FIRM),
        (0, Vendor.NVIDIA, "T4,1/4", True, Isolation.SOFT),
        (1000, Vendor.SOFTWARE, "1/4", True, Isolation.SOFT),
        (1000, Vendor.NVIDIA, "1/4", True, Isolation.ADVISORY),
    ],
)
def test_isolation_is_what_holds_whichever_alternative_is_placed(
    monkeypatch: pytest.MonkeyPatch, uid: int, vendor: Vendor, spec: str, container: bool, expected: Isolation
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    snapshot = Snapshot(Node("box"), (card(vendor),))
    assert achievable(parse(spec), snapshot, container=container) is expected


def test_a_real_card_in_a_users_own_book_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    real, software = card(Vendor.NVIDIA), card(Vendor.SOFTWARE, 1)
    snapshot = Snapshot(Node("box"), (real, software))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    notice = other_books(lease_of(real), snapshot)
    assert notice is not None
    assert "another user" in notice.text
    assert other_books(lease_of(software), snapshot) is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert other_books(lease_of(real), snapshot) is None


def test_memory_outside_is_all_that_is_used_less_what_leases_hold() -> None:
    from dataclasses import replace

    from aliquot.model import GpuProcess

    gpu = replace(
        card(Vendor.NVIDIA),
        memory_used=Bytes(5 * GIB),
        processes=(GpuProcess(1, Bytes(3 * GIB)), GpuProcess(2, Bytes(GIB))),
    )
    assert outside_memory(gpu, {1, 2}) == GIB  # of no process that the driver lists
    assert outside_memory(gpu, {1}) == 2 * GIB
    assert outside_memory(replace(gpu, memory_used=None), {1}) is None
    idle = replace(gpu, memory_used=Bytes(4 << 20), processes=())
    assert outside_memory(idle, set()) == 0  # an idle driver's own few MiB

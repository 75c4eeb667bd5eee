"""Leases to meter."""

from collections.abc import Callable
from typing import Any

import pytest

from aliquot.model import (
    Bytes,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    Share,
    Thousandths,
)


@pytest.fixture
def lease() -> Callable[..., Lease]:
    """An ended lease of a tenth of GPU-a from 100 to 200."""

    def make(**changes: Any) -> Lease:
        plain: dict[str, Any] = {
            "id": LeaseId("kx7f2"),
            "state": LeaseState.ENDED,
            "ask": "10%",
            "shares": (Share(GpuUuid("GPU-a"), Bytes(1_000), Thousandths(100)),),
            "policy": Policy.FAIR,
            "isolation": Isolation.SOFT,
            "holder": NobodyHolder(),
            "user": "ann",
            "command": "python train.py",
            "created_at": 90,
            "held_at": 100,
            "ended_at": 200,
        }
        return Lease(**{**plain, **changes})

    return make

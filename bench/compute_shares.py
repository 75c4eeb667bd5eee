"""Shares of one software GPU, run together for a bench: what each truly had, and was charged."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.native.governor.computing import (
    FIGURES,
    MILLISECOND,
    SECOND,
    Card,
    Stopwatch,
    finished,
    points_off,
)
from tests.native.softgpu.machine import Box

from aliquot.model import Policy
from row import print_row

__all__ = (
    "LONG",
    "MILLISECOND",
    "REQUEST",
    "SECOND",
    "SHORT",
    "SLOW",
    "WAITS",
    "Run",
    "Stopwatch",
    "Tenant",
    "card",
    "finished",
    "points_off",
    "row",
    "run",
)

# What tenants do: tests/native/governor/compute_tenant.c.
SHORT = "kernel=100000"
WAITS = f"{SHORT} sync=1"
LONG = "kernel=80000000"
SLOW = "kernel=5000 think=10000"
REQUEST = "kernel=500000 sync=1 think=20000000"


@dataclass(frozen=True)
class Tenant:
    weight: int
    words: str
    policy: Policy = Policy.FAIR
    processes: int = 1


@dataclass(frozen=True)
class Run:
    answers: list[dict[str, Any]]  # of the processes
    shares: list[dict[str, int]]  # of the shares: true_ns and charged
    busy_ns: int

    @property
    def wall_ns(self) -> int:
        return max(int(answer["ended"]) for answer in self.answers)

    @property
    def busy(self) -> float:
        """Percent."""
        return 100 * self.busy_ns / self.wall_ns

    @property
    def charge_off(self) -> float:
        """Points of the time, of the worst share."""
        return max(100 * abs(share["charged"] - share["true_ns"]) / self.wall_ns for share in self.shares)


@contextmanager
def card() -> Iterator[Card]:
    folder = Path(tempfile.mkdtemp(prefix="aliquot-bench-"))
    box = Box(folder / "state")
    try:
        yield Card(box, folder, box.add_device(**FIGURES))
    finally:
        box.close()
        shutil.rmtree(folder, ignore_errors=True)


def run(tenants: Sequence[Tenant], seconds: float, *, governed: bool = True) -> Run:
    with card() as device:
        places: list[Path] = []
        for one in tenants:
            places += [device.share(one.weight, one.policy)] * one.processes
        words = [one.words for one in tenants for _ in range(one.processes)]
        where: list[Path | None] = [place if governed else None for place in places]
        answers = device.together(int(seconds * SECOND), *zip(where, words, strict=True))
        shares = []
        for share in device.shares:
            had = [answer["true_ns"] for answer, at in zip(answers, places, strict=True) if at == share]
            shares.append({"true_ns": sum(had), "charged": device.charged(share) if governed else sum(had)})
        return Run(answers, shares, int(device.truth()["compute_ns"]))


def row(figure: str, measured: float, unit: str, goal: float, *, least: bool = False) -> bool:
    holds = measured >= goal if least else measured <= goal
    print_row(figure, measured, unit, f"{'≥' if least else '≤'}{goal:g}", holds)
    return holds

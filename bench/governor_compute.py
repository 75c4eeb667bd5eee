"""How well shares of one software GPU are held to their part of its time, in virtual time, by its own oracle.

One row a figure of what several shares together truly had: the error of the worst in points of what all had;
the device's busy time; the error of what was charged; what one that comes or goes costs; and waits. Runs of a
second are the same each time but for the order in which processes arrive.
"""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.native.governor.computing import FIGURES, MILLISECOND, SECOND, Card, points_off
from tests.native.softgpu.machine import Box

from aliquot.model import Policy
from row import print_row

_SHORT = "kernel=100000"
_SETS: tuple[tuple[str, tuple[int, ...], tuple[str, ...], int], ...] = (
    ("30:70, 0.1 ms kernels", (300, 700), (_SHORT,), 1),
    ("10:90, 0.1 ms kernels", (100, 900), (_SHORT,), 1),
    ("4 x 25, 0.25 ms kernels", (250,) * 4, ("kernel=250000",), 1),
    ("8 x 12.5, 0.25 ms kernels", (125,) * 8, ("kernel=250000",), 1),
    ("30:70, 1 ms beside 0.1 ms", (300, 700), ("kernel=1000000", _SHORT), 1),
    ("30:70, log-normal beside 0.1 ms", (300, 700), ("kernel=200000 spread=lognormal", _SHORT), 4),
    ("30:70, costs that vary tenfold", (300, 700), ("kernel=50000 spread=tenfold", _SHORT), 1),
    ("30:70, costs that change tenfold", (300, 700), ("kernel=20000 spread=regime", _SHORT), 2),
    ("30:70, two streams", (300, 700), ("kernel=100000 streams=2", _SHORT), 1),
    ("30:70, cooperative launches", (300, 700), ("kernel=100000 cooperative=1", _SHORT), 1),
    ("30:70, graphs of 1 ms", (300, 700), ("kernel=100000 graph=10", _SHORT), 1),
    ("30:70, 10 ms kernels, 10 s", (300, 700), ("kernel=10000000",), 10),
    ("30:70, graphs of 30 ms, 10 s", (300, 700), ("kernel=1000000 graph=30", _SHORT), 10),
    ("30:70, 80 ms beside 0.1 ms, 10 s", (300, 700), ("kernel=80000000", _SHORT), 10),
    ("30:70, launch and wait beside 0.1 ms", (300, 700), ("kernel=100000 sync=1", _SHORT), 1),
)
_CAPS = (100, 300, 500, 700, 900)


@dataclass(frozen=True)
class Run:
    answers: list[dict[str, Any]]
    charges: list[int]
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
        pairs = zip(self.charges, self.answers, strict=True)
        return max(100 * abs(charged - int(answer["true_ns"])) / self.wall_ns for charged, answer in pairs)


def run(shares: Sequence[tuple[int, Policy, str]], seconds: float) -> Run:
    folder = Path(tempfile.mkdtemp(prefix="aliquot-bench-"))
    box = Box(folder / "state")
    try:
        card = Card(box, folder, box.add_device(**FIGURES))
        tenants = [(card.share(weight, policy), words) for weight, policy, words in shares]
        answers = card.together(int(seconds * SECOND), *tenants)
        charges = [card.charged(share) for share in card.shares]
        return Run(answers, charges, int(card.truth()["compute_ns"]))
    finally:
        box.close()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    holds = [_row_of_set(*one) for one in _SETS]
    holds += [_row_of_cap(weight) for weight in _CAPS]
    holds += [_row_of_return(), _row_of_request()]
    return 0 if all(holds) else 1


def _row(figure: str, measured: float, unit: str, goal: str, holds: bool) -> bool:
    print_row(figure, measured, unit, goal, holds)
    return holds


def _row_of_set(name: str, parts: tuple[int, ...], words: tuple[str, ...], seconds: int) -> bool:
    tenants = [(part, Policy.FAIR, words[min(place, len(words) - 1)]) for place, part in enumerate(parts)]
    seen = run(tenants, seconds)
    off = max(map(abs, points_off(seen.answers, [part / 10 for part in parts])))
    least = 94 if "wait" in name else 98
    return all(
        (
            _row(f"{name}: share error", off, "points", "≤1", off <= 1),
            _row(f"{name}: charged against true", seen.charge_off, "points", "≤1", seen.charge_off <= 1),
            _row(f"{name}: busy", seen.busy, "%", f"≥{least}", seen.busy >= least),
        )
    )


def _row_of_cap(weight: int) -> bool:
    off = abs(run([(weight, Policy.CAP, _SHORT)], 1).busy - weight / 10)
    return _row(f"cap of {weight / 10:g} % alone: error", off, "points", "≤1", off <= 1)


def _row_of_return() -> bool:
    """The second comes after 300 ms: what it lacks at the end of its part of the rest."""
    seen = run([(500, Policy.FAIR, _SHORT), (500, Policy.FAIR, f"{_SHORT} begin={300 * MILLISECOND}")], 1)
    lacks = abs(350 * MILLISECOND - seen.answers[1]["true_ns"]) / MILLISECOND
    return _row("idle share taken back: its time short of its part", lacks, "ms", "≤20", lacks <= 20)


def _row_of_request() -> bool:
    """Alone beside 80 ms kernels, the first of which nobody knew; 2.4 ms without a governor."""
    words = f"kernel=500000 sync=1 think={20 * MILLISECOND}"
    seen = run([(300, Policy.FAIR, words), (700, Policy.FAIR, "kernel=80000000")], 4)
    mean = seen.answers[0]["mean_wait"] / MILLISECOND
    return _row("0.5 ms request beside 80 ms kernels: mean wait", mean, "ms", "≤3.4", mean <= 3.4)


if __name__ == "__main__":
    sys.exit(main())

"""How well shares of one software GPU are held to their part of its time, in virtual time, by its own oracle.

One row a figure of what several shares together truly had: the error of the worst in points of what all
had; the device's busy time; the error of what was charged; what one that comes, goes, dies or is changed
costs; and waits. Virtual time does not see how loaded the machine is; what differs from run to run is the
order in which processes that are ready at the same moment are served. The one row in real time says so.
"""

import sys
from collections.abc import Callable, Sequence

from aliquot.model import Policy
from compute_changes import row_of_pausing, row_of_resizing, row_of_resuming, row_of_weighing, rows_of_death
from compute_shares import LONG, MILLISECOND, REQUEST, SHORT, SLOW, WAITS, Tenant, points_off, row, run

_PAIRS: tuple[tuple[str, tuple[int, ...], tuple[str, ...], int], ...] = (
    ("30:70, 0.1 ms kernels", (300, 700), (SHORT,), 1),
    ("10:90, 0.1 ms kernels", (100, 900), (SHORT,), 1),
    ("4 x 25, 0.25 ms kernels", (250,) * 4, ("kernel=250000",), 1),
    ("8 x 12.5, 0.25 ms kernels", (125,) * 8, ("kernel=250000",), 1),
    ("30:70, 1 ms beside 0.1 ms", (300, 700), ("kernel=1000000", SHORT), 1),
    ("30:70, log-normal beside 0.1 ms, 4 s", (300, 700), ("kernel=200000 spread=lognormal", SHORT), 4),
    ("30:70, costs that vary tenfold", (300, 700), ("kernel=50000 spread=tenfold", SHORT), 1),
    ("30:70, costs that change tenfold, 2 s", (300, 700), ("kernel=20000 spread=regime", SHORT), 2),
    ("30:70, two streams", (300, 700), ("kernel=100000 streams=2", SHORT), 1),
    ("30:70, cooperative launches", (300, 700), ("kernel=100000 cooperative=1", SHORT), 1),
    ("30:70, graphs of 1 ms", (300, 700), ("kernel=100000 graph=10", SHORT), 1),
    ("30:70, 10 ms kernels, 10 s", (300, 700), ("kernel=10000000",), 10),
    ("30:70, graphs of 30 ms, 10 s", (300, 700), ("kernel=1000000 graph=30", SHORT), 10),
    ("30:70, 80 ms beside 0.1 ms, 10 s", (300, 700), (LONG, SHORT), 10),
    ("30:70, 80 ms kernels, 10 s", (300, 700), (LONG,), 10),
    ("30:70, launch and wait beside 0.1 ms", (300, 700), (WAITS, SHORT), 1),
    ("30:70, launch, wait and 20 us beside 0.1 ms", (300, 700), (f"{WAITS} think=20000", SHORT), 1),
    ("30:70, 5 us launched each 10 us beside 0.1 ms", (300, 700), (SLOW, SHORT), 1),
)
_CAPS = (100, 300, 500, 700, 900)
_PACED = (
    "wait",
    "each",
)  # in the name: the device waits for such a tenant, and its own pace may be less than its part


def main() -> int:
    holds = [_rows_of_pair(*one) for one in _PAIRS]
    holds += [_row_of_cap(weight, SHORT, 1) for weight in _CAPS]
    holds += [_row_of_cap(300, "kernel=10000000", 10)]
    rows: tuple[Callable[[], bool], ...] = (
        _row_of_eight_processes,
        _row_of_whole,
        _row_of_going,
        _row_of_coming,
        _rows_of_loop,
        _rows_of_request,
        rows_of_death,
        row_of_resizing,
        row_of_weighing,
        row_of_pausing,
        row_of_resuming,
    )
    holds += [row() for row in rows]
    return 0 if all(holds) else 1


# ---- parts of the device ----


def _rows_of_pair(name: str, parts: tuple[int, ...], words: tuple[str, ...], seconds: int) -> bool:
    seen = run([Tenant(part, words[min(at, len(words) - 1)]) for at, part in enumerate(parts)], seconds)
    off = max(map(abs, points_off(seen.answers, [part / 10 for part in parts])))
    paced = any(word in name for word in _PACED)
    return all(
        (
            row(f"{name}: share error", off, "points", 1),
            row(f"{name}: charged against true", seen.charge_off, "points", 1),
            row(f"{name}: busy", seen.busy, "%", 94 if paced else 98, least=True),
        )
    )


def _row_of_cap(weight: int, words: str, seconds: int) -> bool:
    off = abs(run([Tenant(weight, words, Policy.CAP)], seconds).busy - weight / 10)
    return row(f"cap of {weight / 10:g} % alone, {words}, {seconds} s: error", off, "points", 1)


def _row_of_eight_processes() -> bool:
    seen = run([Tenant(300, SHORT, processes=8), Tenant(700, SHORT)], 1)
    off = max(map(abs, points_off(seen.shares, [30, 70])))
    return row("30:70, 8 processes in the first share: share error", off, "points", 1)


def _row_of_whole() -> bool:
    alone, bare = (run([Tenant(1000, SHORT)], 1, governed=governed) for governed in (True, False))
    return row("share of 100 %: of what it has bare", 100 * alone.busy / bare.busy, "%", 99, least=True)


# ---- who goes, and who comes ----


def _row_of_going() -> bool:
    """The first ends after 300 ms: what the second lacks at the end of its part, and of all the rest."""
    seen = run([Tenant(500, f"{SHORT} end={300 * MILLISECOND}"), Tenant(500, SHORT)], 1)
    lacks = (seen.wall_ns - 150 * MILLISECOND - seen.shares[1]["true_ns"]) / MILLISECOND
    return row("idle share given away: what the other lacks", lacks, "ms", 10)


def _row_of_coming() -> bool:
    seen = run([Tenant(500, SHORT), Tenant(500, f"{SHORT} begin={300 * MILLISECOND}")], 1)
    lacks = ((seen.wall_ns - 300 * MILLISECOND) / 2 - seen.shares[1]["true_ns"]) / MILLISECOND
    return row("idle share taken back: what its owner lacks", lacks, "ms", 20)


# ---- waits ----


def _p99_ms(tenants: Sequence[Tenant], seconds: float, *, governed: bool = True) -> float:
    return float(run(tenants, seconds, governed=governed).answers[0]["p99_wait"]) / MILLISECOND


def _rows_of_waits(name: str, words: str, neighbour: str, seconds: float, goal: float) -> bool:
    both = [Tenant(300, words), Tenant(700, neighbour)]
    alone = _p99_ms([Tenant(300, words)], seconds)
    held, bare = _p99_ms(both, seconds), _p99_ms(both, seconds, governed=False)
    return all(
        (
            row(f"{name}: wait added at p99", held - alone, "ms", goal),
            row(f"{name}: the same, over that without a governor", held - bare, "ms", 1),
        )
    )


def _rows_of_loop() -> bool:
    name, gap = "launch and wait beside", f"{WAITS} think=20000"
    holds = [_rows_of_waits(f"{name} 0.1 ms kernels", WAITS, SHORT, 2, 1.5)]
    holds += [_rows_of_waits(f"{name} 1 ms kernels", WAITS, "kernel=1000000", 2, 1.5)]
    holds += [_rows_of_waits(f"{name} 80 ms kernels", WAITS, LONG, 6, 1.5)]  # a slice is 2 ms
    holds += [_rows_of_waits("launch, wait and 20 us beside 0.1 ms kernels", gap, SHORT, 2, 1.5)]
    return all(holds)


def _rows_of_request() -> bool:
    """The waits for the first kernels, which nobody knew, are three of several hundred."""
    name = "0.5 ms request each 20 ms beside"
    holds = [_rows_of_waits(f"{name} 80 ms kernels", REQUEST, LONG, 12, 3)]
    holds += [_rows_of_waits(f"{name} 0.1 ms kernels", REQUEST, SHORT, 4, 3)]
    return all(holds)


if __name__ == "__main__":
    sys.exit(main())

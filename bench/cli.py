"""What a call of ``aliquot`` costs, beside what the same machine needs for next to nothing.

CPU time is the child's user and system time (``wait4``), wall time the time until its end;
each is the minimum of 20 runs, taken in turns with what it is compared with, so that a
machine that slows down slows both. Usage: ``bench/cli.py [PATH-OF-ALIQUOT]``.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from row import print_row

_RUNS = 20
_NOTHING = (sys.executable, "-c", "pass")


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    wall_seconds: float


def main() -> int:
    aliquot = sys.argv[1] if len(sys.argv) > 1 else str(Path(sys.executable).with_name("aliquot"))
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as folder:
        environment = _own_machine(Path(folder))
        made = _succeeds((aliquot, "softgpu", "create", "T4"), environment)
        if not made:
            print(f"{aliquot} softgpu create T4 failed", file=sys.stderr)
        try:
            holds = [
                _cpu_row("aliquot --version", (aliquot, "--version"), 4, environment, ready=True),
                _cpu_row("aliquot gpus", (aliquot, "gpus"), 25, environment, ready=made),
                _run_row(aliquot, environment, ready=made),
            ]
        finally:
            if made:
                _succeeds((aliquot, "softgpu", "remove", "all"), environment)
    return 0 if all(holds) else 1


def _own_machine(folder: Path) -> dict[str, str]:
    """An environment whose book and software GPU are this bench's alone."""
    return dict(os.environ) | {
        "ALIQUOT_STATE_DIR": str(folder / "state"),
        "ALIQUOT_RUNTIME_DIR": str(folder / "run"),
    }


def _cpu_row(
    figure: str, command: Sequence[str], times: int, environment: Mapping[str, str], *, ready: bool
) -> bool:
    ratio = math.nan
    if ready:
        ours, nothing = _least(command, _NOTHING, environment)
        ratio = ours.cpu_seconds / nothing.cpu_seconds
    holds = ratio <= times
    print_row(f"{figure}: CPU time over python -c pass", ratio, "x", f"<= {times} x", holds)
    return holds


def _run_row(aliquot: str, environment: Mapping[str, str], *, ready: bool) -> bool:
    added = math.nan
    if ready:
        command = (aliquot, "run", "--gpu", "1GiB", "--", "true")
        ours, nothing = _least(command, ("true",), environment)
        added = (ours.wall_seconds - nothing.wall_seconds) * 1000
    holds = added <= 250
    print_row("aliquot run --gpu 1GiB -- true: wall time over true", added, "ms", "<= 250 ms", holds)
    return holds


def _least(first: Sequence[str], second: Sequence[str], environment: Mapping[str, str]) -> tuple[Cost, Cost]:
    """The least CPU and the least wall time of both, NaN where a run of either failed."""
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(_RUNS):
        for command, found in zip((first, second), costs, strict=True):
            cost = _cost(command, environment)
            if cost is None:
                return Cost(math.nan, math.nan), Cost(math.nan, math.nan)
            found.append(cost)
    return _minimum(costs[0]), _minimum(costs[1])


def _minimum(costs: Sequence[Cost]) -> Cost:
    return Cost(min(cost.cpu_seconds for cost in costs), min(cost.wall_seconds for cost in costs))


def _cost(command: Sequence[str], environment: Mapping[str, str]) -> Cost | None:
    """Of one run; ``None`` where it failed, since a command that fails early is fast."""
    begun = time.perf_counter()
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return None
    assert process.stderr is not None
    talk = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        print(f"{' '.join(command)}: exit {process.returncode}: {talk.decode().strip()}", file=sys.stderr)
        return None
    return Cost(used.ru_utime + used.ru_stime, wall)


def _succeeds(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    try:
        return (
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode == 0
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return False


if __name__ == "__main__":
    sys.exit(main())

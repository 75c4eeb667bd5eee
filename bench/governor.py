"""What the governor costs: a call, an allocation, a start; over the same straight into a driver.

The driver is one that does nothing, so that the difference is all there is to see: straight and through in
turns, within one process for calls, and in processes in turns for a start. Of many medians the best counts:
what else the machine does can only add. With HAMI=/path/libvgpu.so, HAMi-core's follow: governor_peer.py.
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from aliquot.model import GIB, Bytes, GpuUuid, Share, Thousandths
from row import print_row
from share_folder import make_share

_HERE = Path(__file__).resolve().parent
_DEVICE = GpuUuid("GPU-11111111-1111-1111-1111-111111111111")
_FIGURES = (
    ("query", "pass-through call, added", "ns", 2.0),
    ("launch", "launch inside an open batch, median added", "ns", 30.0),
    ("launch p99", "launch inside an open batch, p99 added", "ns", 150.0),
    ("batch", "launch that ends a batch and opens the next, added", "ns", math.inf),
    ("pair", "allocation and free, added", "ns", 100.0),
    ("pair 256", "allocation and free beside 255 processes, added", "ns", 100.0),
    ("start", "library load and first cuInit, added", "ms", 5.0),
    ("resident", "resident memory, added", "MiB", 4.0),
)
_STARTS = 31


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as folder:
        measured = _measure(Path(folder))
    holds = True
    for key, figure, unit, goal in _FIGURES:
        value = measured.get(key, math.nan)
        print_row(figure, value, unit, "reported" if math.isinf(goal) else f"≤{goal:g} {unit}", value <= goal)
        holds = holds and value <= goal
    if os.environ.get("HAMI"):
        import governor_peer

        governor_peer.main()
    return 0 if holds else 1


def _measure(folder: Path) -> dict[str, float]:
    share = folder / "share"
    make_share(share, Share(_DEVICE, Bytes(GIB), Thousandths(100)), gpus={})
    driver = share / "driver" / "libcuda.so.1"
    governor = share / "lib" / "libcuda.so.1"
    calls, start = folder / "governor_calls", folder / "governor_start"
    _compile(_HERE / "governor_driver.c", driver, "-shared", "-fPIC", "-Wl,-Bsymbolic")
    _compile(_HERE / "governor_calls.c", calls, "-ldl", "-lpthread")
    _compile(_HERE / "governor_start.c", start, "-ldl")
    measured = _run(calls, driver, governor)
    crowded = _run(calls, driver, governor, "255")
    measured |= {f"{name} 256": value for name, value in crowded.items()}
    return measured | _starts(start, driver, governor)


def _run(program: Path, *arguments: Path | str) -> dict[str, float]:
    """Its lines: a name, and a figure. Empty where it failed."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        return {}
    return {name: float(value) for name, value in (line.split("\t") for line in done.stdout.splitlines())}


def _starts(program: Path, driver: Path, governor: Path) -> dict[str, float]:
    """Milliseconds and MiB that the governor adds to a start: fastest of each, in turns."""
    runs: dict[Path, list[tuple[float, int]]] = {driver: [], governor: []}
    for _ in range(_STARTS):
        for library, seen in runs.items():
            done = subprocess.run([program, library], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(done.stderr, file=sys.stderr, end="")
                return {}
            took, resident = done.stdout.split()
            seen.append((float(took), int(resident)))
    straight, through = (
        (min(took for took, _ in seen), median(kib for _, kib in seen)) for seen in runs.values()
    )
    return {"start": through[0] - straight[0], "resident": (through[1] - straight[1]) / 1024}


def _compile(source: Path, target: Path, *options: str) -> None:
    subprocess.run(["cc", "-std=gnu11", "-O2", str(source), "-o", str(target), *options], check=True)


if __name__ == "__main__":
    sys.exit(main())

"""What the governor costs a call: nanoseconds over the same call straight into a driver.

The driver is one that does nothing, so that the difference is all there is to see; the median of
101 rounds, straight and through in turns, within one process.
"""

import math
import subprocess
import sys
import tempfile
from pathlib import Path

from aliquot.enforcement import create_ledger, governor_folder, write_limits
from aliquot.model import (
    GIB,
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
from row import print_row

_HERE = Path(__file__).resolve().parent
_DEVICE = GpuUuid("GPU-11111111-1111-1111-1111-111111111111")
_FIGURES = (
    ("query", "pass-through call, added", 5.0),
    ("launch", "pass-through launch of 11 arguments, added", 5.0),
    ("pair", "allocation and free, added", 200.0),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as folder:
        measured = _measure(Path(folder))
    holds = True
    for key, figure, goal in _FIGURES:
        value = measured.get(key, math.nan)
        print_row(figure, value, "ns", f"≤{goal:g} ns", value <= goal)
        holds = holds and value <= goal
    return 0 if holds else 1


def _measure(folder: Path) -> dict[str, float]:
    share = folder / "share"
    _make_share(share)
    driver = share / "driver" / "libcuda.so.1"
    program = folder / "governor_calls"
    _compile(_HERE / "governor_driver.c", driver, "-shared", "-fPIC", "-Wl,-Bsymbolic")
    _compile(_HERE / "governor_calls.c", program, "-ldl")
    done = subprocess.run(
        [program, driver, share / "lib" / "libcuda.so.1"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        return {}
    return {name: float(value) for name, value in (line.split("\t") for line in done.stdout.splitlines())}


def _make_share(share: Path) -> None:
    for name in ("driver", "lib"):
        (share / name).mkdir(parents=True)
    lease = Lease(
        id=LeaseId("bench"),
        state=LeaseState.HELD,
        ask="1GiB",
        shares=(Share(_DEVICE, Bytes(GIB), Thousandths(100)),),
        policy=Policy.FAIR,
        isolation=Isolation.ADVISORY,
        holder=NobodyHolder(),
        user="bench",
        command=None,
        created_at=0,
    )
    write_limits(share / "limits", lease=lease, gpus={})
    create_ledger(share / "ledger", devices=1)
    for library in governor_folder().iterdir():
        (share / "lib" / library.name).symlink_to(library)


def _compile(source: Path, target: Path, *options: str) -> None:
    subprocess.run(["cc", "-std=gnu11", "-O2", str(source), "-o", str(target), *options], check=True)


if __name__ == "__main__":
    sys.exit(main())

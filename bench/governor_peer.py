"""The governor beside HAMi-core: the same calls, in the same run, over the same software GPU.

    make bench NAME=governor HAMI=/path/libvgpu.so     after the governor's own figures; or this one alone

What each adds to a call is what it takes through it less what it takes straight, fastest of rounds in turns:
what else the machine does can only add. What each holds is what `aliquot-verify` finds: ways by which more is
had than the limit. The peer's library must export its functions (CMAKE_BUILD_TYPE=Debug does that; without it
they are hidden, and nothing is held). Not compared: its limit of the time, which goes by the wall clock and
samples of utilisation, where a software GPU on which a limit can be measured has a clock of its own.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aliquot import softgpu
from aliquot.enforcement import PROGRAM, program_folder
from aliquot.model import MIB, Bytes, Gpu, GpuUuid, Share, Thousandths, Vendor
from share_folder import make_share

_HERE = Path(__file__).resolve().parent
_LIMIT = 256 * MIB
_ROUNDS = 9
_FIGURES = (
    ("query", "pass-through call, added", "ns"),
    ("info", "free and total memory, added", "ns"),
    ("launch", "launch, added", "ns"),
    ("pair", "allocation and free, added", "ns"),
    ("start", "library load and first cuInit, added", "ms"),
)


@dataclass(frozen=True)
class Way:
    """How a program comes to its driver: its environment, and the library that it opens by path."""

    environment: Mapping[str, str]
    library: Path


def main() -> int:
    peer = os.environ.get("HAMI", "")
    if not Path(peer).is_file():
        print("usage: make bench NAME=governor HAMI=/path/libvgpu.so", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as name:
        folder = Path(name)
        uuid, context, ways = _make(folder, Path(peer).resolve())
        _print("figure", "governor", "HAMi-core")
        taken = _taken(folder, ways)
        for key, figure, unit in _FIGURES:
            straight = taken["straight"].get(key, math.nan)
            _print(
                figure,
                *(
                    f"{taken[way].get(key, math.nan) - straight:.3g} {unit}"
                    for way in ways
                    if way != "straight"
                ),
            )
        found = {way: _tried(ways[way], uuid, context) for way in ways if way != "straight"}
        for attempt in found["governor"]:
            _print(f"verify: {attempt}", *(found[way].get(attempt, "not run") for way in found))
    return 0


def _print(*cells: str) -> None:
    print(*cells, sep="\t", flush=True)


def _make(folder: Path, peer: Path) -> tuple[str, int, dict[str, Way]]:
    """A software GPU, a share of it, and the three ways; UUID and context bytes of the device."""
    root = folder / "state" / "softgpu"
    root.parent.mkdir()
    (card,) = softgpu.create(root, profile="tiny", count=1, at=1, entropy=lambda: 1)
    lines = (root / card.uuid / "device").read_text().splitlines()
    context = int(next(line.split()[1] for line in lines if line.startswith("context_bytes ")))
    driver = softgpu.library_folder()
    share = folder / "share"
    uuid = GpuUuid(card.uuid)
    gpu = Gpu(uuid, 0, Vendor.SOFTWARE, "tiny", "0000:00:00.0", context_bytes=Bytes(context))
    make_share(share, Share(uuid, Bytes(_LIMIT), Thousandths(500)), gpus={uuid: gpu})
    for library in driver.iterdir():
        (share / "driver" / library.name).symlink_to(library)
    (share / "driver" / "softgpu").mkdir()
    (share / "driver" / "softgpu" / uuid).symlink_to(root / uuid)
    base = {"PATH": os.environ["PATH"], "ALIQUOT_STATE_DIR": str(folder / "state"), "TMPDIR": str(folder)}
    straight = base | {"LD_LIBRARY_PATH": str(driver)}
    hooked = straight | {
        "LD_PRELOAD": str(peer),
        "CUDA_REDIRECT": str(peer),
        "CUDA_DEVICE_MEMORY_LIMIT": f"{_LIMIT // MIB}m",
        "CUDA_DEVICE_SM_LIMIT": "50",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": str(folder / "peer.cache"),
        "LIBCUDA_LOG_LEVEL": "0",
    }
    ways = {
        "straight": Way(straight, driver / "libcuda.so.1"),
        "governor": Way(base | {"LD_LIBRARY_PATH": str(share / "lib")}, share / "lib" / "libcuda.so.1"),
        "HAMi-core": Way(hooked, driver / "libcuda.so.1"),
    }
    return card.uuid, context, ways


def _taken(folder: Path, ways: Mapping[str, Way]) -> dict[str, dict[str, float]]:
    """What each figure takes by each way, at best."""
    calls, start = folder / "peer_calls", folder / "governor_start"
    for program in (calls, start):
        source = _HERE / f"{program.name}.c"
        subprocess.run(["cc", "-std=gnu11", "-O2", source, "-o", program, "-ldl"], check=True)
    best: dict[str, dict[str, float]] = {name: {} for name in ways}
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            said = _run([calls], way) + "start\t" + _run([start, way.library], way)
            for line in said.splitlines():
                key, took, *_ = line.split("\t")
                best[name][key] = min(best[name].get(key, math.inf), float(took))
    return best


def _run(command: list[Path], way: Way) -> str:
    done = subprocess.run(command, env=dict(way.environment), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, end="")
        raise SystemExit(f"{command[0].name} does not run: exit {done.returncode}")
    return done.stdout


def _tried(way: Way, uuid: str, context: int) -> dict[str, str]:
    """What came of each attempt on memory, and how much was had."""
    program = program_folder() / PROGRAM
    done = subprocess.run(
        [program, f"--device={uuid}={_LIMIT}={context}"],
        env=dict(way.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    found = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if row["limitBytes"]:
            had = f"{row['grantedBytes'] / MIB:.0f} of {_LIMIT // MIB} MiB"
            found[row["attempt"]] = (
                f"{row['outcome']}, {had}" if row["grantedBytes"] else f"{row['outcome']}: {row['note']}"
            )
    return found


if __name__ == "__main__":
    sys.exit(main())

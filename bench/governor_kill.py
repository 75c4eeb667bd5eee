"""What a share's account loses while its processes are killed: a million random allocations and frees by
eight processes at the limit, any of which is killed at any moment and started anew.

Afterwards all are killed. What is then not to be had is drift; and how long it takes until all of it is,
counts from the last kill. Then eight race at the limit unharmed, and the driver says what it handed out.
"""

import mmap
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.native.governor.shares import ROOT, UUIDS, ShareOnDisk, a_lease, build

from aliquot.model import MIB, Bytes
from row import print_row

_PROCESSES = 8
_OPERATIONS = 1_000_000
_LIMIT = 100 * MIB


def main() -> int:
    built = build(ROOT / "build" / "tests-governor")
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as folder:
        lease = a_lease({UUIDS[0]: Bytes(_LIMIT)})
        share = ShareOnDisk(Path(folder) / "share", built, lease, None)
        operations, kills = _churn(share, Path(folder) / "operations")
        begun = time.perf_counter()
        lost = int(share.run(_TAKE_ALL))
        took = time.perf_counter() - begun
        racing = ShareOnDisk(Path(folder) / "racing", built, lease, None)
        over = _race(racing)
    rows = (
        (
            "operations beside which processes were killed",
            operations,
            "",
            f"≥{_OPERATIONS}",
            operations >= _OPERATIONS,
        ),
        ("processes killed", kills, "", "≥100", kills >= 100),
        ("bytes lost", lost, "B", "≤0 B", lost == 0),
        ("until all is to be had again, a start included", took, "s", "≤1 s", took <= 1),
        ("bytes over the limit, 8 processes racing", over, "B", "≤0 B", over <= 0),
    )
    for row in rows:
        print_row(*row)
    return 0 if all(row[-1] for row in rows) else 1


# Smaller and smaller where all does not fit: what lacks in the end is lost.
_TAKE_ALL = f"""
begin()
lost = 0
while alloc({_LIMIT} - lost)[0] != 0:
    lost += 1 << 12
say(lost)
"""


def _race(share: ShareOnDisk) -> int:
    """By the driver's own count, which is true while nobody is killed."""
    command = [str(share.built.programs / "tenant"), str(share.cuda), "race", "2"]
    racers = [
        subprocess.Popen([*command, str(seed)], env=share.environment(), stdout=subprocess.DEVNULL)
        for seed in range(_PROCESSES)
    ]
    failed = [racer for racer in racers if racer.wait() != 0]
    assert not failed, "a racer failed"
    return share.most_really_used() - _LIMIT


def _churn(share: ShareOnDisk, counter: Path) -> tuple[int, int]:
    """(operations done, processes killed)."""
    chance = random.Random(7)
    counter.write_bytes(bytes(mmap.PAGESIZE))
    running: list[subprocess.Popen[str]] = []
    kills = 0
    while (done := int.from_bytes(counter.read_bytes()[:8], "little")) < _OPERATIONS or kills < 100:
        while len(running) < _PROCESSES:
            running.append(_start(share, counter, seed=kills + len(running)))
        time.sleep(chance.random() * 0.05)
        victims = chance.sample(running, chance.randint(1, _PROCESSES))
        kills += _kill(victims)
        running = [process for process in running if process not in victims]
    return done, kills + _kill(running)


def _start(share: ShareOnDisk, counter: Path, *, seed: int) -> "subprocess.Popen[str]":
    command = [str(share.built.programs / "tenant"), str(share.cuda), "count", str(counter), str(seed)]
    process = subprocess.Popen(command, env=share.environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _kill(victims: "list[subprocess.Popen[str]]") -> int:
    for process in victims:
        process.kill()
    for process in victims:
        process.communicate()
    return len(victims)


if __name__ == "__main__":
    sys.exit(main())

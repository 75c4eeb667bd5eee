"""The pure core of turns, without a device: one program that is several processes, and its own clock."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.native.governor.shares import HERE, ROOT

SOURCES = ("turns.c", "seats.c", "neighbours.c", "bucket.c", "measure.c", "estimate.c")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Under the sanitizers, so that an index out of the page ends it."""
    made = tmp_path_factory.mktemp("turns") / "turns_alone"
    native = ROOT / "native"
    sources = [str(HERE / "turns_alone.c"), *(str(native / "governor" / name) for name in SOURCES)]
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    flags += ["-fno-sanitize-recover=all", f"-I{native / 'governor'}", f"-I{native / 'abi'}"]
    subprocess.run(["cc", *flags, *sources, "-o", str(made)], check=True)
    return made


def run(program: Path, *words: object) -> list[int]:
    command = [str(program), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (done.returncode, done.stderr) == (0, "")
    return [int(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("weights", [(300, 700), (100, 900), (250, 250, 250, 250), (125,) * 8, (50, 950)])
def test_each_is_charged_its_part(program: Path, weights: tuple[int, ...]) -> None:
    charged = run(program, "parts", 150_000, *weights)  # three seconds
    whole = sum(charged)
    assert whole >= 0.97 * 3_000_000
    for had, weight in zip(charged, weights, strict=True):
        assert 100 * had / whole == pytest.approx(weight / 10, abs=1)


@pytest.mark.parametrize("seed", range(8))
def test_after_nonsense_both_go_on_with_their_parts(program: Path, seed: int) -> None:
    charged = run(program, "nonsense", 20_000, seed)  # two seconds after it
    assert sum(charged) >= 0.9 * 2_000_000
    assert charged[0] / sum(charged) == pytest.approx(0.5, abs=0.1)


def test_a_holder_that_is_never_heard_of_again_loses_its_turn(program: Path) -> None:
    (waited,) = run(program, "stopped")
    assert waited <= 2_000

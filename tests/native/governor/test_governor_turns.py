"""The pure core of turns, without a device: one program that is several processes, and its own clock."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.native.governor.shares import HERE, ROOT

SOURCES = ("turns.c", "seats.c", "neighbours.c", "bucket.c", "measure.c", "estimate.c")


def built(folder: Path, name: str, sanitizers: str) -> Path:
    """Under sanitizers, so that an index out of the page, or a word that is raced for, ends it."""
    made = folder / f"{name}-{sanitizers}"
    native = ROOT / "native"
    sources = [str(HERE / f"{name}.c"), *(str(native / "governor" / source) for source in SOURCES)]
    flags = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-fsanitize={sanitizers}"]
    flags += ["-fno-sanitize-recover=all", f"-I{native / 'governor'}", f"-I{native / 'abi'}", "-lpthread"]
    subprocess.run(["cc", *flags, *sources, "-o", str(made)], check=True)
    return made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("turns"), "turns_alone", "address,undefined")


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


@pytest.mark.parametrize("weights", [(300, 700), (700, 300), (100, 900)])
def test_who_waits_for_each_launch_has_its_part_and_waits_little(
    program: Path, weights: tuple[int, int]
) -> None:
    mine, other, longest = run(program, "hurried", *weights)
    assert 100 * mine / (mine + other) == pytest.approx(weights[0] / 10, abs=1)
    assert longest <= 1_500


def test_beside_others_turns_one_has_no_more_than_its_part(program: Path) -> None:
    mine, other = run(program, "lane")
    assert mine == pytest.approx(other, abs=5_000)
    assert other >= 0.45 * 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_no_word_of_the_page_is_raced_for_and_each_has_turns(tmp_path: Path, sanitizers: str) -> None:
    (least,) = run(built(tmp_path, "turns_race", sanitizers), 4, 20_000, 0)
    assert least > 0
    run(
        built(tmp_path, "turns_race", sanitizers), 4, 20_000, 2
    )  # nonsense between them: no more than silence

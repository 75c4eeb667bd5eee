"""The total of a share: exact at every instruction at which a process may die, whoever races."""

import subprocess
from pathlib import Path

import pytest
from tests.native.governor.shares import ROOT, Built, ShareOnDisk
from tests.native.governor.test_governor_life import finish, tenant


def _built(
    folder: Path, *options: str, name: str = "total_steps", parts: tuple[str, ...] = ("total",)
) -> Path:
    program = folder / name
    folders = [f"-I{ROOT / 'native' / name}" for name in ("governor", "abi")]
    sources = [
        ROOT / "tests/native/governor" / f"{name}.c",
        *(ROOT / f"native/governor/{part}.c" for part in parts),
    ]
    # -z now: the look-up of a function at its first call is hundreds of instructions to be killed at.
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wl,-z,now"]
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-O2",
            "-g",
            *warnings,
            *options,
            *folders,
            *sources,
            "-lpthread",
            "-o",
            program,
        ],
        check=True,
    )
    return program


def _run(program: Path, *arguments: str) -> int:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


def test_killed_at_any_instruction_of_a_step_an_account_and_the_total_agree(tmp_path: Path) -> None:
    assert _run(_built(tmp_path), "kill") > 100


@pytest.mark.parametrize(
    ("scenario", "stride"),
    [("publish", 199), ("let-go", 11)]
    + [pytest.param(name, 1, marks=pytest.mark.slow) for name in ("withdraw", "pass-on", "let-go")]
    + [pytest.param("in-file", 41, marks=pytest.mark.slow)],
)
def test_killed_while_it_exports_or_lets_go_each_byte_is_charged_once_or_not_at_all(
    tmp_path: Path, scenario: str, stride: int
) -> None:
    program = _built(
        tmp_path, "-D_GNU_SOURCE", name="exports_steps", parts=("exports", "descriptors", "total", "locks")
    )
    assert _run(program, scenario, str(stride)) > 300 // stride - 1


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_accounts_at_the_limit_never_pass_it_and_no_word_is_raced_for(tmp_path: Path, sanitizer: str) -> None:
    assert _run(_built(tmp_path, f"-fsanitize={sanitizer}"), "race", "8", "5000") > 1000


@pytest.mark.parametrize("stride", [97, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_at_any_instruction_a_process_leaves_not_a_byte(
    share: ShareOnDisk, built: Built, stride: int
) -> None:
    """All the way of an allocation and a free; the neighbour can then have all that is left."""
    instructions, lost = finish(tenant(share, built, "steps", str(stride))).split()
    assert int(instructions) > 500 // stride
    assert int(lost) == 0

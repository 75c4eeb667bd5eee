"""The program that tries to break a share finds every hole where nothing holds one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aliquot import enforcement, softgpu
from aliquot.model import GIB

PROGRAM = enforcement.program_folder() / enforcement.PROGRAM
LIMIT = 2 * GIB
NOTHING_STOPS = {
    "allocate",
    "pitched",
    "managed",
    "array",
    "array-3d",
    "mipmap",
    "virtual",
    "virtual-mapped",
    "async",
    "async-thread",
    "pool",
    "graph-node",
    "graph-captured",
    "contexts",
    "modules",
    "heap",
    "double-free",
    "race",
    "threads",
    "fork",
    "exec",
    "import",
    "mail",
    "get-proc-address",
    "deepbind",
    "loaded-twice",
}


@pytest.fixture
def cards(tmp_path: Path) -> dict[str, str]:
    """An environment with two software T4 and no share; UUID and context bytes of the first."""
    root = tmp_path / "state" / "softgpu"
    root.parent.mkdir()
    numbers = iter(range(1, 9))
    first, _ = softgpu.create(root, profile="T4", count=2, at=1, entropy=lambda: next(numbers))
    library = softgpu.library_folder()
    return {
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": str(library),
        "ALIQUOT_STATE_DIR": str(tmp_path / "state"),
        "UUID": first.uuid,
        "CONTEXT": _context_bytes(root / first.uuid),
    }


def _context_bytes(device: Path) -> str:
    fields = dict(line.split(" ", 1) for line in (device / "device").read_text().splitlines() if " " in line)
    return fields["context_bytes"]


def tried(environ: dict[str, str], *words: str) -> dict[str, dict[str, Any]]:
    device = f"--device={environ['UUID']}={LIMIT}={environ['CONTEXT']}"
    done = subprocess.run(
        [PROGRAM, *words, device], env=environ, text=True, capture_output=True, timeout=120, check=False
    )
    assert done.stderr == ""
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    failed = any(row["outcome"] in ("hole", "broken") for row in rows)
    assert done.returncode == (7 if failed else 0)
    return {row["attempt"]: row for row in rows}


def test_without_a_share_everything_is_a_hole(cards: dict[str, str]) -> None:
    rows = tried(cards)
    holes = {name for name, row in rows.items() if row["outcome"] == "hole"}
    assert holes >= NOTHING_STOPS | {"devices"}
    # `static` needs a static C library; which devices and settings are refused is the card's own matter here.
    assert holes - NOTHING_STOPS <= {"static", "devices", "visible-devices", "device-order", "settings"}
    for name in NOTHING_STOPS:
        assert rows[name]["grantedBytes"] > rows[name]["limitBytes"] == LIMIT
    assert rows["devices"]["note"].startswith("2 of 1 devices seen, 1 that are not the share's")
    assert not any(row["outcome"] == "broken" for row in rows.values())


def test_one_attempt_alone_and_without_a_driver(cards: dict[str, str], tmp_path: Path) -> None:
    rows = tried(cards | {"LD_LIBRARY_PATH": str(tmp_path)}, "--only=library-path-unset")
    assert [(row["outcome"], row["note"]) for row in rows.values()] == [("held", "no driver is found")]


def test_nothing_granted_proves_nothing(cards: dict[str, str], tmp_path: Path) -> None:
    rows = tried(cards | {"LD_LIBRARY_PATH": str(tmp_path)}, "--only=allocate")
    assert rows["allocate"]["outcome"] == "broken"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--device=GPU-1",),
        ("--device=GPU-1=0",),
        ("--device=GPU-1=10x",),
        ("--only=nothing", "--device=GPU-1=10"),
        ("--device=" + "G" * 70 + "=10",),
        ("--what",),
        ("--device=a=1",) * 17,
    ],
)
def test_wrong_arguments_are_refused(words: tuple[str, ...]) -> None:
    done = subprocess.run([PROGRAM, *words], text=True, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: aliquot-verify")


def test_it_removes_itself_where_there_is_no_rm(tmp_path: Path) -> None:
    for source in PROGRAM.parent.iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
        (tmp_path / source.name).chmod(0o755)
    subprocess.run([tmp_path / PROGRAM.name, "--remove"], check=False, timeout=20)
    assert list(tmp_path.iterdir()) == []

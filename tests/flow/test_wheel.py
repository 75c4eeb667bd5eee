"""A wheel carries the native parts and works from another folder, without the checkout."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.flow.box import TENANT, Box, Tenant

_CHECKOUT = Path(__file__).resolve().parents[2]


def _run(*words: str, **settings: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(words, text=True, capture_output=True, check=False, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return done  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_wheel_holds_a_share_from_another_folder(tmp_path: Path, box: Box) -> None:
    source, wheels, venv = tmp_path / "source", tmp_path / "wheels", tmp_path / "venv"
    _run("git", "clone", "-q", str(_CHECKOUT), str(source))
    _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(source))
    (wheel,) = wheels.iterdir()
    _run(sys.executable, "-m", "venv", str(venv))
    _run(str(venv / "bin/pip"), "install", "-q", str(wheel))
    aliquot = str(venv / "bin/aliquot")

    for words in (("version",), ("softgpu", "create", "T4"), ("gpus",), ("doctor", "--where", "ok=no")):
        _run(aliquot, *words, cwd=tmp_path, env=box.environ)
    tenant = Tenant([aliquot, "run", "--gpu", "1GiB", "--", sys.executable, str(TENANT)], box.environ)
    assert tenant("see")["total"] == 1 << 30
    assert tenant("add")["right"]
    assert tenant.end() == 0
    verify = (aliquot, "verify", "1GiB", "-o", "jsonl")
    tried = subprocess.run(verify, text=True, capture_output=True, check=False, cwd=tmp_path, env=box.environ)
    outcomes = {row["attempt"]: row["outcome"] for row in map(json.loads, tried.stdout.splitlines())}
    assert outcomes["allocate"] == outcomes["race"] == "held", tried.stderr

"""Native parts built in a folder that stays, by whichever of pytest-xdist's workers comes first."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def cmake_build(folder: Path, target: str, options: Sequence[str] = ()) -> None:
    """Bring ``target`` up to date in ``folder``, configured with ``options`` if it is new. One at a time: two
    builds of one folder remove each other's archives.

    Raises AssertionError with what cmake printed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    configure = ["cmake", "--fresh", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja"]
    configure += [f"-DPython3_EXECUTABLE={sys.executable}", *options]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build.ninja").exists():
            _run(configure)
        _run(["cmake", "--build", str(folder), "--target", target])


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr

"""One machine as a user at its shell has it, and a program in one of its shares."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.starting import starter

TENANT = Path(__file__).parent / "programs" / "tenant.py"


class Tenant:
    """The program ``tenant.py``, spoken to over its pipes."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            argv,
            env=environ,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.pid: int = self._answer()["pid"]

    def __call__(self, verb: str, *arguments: object) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join([verb, *map(str, arguments)]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, said = self.process.communicate()
            raise AssertionError(f"the tenant ended with {self.process.returncode}: {said}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> int:
        """Close its stdin, wait, give its exit code."""
        self.process.communicate(timeout=30)
        return self.process.returncode


class Box:
    """One machine as a user at its shell has it."""

    def __init__(self, folder: Path) -> None:
        self.state, self.runtime = folder / "state", folder / "run"
        self.environ = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("ALIQUOT", "CUDA", "LD_"))
            },
            "ALIQUOT_STATE_DIR": str(self.state),
            "ALIQUOT_RUNTIME_DIR": str(self.runtime),
            "NO_COLOR": "1",
        }

    def aliquot(self, *words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        return starter().run(words, env=self.environ, **settings)

    def items(self, *words: str) -> list[dict[str, Any]]:
        """The items of a list command, as its JSON has them."""
        done = self.aliquot(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
        return found

    @contextmanager
    def tenant(self, spec: str, *options: str) -> Iterator[Tenant]:
        words = [
            sys.executable,
            "-m",
            "aliquot",
            "run",
            "--gpu",
            spec,
            *options,
            "--",
            sys.executable,
            str(TENANT),
        ]
        tenant = Tenant(words, self.environ)
        try:
            yield tenant
        finally:
            for pipe in (tenant.process.stdin, tenant.process.stdout, tenant.process.stderr):
                if pipe is not None:
                    pipe.close()
            tenant.process.wait(timeout=30)

    def eventually(self, holds: Callable[[], bool], *, within: float) -> float:
        """Seconds until ``holds``; fails after ``within``. For what the machine does by itself."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < within, f"not within {within} s"
        return time.monotonic() - began

    def share_folders(self) -> list[str]:
        shares = self.runtime / "shares"
        return sorted(path.name for path in shares.iterdir()) if shares.exists() else []

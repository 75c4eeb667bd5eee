"""docs/softgpu.md says what is so: its counted parts are those of the build and of the list."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.numba_suite.running import ROOT


@pytest.mark.slow
def test_what_the_book_counts_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "generate_softgpu_facts.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"`make generate` brings docs/softgpu.md up to date\n{done.stderr}"

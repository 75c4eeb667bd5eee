"""What a terminal gets: 80 columns, and colour only where it is wanted."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

_TABLE = """
from aliquot.cli.output.choices import Choice, show_list
from aliquot.cli.views.gpus import GPUS, gpu_rows
from aliquot.model import *
gpus = tuple(
    Gpu(
        uuid=GpuUuid(f"GPU-{index}f3a12bc-0000-4000-8000-000000000000"),
        index=index,
        vendor=Vendor.NVIDIA,
        name="NVIDIA H100 80GB HBM3",
        pci_id="0000:01:00.0",
        memory=Bytes(80 * GIB),
        outside_memory=Bytes(0),
        health=Health(HealthState.HEALTHY),
    )
    for index in range(2)
)
show_list(GPUS, gpu_rows(Snapshot(Node("box"), gpus), ()), Choice())
"""


@contextmanager
def _terminal(columns: int) -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)


def _shown(code: str, env: Mapping[str, str], *, columns: int = 80) -> str:
    """What a process that runs ``code`` shows on a terminal of so many columns."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm", **env}
    with _terminal(columns) as (ours, theirs):
        process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end of a terminal closes with EIO
                break
            if not part:
                break
            shown += part
        assert process.wait(30) == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 100])
def test_a_table_fits_the_terminal_that_it_is_shown_on(columns: int) -> None:
    lines = _shown(_TABLE, {"NO_COLOR": "1"}, columns=columns).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= columns
    assert lines[1].split()[0] == "0"


def test_a_wide_table_is_stacked_on_a_terminal_that_is_too_narrow_for_it() -> None:
    wide = _TABLE.replace("Choice()", 'Choice(form="wide")')
    lines = _shown(wide, {"NO_COLOR": "1"}, columns=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[1] for line in lines if line.startswith("GPU ")] == ["0", "1"]
    assert len(_shown(wide, {"NO_COLOR": "1"}, columns=400).splitlines()) == 3


def test_colour_is_for_terminals_that_want_it() -> None:
    assert "\x1b[1mGPU" in _shown(_TABLE, {})
    assert "\x1b[1mGPU" in _shown(_TABLE, {"NO_COLOR": ""})
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
        assert "\x1b" not in _shown(_TABLE, env)


def test_a_pipe_gets_neither_colour_nor_cuts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TABLE],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "\x1b" not in done.stdout
    assert "H100 80GB HBM3" in done.stdout
    assert "UUID" in done.stdout


def test_an_error_on_a_terminal_has_a_red_cross_and_its_code() -> None:
    code = "from aliquot.cli.program import invoke; invoke(['gpus', '--nothing'])"
    first = _shown(code, {}).splitlines()[0]
    assert first.startswith("\x1b[31m✗\x1b[0m No option --nothing")
    assert first.endswith("\x1b[2m[bad-usage]\x1b[0m")

"""Unmodified monitors on software GPUs, while a kernel runs: nvitop and nvtop on a real terminal, and
nvitop's exporter as Prometheus reads it. What they show is compared with what the test's program holds."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

pytestmark = pytest.mark.slow

SECONDS = 20
"""The longest that anything may take here; all of it shows within two."""
HELD = 64 * MIB
CONTEXT = 20 * MIB
BOARD = {"pcie_generation": 4, "pcie_width": 16, "bar1_bytes": 1 << 36, "fans": 2}


@pytest.fixture
def busy(box: Box) -> Iterator[int]:
    """The pid of a program that holds memory and launches kernels one after another, on the second GPU."""
    box.add_device(bus=0x10, name="Tesla T4 (software)", **BOARD)
    box.add_device(bus=0x20, name="NVIDIA L4", **BOARD)
    program = box.start("hold_and_spin.py", "1", str(HELD), "300000")
    first_answer(program)
    yield program.pid
    assert program.poll() is None, "it ran all the while"


def screen(box: Box, python: str, command: list[str], until: list[str]) -> list[str]:
    order = {"command": command, "until": until, "seconds": SECONDS}
    seen = box.run(
        "on_terminal.py", json.dumps(order), python=python,
        TERM="xterm-256color", LANG="C.UTF-8", LC_ALL="C.UTF-8", HOME=str(box.state),
    )["screen"]  # fmt: skip
    assert isinstance(seen, list)
    return seen


def assert_shown(lines: list[str], wanted: list[str]) -> None:
    missing = [one for one in wanted if not any(re.search(one, line) for line in lines)]
    assert not missing, f"{missing} not on the screen:\n" + "\n".join(lines)


def test_nvitop_shows_the_devices_and_the_process(box: Box, busy: int, more_client_python: str) -> None:
    nvitop = Path(more_client_python).parent / "nvitop"
    if not nvitop.exists():
        pytest.skip("nvitop is not among the clients")
    total = (HELD + CONTEXT) // MIB
    wanted = [
        r"\b0\s+Tesla T4 \(software\)",
        r"\b1\s+L4\s",  # nvitop leaves the maker out
        r"00000000:20:00\.0",
        rf"P0\s+\d+W / 400W .*\b{total}\.00MiB / 256\.0MiB\s+.\s+(9\d|100)%",
        rf"\b1\s+{busy} C\s+\w+ {total}\.00MiB\s+(9\d|100|MAX)\b",
    ]
    assert_shown(screen(box, more_client_python, [str(nvitop), "-m", "full"], wanted), wanted)


def test_nvtop_shows_the_devices_and_the_process(box: Box, busy: int, more_client_python: str) -> None:
    nvtop = shutil.which("nvtop")
    if nvtop is None:
        pytest.skip("nvtop is not installed: apt-get install nvtop (Debian's section contrib)")
    total = (HELD + CONTEXT) // MIB
    wanted = [
        r"Device 0 \[Tesla T4 \(software\)\].*GEN 4@16x",
        r"Device 1 \[NVIDIA L4\]",
        r"1410MHz MEM 1215MHz TEMP\s+\d+.C",
        rf"\b{busy}\s+\w+\s+1\s+Compute\s+(9\d|100)%\s+{total}MiB",
    ]
    assert_shown(screen(box, more_client_python, [nvtop, "-d", "2"], wanted), wanted)


def test_prometheus_reads_load_and_memory_of_device_and_process(
    box: Box, busy: int, more_client_python: str
) -> None:
    exporter = Path(more_client_python).parent / "nvitop-exporter"
    if not exporter.exists():
        pytest.skip("nvitop-exporter is not among the clients")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["--bind-address", "127.0.0.1", "--port", str(port), "--interval", "0.5"]
    box.start("run_module.py", "nvitop_exporter", *arguments, python=more_client_python)
    total = (HELD + CONTEXT) // MIB
    wanted = {  # what is read, and between which numbers
        r'gpu_utilization.*index="1".*\} (\S+)': (90, 100),
        r'gpu_utilization.*index="0".*\} (\S+)': (0, 0),
        r'gpu_memory_used.*index="1".*\} (\S+)': (total, total),
        rf'process_gpu_memory.*pid="{busy}".*\}} (\S+)': (total, total),
    }
    deadline = time.monotonic() + SECONDS
    while (wrong := _wrong(_scraped(port), wanted)) and time.monotonic() < deadline:
        time.sleep(0.1)  # between two questions to a server that cannot call us
    assert not wrong


def _wrong(text: str, wanted: dict[str, tuple[int, int]]) -> list[str]:
    """Of what is wanted, that which is not there or has another number."""
    wrong = []
    for pattern, (least, most) in wanted.items():
        found = re.search(pattern, text)
        if found is None or not least <= float(found[1]) <= most:
            wrong.append(f"{pattern}: {found and found[1]}")
    return wrong


def _scraped(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""  # it does not listen yet

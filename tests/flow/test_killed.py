"""`aliquot run` killed at any moment: nothing is lost, nothing runs outside the book, nothing stays."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.flow.box import TENANT, Box

_TRIES = 16


def _start(box: Box, *command: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "aliquot", "run", "--gpu", "10%", "-q", "--", *command]
    return subprocess.Popen(words, env=box.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _running(marker: str) -> list[int]:
    """Pids of programs that were started with ``marker`` as an argument, not of `aliquot run`."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:1] == [b"sleep"] and marker.encode() in words:
            found.append(int(process.name))
    return found


@pytest.mark.slow
def test_killed_at_any_moment_the_next_command_finds_right_books(gpu_box: Box) -> None:
    """From the first instruction to the running program: the moments are spread over both."""
    box = gpu_box
    whole = _seconds_of_a_run(box)
    dice = random.Random(7)
    started = 0
    for n in range(_TRIES):
        marker = f"{9000 + n}.{os.getpid()}"
        process = _start(box, "sleep", marker)
        time.sleep(whole * 1.3 * (n + dice.random()) / _TRIES)  # the moment is the point of the test
        process.kill()
        process.wait()
        # The program runs if and only if the book has its lease, and it is the holder; looked at
        # until the forked child has either executed it or left.
        box.eventually(partial(_is_settled, box, marker), within=10)
        programs, leases = _running(marker), box.items("leases")
        assert [lease["state"] for lease in leases] == ["held"] * len(programs)
        assert box.share_folders() == [lease["id"] for lease in leases]
        started += len(programs)
        for pid in programs:
            os.kill(pid, signal.SIGKILL)
        box.eventually(lambda: box.items("leases") == [], within=10)
        assert box.share_folders() == []
    assert 0 < started < _TRIES, "the moments did not span the start"


def _held_by(box: Box) -> list[int]:
    return [lease["holderDetail"]["pid"] for lease in box.items("leases")]


def _is_settled(box: Box, marker: str) -> bool:
    return _held_by(box) == _running(marker)


def _seconds_of_a_run(box: Box) -> float:
    began = time.monotonic()
    process = _start(box, "true")
    process.wait()
    return time.monotonic() - began


def test_a_program_outlives_its_aliquot_and_keeps_its_share(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("4GiB") as tenant:
        tenant.process.send_signal(signal.SIGKILL)
        tenant.process.wait()
        (lease,) = box.items("leases")
        assert lease["state"] == "held"
        assert tenant("see")["total"] == 4 << 30  # still held to it
        busy = box.aliquot("release", lease["id"])
        assert busy.returncode == 1
        assert str(tenant.pid) in busy.stderr
    box.eventually(lambda: box.items("leases") == [], within=10)


def test_release_force_ends_the_programs_first(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("4GiB") as tenant:
        (lease,) = box.items("leases")
        done = box.aliquot("release", "--force", lease["id"])
        assert done.returncode == 0, done.stderr
        assert tenant.process.wait(timeout=20) == 128 + signal.SIGTERM
    assert box.items("leases") == []


def test_a_program_in_the_background_keeps_the_share_after_its_shell(gpu_box: Box) -> None:
    """A double fork: the holder ends, a grandchild goes on, and is in the share."""
    box = gpu_box
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    later = f"{wait}; echo see | {sys.executable} {TENANT}"
    script = f"setsid sh -c '{later}' > out 2> err < /dev/null &"
    folder = box.state.parent
    done = box.aliquot("run", "--gpu", "2GiB", "--", "sh", "-c", script, cwd=folder)
    assert done.returncode == 0
    (lease,) = box.items("leases")
    (folder / "go").touch()
    box.eventually(lambda: box.items("leases") == [], within=20)
    assert f'"total": {2 << 30}' in (box.state.parent / "out").read_text()
    (ended,) = box.items("leases", "--ended")
    assert ended["id"] == lease["id"]


def test_two_large_shares_at_once_are_one_and_a_reason(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("60%") as first:
        second = box.aliquot("run", "--gpu", "60%", "--", "true")
        assert second.returncode == 4
        assert "short" in second.stderr
        assert first("see")["devices"] == 1
    assert box.aliquot("run", "--gpu", "60%", "--", "true").returncode == 0


@pytest.mark.slow
def test_many_at_once_never_exceed_the_card(gpu_box: Box) -> None:
    """Each takes 30 %: at most three at a time, however they race."""
    box = gpu_box
    counter = "import sys; sys.stdin.read()"
    words = [
        sys.executable,
        "-m",
        "aliquot",
        "run",
        "--gpu",
        "30%",
        "-q",
        "--",
        sys.executable,
        "-c",
        counter,
    ]
    processes = [
        subprocess.Popen(words, env=box.environ, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(12)
    ]
    refused = []
    box.eventually(lambda: sum(p.poll() is not None for p in processes) >= 9, within=60)
    assert len(box.items("leases")) == 3
    for process in processes:
        process.communicate()
        refused.append(process.returncode)
    assert sorted(refused) == [0] * 3 + [4] * 9
    assert box.items("leases") == []

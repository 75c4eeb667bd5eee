"""`aliquot resize`, `pause` and `resume` killed at every step: the next command finds a right book, and
limits that agree with it, under the running program."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.flow.box import Box, Tenant

from aliquot.enforcement import limits_agree
from aliquot.lease import open_book

GIB = 1 << 30
PROGRAM = Path(__file__).parent / "programs" / "killer.py"
SMALL, LARGE = ("2GiB@20%", "--policy", "fair"), ("3GiB@30%", "--policy", "cap")


class Killer:
    def __init__(self, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env=environ,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __call__(self, *words: str, at: int, by: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"words": words, "at": at, "by": by}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture
def killer(box: Box) -> Iterator[Killer]:
    made = Killer(box.environ)
    yield made
    made.process.communicate(timeout=30)


def found_by_the_next_command(box: Box, lease: str, tenant: Tenant) -> tuple[str, str, bool]:
    """The size, policy and pause that it finds; all that says them must say the same."""
    (item,) = box.items("leases")
    assert (item["id"], item["state"]) == (lease, "held")
    with open_book(box.state / "book.sqlite", read_only=True) as book:
        (found,) = book.leases(live=True)
        assert book.check() == ()
    limits = box.runtime / "shares" / lease / "limits"
    assert limits_agree(limits, found) is True
    assert stat.S_IMODE(limits.stat().st_mode) == 0o444
    assert box.share_folders() == [lease]
    (share,) = found.shares
    assert share.memory == tenant("see")["total"] == item["memoryBytes"]
    assert (found.ask, share.memory, share.compute) in [
        ("2GiB@20%", 2 * GIB, 200),
        ("3GiB@30%", 3 * GIB, 300),
    ], "half of a change"
    return found.ask, found.policy.value, found.paused_at is not None


def kill_everywhere(box: Box, killer: Killer, *, by: str, every: int) -> tuple[int, set[str]]:
    """How often a change was killed, and at which steps; each kill followed by the next command."""
    at, steps = 0, set()
    with box.tenant(SMALL[0]) as tenant:
        (item,) = box.items("leases")
        lease = item["id"]
        now = before = found_by_the_next_command(box, lease, tenant)
        seen = {before}
        while True:
            wanted = LARGE if now[0] == SMALL[0] else SMALL
            answer = killer("resize", lease, *wanted, at=at, by=by)
            now = found_by_the_next_command(box, lease, tenant)
            assert (now[0], now[1]) in [(SMALL[0], SMALL[2]), (LARGE[0], LARGE[2])], "half of a change"
            seen.add(now)
            if not answer["killed"]:
                assert answer["code"] == 0
                assert now[0] == wanted[0]
                break
            steps.add(answer["step"])
            at += every
        assert len(seen) == 2, "no kill came late enough, or none early enough"
        assert tenant("add")["right"]
    return at // every, steps


@pytest.mark.slow
def test_a_resize_killed_at_many_of_its_lines_is_whole_or_not_there(gpu_box: Box, killer: Killer) -> None:
    kills, _ = kill_everywhere(gpu_box, killer, by="line", every=37)
    assert kills > 5


@pytest.mark.slow
def test_a_resize_killed_at_each_fifth_line_is_whole_or_not_there(gpu_box: Box, killer: Killer) -> None:
    kills, _ = kill_everywhere(gpu_box, killer, by="line", every=5)
    assert kills > 40


@pytest.mark.slow
def test_a_resize_killed_at_each_system_call_is_whole_or_not_there(gpu_box: Box, killer: Killer) -> None:
    kills, steps = kill_everywhere(gpu_box, killer, by="call", every=1)
    assert kills > 20
    assert {"pwrite64", "chmod", "flock", "munmap", "fdatasync"} <= steps


@pytest.mark.slow
@pytest.mark.parametrize(("by", "every"), [("call", 1), ("line", 7)])
def test_a_pause_and_a_resume_killed_anywhere_are_said_as_they_are(
    gpu_box: Box, killer: Killer, by: str, every: int
) -> None:
    box, at = gpu_box, 0
    with box.tenant(SMALL[0]) as tenant:
        (item,) = box.items("leases")
        paused = False
        while True:
            answer = killer("resume" if paused else "pause", item["id"], at=at, by=by)
            _, _, now = found_by_the_next_command(box, item["id"], tenant)
            if not answer["killed"]:
                assert now is not paused
                break
            paused, at = now, at + every
        assert at > 20
        assert box.aliquot("resume", item["id"]).returncode == 0
        assert tenant("add")["right"]

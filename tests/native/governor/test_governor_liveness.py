"""A slot lives as long as its program, whatever that does with its file descriptors."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.native.governor.shares import MakeShare, ShareOnDisk

from aliquot.enforcement import abi
from aliquot.model import MIB

CLOSE_ALL = "os.closerange(3, 1024)\n"
"""As closefrom() and a daemon's start do; ctypes keeps no number open."""


Start = Callable[[ShareOnDisk, str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Programs that have come to their first say(); none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def run(share: ShareOnDisk, script: str) -> "subprocess.Popen[str]":
        process = share.start(script)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_no_descriptor_of_the_ledger_stays_open(share: ShareOnDisk) -> None:
    """A number that is not there can neither be closed by the program nor be closed blindly by us."""
    assert (
        share.run(
            """
before = set(os.listdir("/proc/self/fd"))
begin(); check(alloc(20 * MIB)[0]); info(); alloc(1 << 40)
nvml_library().nvmlInit_v2()
say(sorted(set(os.listdir("/proc/self/fd")) - before))
"""
        )
        == []
    )


def test_a_program_that_closes_its_descriptors_still_counts(share: ShareOnDisk, start: Start) -> None:
    holder = start(
        share, "begin(); check(alloc(80 * MIB)[0])\n" + CLOSE_ALL + "say(0)\ninput()\nsay(alloc(20 * MIB)[0])"
    )
    assert share.ledger().devices[0].used == 90 * MIB
    assert share.run("check(cuda.cuInit(0))\nsay([retain(), alloc(1)[0]])") == [0, 2]
    out, err = holder.communicate("\n", timeout=20)
    assert (out, err) == ("2\n", "")
    assert share.ledger().devices[0].used == 0
    assert share.run("begin()\nsay(alloc(90 * MIB)[0])") == 0


def test_sigkill_frees_what_a_program_without_descriptors_held(share: ShareOnDisk, start: Start) -> None:
    holder = start(share, "begin(); check(alloc(80 * MIB)[0])\n" + CLOSE_ALL + "say(0)\ninput()")
    assert share.ledger().devices[0].used == 90 * MIB
    holder.kill()
    holder.wait(timeout=20)
    assert share.ledger().devices[0].used == 0
    assert share.run("begin()\nsay(alloc(90 * MIB)[0])") == 0


def test_a_daemon_of_a_fork_counts_and_frees_with_its_death(share: ShareOnDisk, start: Start) -> None:
    """fork, setsid, close all, then the device: the usual order, with a parent that used it before."""
    script = (
        "begin(); check(alloc(30 * MIB)[0])\n"
        "child = os.fork()\nif child:\n    os.waitpid(child, 0)\n    os._exit(0)\n"
        "os.setsid()\n" + CLOSE_ALL + "begin(); check(alloc(40 * MIB)[0])\n" + CLOSE_ALL + "say(0)\ninput()\n"
    )
    daemon = start(share, script)
    assert share.ledger().devices[0].used == 90 * MIB
    assert len([slot for slot in share.ledger().slots if slot.alive]) == 2
    daemon.communicate("\n", timeout=20)
    assert share.ledger().devices[0].used == 0


def test_numbers_that_the_program_reuses_stay_open_through_fork_and_use(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin(); check(alloc(20 * MIB)[0])
os.closerange(3, 1024)
mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(64)]
check(alloc(10 * MIB)[0]); info(); alloc(1 << 40)
child = os.fork()
if child == 0:
    for number in mine:
        os.fstat(number)  # raises where it was closed
    begin(); check(alloc(10 * MIB)[0])
    for number in mine:
        os.fstat(number)
    os._exit(0)
status = os.waitpid(child, 0)[1]
for number in mine:
    os.fstat(number)
say([status, used() // MIB])
"""
    )
    assert seen == [0, 40]


def test_sigkill_frees_though_a_child_made_behind_the_handlers_lives_on(share: ShareOnDisk) -> None:
    """The system call itself: no handler of pthread_atfork runs in that child, and it does not exec."""
    process = share.start(
        """
begin(); check(alloc(80 * MIB)[0])
libc = ctypes.CDLL(None)
if libc.syscall(57) == 0:  # fork
    input()
    os._exit(0)
say(os.getpid())
os.kill(os.getpid(), 9)
"""
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.wait(timeout=20)
    assert share.ledger().devices[0].used == 0
    assert share.run("begin()\nsay(alloc(90 * MIB)[0])") == 0
    process.communicate("\n", timeout=20)


def test_a_child_made_behind_the_handlers_has_a_slot_of_its_own(share: ShareOnDisk) -> None:
    """It would else write into its parent's, which nobody holds once the parent is dead."""
    seen = share.run(
        """
begin(); check(alloc(40 * MIB)[0])
child = ctypes.CDLL(None).syscall(57)
if child == 0:
    os._exit(0 if alloc(30 * MIB)[0] == 0 and used() // MIB == 80 and alloc(25 * MIB)[0] == 2 else 1)
say([os.waitpid(child, 0)[1], used() // MIB])
"""
    )
    assert seen == [0, 50]
    assert [slot.alive for slot in share.ledger().slots] == [False, False], "two slots were used"


@pytest.mark.parametrize("inherit", [False, True])
def test_exec_releases_also_where_every_descriptor_is_inherited(
    share: ShareOnDisk, start: Start, inherit: bool
) -> None:
    keep = (
        "for n in os.listdir('/proc/self/fd'):\n"
        "    try: os.set_inheritable(int(n), True)\n    except OSError: pass\n"
    )
    process = start(
        share,
        "begin(); check(alloc(80 * MIB)[0]); say(0)\ninput()\n"
        + (keep if inherit else "")
        + "os.execv('/bin/sh', ['sh', '-c', 'echo new; read line'])",
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert share.ledger().devices[0].used == 90 * MIB
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "new\n"
    assert share.ledger().devices[0].used == 0
    assert not any(slot.alive for slot in share.ledger().slots)
    process.communicate("\n", timeout=20)


SCRIBBLES = {
    "the own bytes": "for s in range(256): w(SLOTS + s * SLOT + USED, bytes(128))",
    "every number": "w(SLOTS, bytes(256 * SLOT))",
    "how many slots there are": "w(HIGH, bytes(4)); w(SLOTS, bytes(256 * SLOT))",
}


@pytest.mark.parametrize("scribble", SCRIBBLES)
def test_one_process_cannot_pass_the_limit_by_writing_into_the_ledger(
    share: ShareOnDisk, scribble: str
) -> None:
    places = (
        f"SLOTS, SLOT = {abi.Ledger.SLOTS.offset}, {abi.Slot.RECORD_SIZE}\n"
        f"USED, HIGH = {abi.Slot.USED.offset}, {abi.Ledger.HIGH_WATER.offset}\n"
    )
    seen = share.run(
        places
        + """
file = os.open(os.environ["SHARE"] + "/ledger", os.O_RDWR)
def w(at, what): os.pwrite(file, what, at)
begin(); seen = []
for _ in range(12):
    seen.append(alloc(20 * MIB)[0])
    """
        + SCRIBBLES[scribble]
        + """
seen.append(used() // MIB)
say(seen)
"""
    )
    assert seen == [0] * 4 + [2] * 8 + [90]
    assert share.most_really_used() <= 100 * MIB


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Path]:
    """A folder on overlayfs, whose mappings may be of another description than was opened."""
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path / 'lower'},upperdir={tmp_path / 'upper'},workdir={tmp_path / 'work'}"
    mount = ["mount", "-t", "overlay", "-o", options, "none", str(tmp_path / "merged")]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no overlayfs can be mounted here")
    yield tmp_path / "merged"
    subprocess.run(["umount", "--lazy", tmp_path / "merged"], check=True)


def test_on_overlayfs_too_the_lock_lasts_or_is_taken_anew(
    overlay: Path, make_share: MakeShare, start: Start
) -> None:
    share = make_share(folder=overlay)
    holder = start(
        share,
        "begin(); check(alloc(50 * MIB)[0]); say(0)\ninput()\n"
        + CLOSE_ALL
        + "check(alloc(20 * MIB)[0])\nsay(0)\ninput()",
    )
    assert share.ledger().devices[0].used == 60 * MIB
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "0\n"
    assert share.ledger().devices[0].used == 80 * MIB
    assert share.run("begin()\nsay([alloc(11 * MIB)[0], alloc(10 * MIB)[0]])") == [2, 0]
    holder.communicate("\n", timeout=20)
    assert share.ledger().devices[0].used == 0

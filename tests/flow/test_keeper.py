"""The keeper of a share: it starts and ends with it, may be killed, and sees what its governors cannot."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.flow.box import TENANT, Box, Tenant

from aliquot.enforcement import Beats, Keeping, abi, read_kept

MIB, GIB = 1 << 20, 1 << 30


def shown(box: Box, lease: str) -> dict[str, Any]:
    done = box.aliquot("show", lease, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def until(holds: Callable[[], Any], *, within: float = 20) -> Any:
    """What it gives, once that is true."""
    deadline = time.monotonic() + within
    while not (found := holds()):
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(0.02)
    return found


def keeper_of(box: Box, lease: str) -> int:
    pid = until(lambda: shown(box, lease)["keeper"]["pid"])
    assert isinstance(pid, int)
    return pid


def is_alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def lease(gpu_box: Box) -> Iterator[str]:
    name = gpu_box.aliquot("lease", "--gpu", "4GiB", "-o", "name").stdout.strip()
    yield name
    gpu_box.aliquot("release", "--force", name)


def test_it_starts_with_a_lease_and_ends_with_it(gpu_box: Box) -> None:
    lease = gpu_box.aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    pid = keeper_of(gpu_box, lease)
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"ALIQUOT_LEASE=" not in environment, "or it would hold its own lease"
    second = gpu_box.aliquot("keeper", lease)
    assert (second.returncode, second.stdout) == (0, "")
    assert second.stderr == f"lease {lease} has its keeper already: process {pid}\n"
    assert is_alive(pid)
    assert gpu_box.aliquot("release", lease).returncode == 0
    until(lambda: not is_alive(pid))


def test_one_started_where_signals_are_blocked_can_be_ended(gpu_box: Box) -> None:
    """As `aliquot run` blocks them, which starts the keepers of containers."""
    words = [sys.executable, "-m", "aliquot", "lease", "--gpu", "1GiB", "-o", "name"]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
    try:
        lease = subprocess.run(words, env=gpu_box.environ, capture_output=True, text=True, check=True).stdout
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    pid = keeper_of(gpu_box, lease.strip())
    os.kill(pid, signal.SIGTERM)
    until(lambda: not is_alive(pid))
    assert gpu_box.aliquot("release", lease.strip()).returncode == 0


@pytest.mark.slow
def test_a_lease_that_expires_is_given_back_without_another_command(gpu_box: Box) -> None:
    lease = gpu_box.aliquot("lease", "--gpu", "1GiB", "--for", "3s", "-o", "name").stdout.strip()
    assert lease
    until(lambda: gpu_box.share_folders() == [], within=60)


def test_killed_it_harms_nobody_is_named_and_comes_back_by_hand(gpu_box: Box, lease: str) -> None:
    box, limits = gpu_box, gpu_box.runtime / "shares" / lease / "limits"
    pid = keeper_of(box, lease)
    assert "keeper" not in box.aliquot("leases").stderr
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_alive(pid))
    words = ["run", "-q", "--lease", lease, "--", sys.executable, str(TENANT)]
    assert '"right": true' in box.aliquot(*words, input="add\n").stdout
    assert shown(box, lease)["keeper"] == {"state": "kept", "pid": None}, "within its patience"
    with Beats(limits) as beats:  # and its patience is over
        beats.beat(time.monotonic_ns() - 11 * 10**9, began=1)
    assert '"right": true' in box.aliquot(*words, input="add\n").stdout, "the last limits stay"
    assert shown(box, lease)["keeper"] == {"state": "gone", "pid": None}
    again = f"aliquot keeper {lease}"
    assert f"gone: fair acts as cap meanwhile; `{again}` starts one" in box.aliquot("show", lease).stdout
    assert again in box.aliquot("leases").stderr
    checks = json.loads(box.aliquot("doctor", "-o", "json").stdout)["items"]
    assert [(check["ok"], check["fix"]) for check in checks if check["name"] == "keepers"] == [(False, again)]
    by_hand = subprocess.Popen([sys.executable, "-m", "aliquot", "keeper", lease], env=box.environ)
    assert keeper_of(box, lease) == by_hand.pid
    assert shown(box, lease)["keeper"]["state"] == "kept"
    by_hand.terminate()
    assert by_hand.wait(timeout=10) == 0


def test_one_that_is_stopped_is_told_from_one_that_is_gone(gpu_box: Box, lease: str) -> None:
    box = gpu_box
    pid = keeper_of(box, lease)
    os.kill(pid, signal.SIGSTOP)
    try:
        with Beats(box.runtime / "shares" / lease / "limits") as beats:
            beats.beat(time.monotonic_ns() - 11 * 10**9, began=1)
        assert shown(box, lease)["keeper"] == {"state": "gone", "pid": pid}
        assert f"process {pid} is stopped or hangs: fair acts as cap" in box.aliquot("show", lease).stdout
        assert f"kill -CONT {pid}" in box.aliquot("leases").stderr
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: shown(box, lease)["keeper"]["state"] == "kept")


def test_a_command_that_runs_hosts_it_and_its_end_is_not_delayed(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB") as tenant:
        (lease,) = box.items("leases")
        assert keeper_of(box, lease["id"]) == tenant.process.pid
        looked = read_kept(box.runtime / "shares" / lease["id"] / "limits")
        assert looked is not None
        assert looked.keeping(time.monotonic_ns()) is Keeping.KEPT
        assert box.aliquot("keeper", lease["id"]).stderr.endswith(f"process {tenant.process.pid}\n")
        assert tenant.end() == 0
    assert box.items("leases") == []


def test_whole_gpus_and_leases_that_ended_have_none(gpu_box: Box) -> None:
    lease = gpu_box.aliquot("lease", "--gpu", "T4", "-o", "name").stdout.strip()
    assert shown(gpu_box, lease)["keeper"] is None
    assert gpu_box.aliquot("keeper", lease).returncode == 2
    assert gpu_box.aliquot("release", lease).returncode == 0
    assert shown(gpu_box, lease)["keeper"] is None
    assert gpu_box.aliquot("keeper", lease).returncode == 3
    assert gpu_box.aliquot("keeper", "nosuch").returncode == 3


def test_limits_of_an_older_aliquot_expect_none_and_take_one(gpu_box: Box, lease: str) -> None:
    box, limits = gpu_box, gpu_box.runtime / "shares" / lease / "limits"
    os.kill(pid := keeper_of(box, lease), signal.SIGKILL)
    until(lambda: not is_alive(pid))
    with Beats(limits) as beats:
        beats.beat(0, began=0)
    assert shown(box, lease)["keeper"]["state"] == "never"
    assert "of an older Aliquot" in box.aliquot("show", lease).stdout
    assert "keeper" not in box.aliquot("leases").stderr
    with subprocess.Popen([sys.executable, "-m", "aliquot", "keeper", lease], env=box.environ) as by_hand:
        until(lambda: shown(box, lease)["keeper"]["state"] == "kept")
        by_hand.terminate()


# ---- what it sees ----

KEEPER_TENANT = TENANT.with_name("keeper_tenant.py")


@contextlib.contextmanager
def within(box: Box, lease: str, *words: str, **environ: str) -> Iterator[Tenant]:
    """``words``, or the tenant that goes past its governor, in the lease."""
    command = [sys.executable, "-m", "aliquot", "run", "-q", "--lease", lease, "--"]
    tenant = Tenant([*command, *(words or (sys.executable, str(KEEPER_TENANT)))], box.environ | environ)
    try:
        yield tenant
    finally:
        tenant.end()


@pytest.mark.slow
def test_what_the_driver_has_beyond_the_charge_is_charged_and_shown(gpu_box: Box, lease: str) -> None:
    box = gpu_box
    with within(box, lease) as tenant:
        assert tenant("take", GIB)["result"] == 0
        assert tenant("behind", GIB)["result"] == 0
        before = tenant("see")["free"]
        free = until(lambda: (now := tenant("see")["free"]) < before and now, within=30)
        assert before - free == pytest.approx(GIB, abs=16 * MIB)
        (process,) = shown(box, lease)["ledger"]["processes"]
        assert process["driversOwnBytes"] == [pytest.approx(GIB, abs=16 * MIB)]
        (listed,) = [one for one in _on_the_gpu(box) if one["pid"] == process["pid"]]
        assert process["usedBytes"] == [pytest.approx(listed["memoryBytes"], abs=2 * MIB)]
        assert "of it the driver's own" in box.aliquot("show", lease).stdout
        assert tenant("take", 2 * GIB)["result"] == 2, "it is not there for a second time"
        assert tenant("take", GIB)["result"] == 0


def _on_the_gpu(box: Box) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(box.aliquot("show", "0", "-o", "json").stdout)["processes"]
    return found


@pytest.mark.slow
def test_the_keeper_writes_down_who_goes_round_the_governor(gpu_box: Box, lease: str, tmp_path: Path) -> None:
    """Without any other command that looks."""
    box = gpu_box
    keeper_of(box, lease)
    (softgpu,) = (box.state / "lib").glob("*/softgpu")
    driver = shutil.copytree(softgpu, tmp_path / "driver")
    escape = ("env", f"LD_LIBRARY_PATH={driver}", sys.executable, str(TENANT))
    with within(box, lease), within(box, lease, *escape) as escaped:
        until(lambda: any(f"process {escaped.pid} " in detail for detail in _told(box, lease, "ungoverned")))


def _told(box: Box, lease: str, what: str) -> list[str]:
    """Of its story as it stands in the book: no command looks for us."""
    asked = "SELECT detail FROM event JOIN lease ON event.lease = lease.seq WHERE what = ? AND lease.id = ?"
    with contextlib.closing(sqlite3.connect(box.state / "book.sqlite")) as book:
        return [detail for (detail,) in book.execute(asked, (what, lease))]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace needs root")
def test_who_is_called_otherwise_inside_is_found_and_never_taken_for_dead(gpu_box: Box, lease: str) -> None:
    """Its pid inside is that of another process, or of none, outside."""
    box = gpu_box
    apart = ("unshare", "--pid", "--fork", "--kill-child", sys.executable, str(KEEPER_TENANT))
    with within(box, lease, *apart) as inside, within(box, lease) as beside:
        assert inside.pid == 1
        assert inside("take", GIB)["result"] == 0

        def processes() -> dict[int, dict[str, Any]]:
            return {one["pid"]: one for one in shown(box, lease)["ledger"]["processes"]}

        outer = until(lambda: processes()[1]["outerPid"])
        status = Path(f"/proc/{outer}/status").read_text()
        assert re.search(r"^NSpid:.*\t1$", status, re.MULTILINE)
        assert outer in [one["pid"] for one in _on_the_gpu(box)]
        # At the limit everybody looks for the dead, by their locks: it is none of them.
        assert beside("take", 3 * GIB)["result"] == 2
        assert beside("take", 2 * GIB)["result"] == 0
        assert processes()[1]["usedBytes"][0] > GIB
        assert shown(box, lease)["ungoverned"] == []


# ---- versions of the governor ----


def test_an_upgrade_s_leftover_goes_and_what_runs_stays(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB") as tenant:
        (used,) = (folder.parent for folder in (box.state / "lib").glob("*/governor"))
        left = shutil.copytree(used, used.with_name("0123456789abcdef"))
        for folder in (used, left):
            os.utime(folder, (0, 0))  # both of long ago
        assert box.aliquot("leases").returncode == 0
        assert (used.exists(), left.exists()) == (True, False)
        assert tenant("take", MIB)["result"] == 0


# ---- the page of turns ----


@pytest.mark.parametrize("how", ["scribble", pytest.param("smear", marks=pytest.mark.slow)])
def test_who_scribbles_is_named_the_page_repaired_and_the_neighbour_runs_on(
    gpu_box: Box, lease: str, tmp_path: Path, how: str
) -> None:
    """Where he has the page in his hands he is seen; through the governor's mapping he is the only other one
    beside the seat that was hurt."""
    box = gpu_box
    other = box.aliquot("lease", "--gpu", "4GiB", "-o", "name").stdout.strip()
    try:
        (page,) = (box.runtime / "turns").iterdir()
        keeper_of(box, other)
        stop = tmp_path / "stop"
        with within(box, other) as neighbour, ThreadPoolExecutor(1) as beside:
            work = beside.submit(neighbour, "work", stop)
            until(lambda: _sits(page, 0))
            with within(box, lease, PAGE=str(page)) as scribbler:
                assert scribbler("add")["right"]
                reserved = abi.Turns.SEATS.offset + abi.Seat.RESERVED.offset
                scribbler(how, *([reserved] if how == "smear" else []))
                (told,) = until(lambda: set(_told(box, lease, "scribbled")))
            stop.touch()
            assert work.result()["longest"] < 2.5, "a second of turns, and what a busy machine adds"
        seen = ("has it open for writing", "maps it beside its governor")
        assert told.endswith(seen if how == "scribble" else "the seats of all others there were hurt")
        assert _told(box, other, "scribbled") == []
        assert "scribbled" in box.aliquot("show", lease).stdout
        until(lambda: not any(page.read_bytes()[abi.Turns.PAD.offset : abi.Turns.SEATS.offset]))
    finally:
        assert box.aliquot("release", "--force", other).returncode == 0


def _sits(page: Path, seat: int) -> bool:
    at = abi.Turns.SEATS.offset + seat * abi.Seat.RECORD_SIZE
    return any(page.read_bytes()[at : at + 8])

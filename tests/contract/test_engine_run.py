"""``aliquot run -- ENGINE run …``: the life of a container's lease, on real engines."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.tenancy import IMAGE
from tests.flow.box import Box

from aliquot.enforcement import program_folder
from aliquot.injection import ShareFolder, listed_cdi_specs
from engines.docker import DockerSetup
from engines.podman import PodmanSetup

pytestmark = pytest.mark.engine

Way = tuple[PodmanSetup | DockerSetup, bool]
_NETLESS = ("--network", "none")


class EngineBox(Box):
    """A machine with one software T4 and one engine."""

    def __init__(self, folder: Path, setup: PodmanSetup | DockerSetup, *, by_cdi: bool) -> None:
        super().__init__(folder)
        self.environ = {**setup.environ, **{k: v for k, v in self.environ.items() if k.startswith("ALIQUOT")}}
        self.client = setup.client if isinstance(setup, DockerSetup) else "podman"
        self.inject = "cdi" if by_cdi else "flags"

    def line(self, *words: str, gpu: str = "1GiB", options: tuple[str, ...] = ()) -> list[str]:
        """``aliquot run --gpu GPU OPTIONS -- ENGINE run WORDS``."""
        run = ["run", "--gpu", gpu, "--inject", self.inject, *options]
        return [*run, "--", self.client, "run", *_NETLESS, *words]

    def engine(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.client, *words], env=self.environ, text=True, capture_output=True, timeout=60, check=False
        )

    def lease_ids(self) -> list[str]:
        return [lease["id"] for lease in self.items("leases")]


@pytest.fixture
def box(way: Way) -> Iterator[EngineBox]:
    cdi = Path("/var/run/cdi")
    existed = cdi.exists()
    # Not tmp_path: its parents are closed to other users, and containers run as some.
    folder = Path(tempfile.mkdtemp(prefix="aliquot-box-"))
    box = EngineBox(folder, way[0], by_cdi=way[1])
    try:
        created = box.aliquot("softgpu", "create", "T4")
        assert created.returncode == 0, created.stderr
        yield box
        # Whatever the test did, nothing is leased and nothing of it is left in the engine's folder.
        assert box.lease_ids() == []
        assert box.share_folders() == []
        ours = ShareFolder(str(box.runtime / "shares" / "any"))
        assert listed_cdi_specs(str(cdi), folder=ours) == ()
    finally:
        shutil.rmtree(folder)
        if not existed:
            with contextlib.suppress(OSError):  # another Aliquot's may be in it by now
                cdi.rmdir()


def test_a_container_is_in_its_share_and_the_lease_ends_with_it(box: EngineBox) -> None:
    done = box.aliquot(*box.line("--rm", IMAGE, "tenant", "nvml"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "devices 1"
    assert lines[-1] == f"total {1 << 30}"
    (lease,) = box.items("leases", "--ended")
    assert lease["isolation"] == "soft"
    assert lease["state"] == "ended"


def test_the_exit_code_and_stdin_are_the_containers(box: EngineBox) -> None:
    done = box.aliquot(*box.line("--rm", "-i", IMAGE, "sh", "-c", "cat; exit 7"), input="through\n")
    assert (done.returncode, done.stdout) == (7, "through\n")


def test_a_stopped_container_keeps_its_lease_until_it_is_removed(box: EngineBox) -> None:
    name = f"keeps-{box.inject}"
    done = box.aliquot(*box.line("-d", "--name", name, IMAGE, "sh", "-c", "sleep 1000"))
    assert done.returncode == 0, done.stderr
    try:
        (lease,) = box.lease_ids()
        box.engine("stop", "-t", "0", name)
        assert box.lease_ids() == [lease]
        busy = box.aliquot("release", lease)
        assert busy.returncode == 1
        assert "[lease-busy]" in busy.stderr
        assert " rm -f " in busy.stderr
        # Started again it is in the same share.
        assert box.engine("start", name).returncode == 0
        seen = box.engine("exec", name, "tenant", "nvml")
        assert seen.stdout.splitlines()[-1] == f"total {1 << 30}"
    finally:
        box.engine("rm", "-f", name)
    assert box.lease_ids() == []


def test_release_on_stop_ends_it_when_it_stops(box: EngineBox) -> None:
    name = f"stops-{box.inject}"
    options = ("--release-on-stop",)
    done = box.aliquot(*box.line("-d", "--name", name, IMAGE, "sh", "-c", "sleep 1000", options=options))
    assert done.returncode == 0, done.stderr
    try:
        assert len(box.lease_ids()) == 1
        box.engine("stop", "-t", "0", name)
        assert box.lease_ids() == []
        # What it was started with is gone: it does not start without limits.
        assert box.engine("start", name).returncode != 0
    finally:
        box.engine("rm", "-f", name)


def test_a_container_outlives_aliquot_run_and_keeps_its_share(box: EngineBox) -> None:
    name = f"outlives-{box.inject}"
    line = [
        sys.executable,
        "-m",
        "aliquot",
        *box.line("--name", name, IMAGE, "sh", "-c", "echo up; sleep 1000"),
    ]
    process = subprocess.Popen(
        line, env=box.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        assert len(box.lease_ids()) == 1
    finally:
        box.engine("rm", "-f", name)
        process.communicate(timeout=30)
    box.eventually(lambda: box.lease_ids() == [], within=20)


def test_after_a_reboot_a_start_fails_closed_until_the_files_are_made_again(box: EngineBox) -> None:
    name = f"boots-{box.inject}"
    done = box.aliquot(*box.line("-d", "--name", name, IMAGE, "sh", "-c", "sleep 1000"))
    assert done.returncode == 0, done.stderr
    try:
        (lease,) = box.lease_ids()
        box.engine("stop", "-t", "0", name)
        # What a reboot does: /run is empty, and the book says another boot.
        shutil.rmtree(box.runtime)
        if box.inject == "cdi":
            (spec,) = Path("/var/run/cdi").glob(f"*{lease}*")
            spec.unlink()
        with sqlite3.connect(box.state / "book.sqlite") as book:
            book.execute("UPDATE lease SET boot_id = 'of-another-boot' WHERE id = ?", (lease,))
        book.close()
        assert box.engine("start", name).returncode != 0
        assert box.lease_ids() == [lease]  # this command makes the files again
        started = box.engine("start", name)
        assert started.returncode == 0, started.stderr
        assert box.engine("exec", name, "tenant", "nvml").stdout.splitlines()[-1] == f"total {1 << 30}"
    finally:
        box.engine("rm", "-f", name)
    assert box.lease_ids() == []


@pytest.mark.parametrize(
    "option", [("--gpus", "all"), ("--privileged",), ("-e", "NVIDIA_VISIBLE_DEVICES=all")]
)
def test_what_hands_out_every_card_is_refused_before_anything_is_leased(
    box: EngineBox, option: tuple[str, ...]
) -> None:
    done = box.aliquot(*box.line(*option, IMAGE, "true"))
    assert done.returncode == 5
    assert "[gives-every-gpu]" in done.stderr
    assert option[-1] in done.stderr
    assert box.items("leases", "--ended") == []


def test_a_lease_taken_before_is_used_by_a_container(box: EngineBox) -> None:
    lease = box.aliquot("lease", "--gpu", "2GiB", "-o", "name").stdout.strip()
    words = ["run", "--lease", lease, "--inject", box.inject, "--", box.client, "run", *_NETLESS]
    done = box.aliquot(*words, "--rm", IMAGE, "tenant", "nvml")
    assert done.stdout.splitlines()[-1] == f"total {2 << 30}"
    assert box.lease_ids() == [lease]
    assert box.aliquot("release", lease).returncode == 0


def test_an_isolation_that_the_command_itself_takes_away_is_refused(box: EngineBox) -> None:
    line = box.line("--rm", "--cap-add", "SYS_ADMIN", IMAGE, "true", options=("--isolation", "soft"))
    done = box.aliquot(*line)
    assert done.returncode == 5
    assert "[not-enforceable]" in done.stderr
    assert "SYS_ADMIN" in done.stderr


def test_the_share_of_a_running_container_is_tried_from_inside(box: EngineBox) -> None:
    name = f"tried-{box.inject}"
    try:
        done = box.aliquot(*box.line("-d", "--name", name, IMAGE, "sh", "-c", "sleep 1000", gpu="2GiB"))
        assert done.returncode == 0, done.stderr
        (lease,) = box.lease_ids()
        before = box.engine("exec", name, "ls", "/").stdout
        tried = box.aliquot("verify", lease, "-o", "json")
        assert tried.returncode == 0, tried.stdout + tried.stderr
        rows = {row["attempt"]: row for row in json.loads(tried.stdout)["items"]}
        assert {name for name, row in rows.items() if row["outcome"] in ("hole", "broken")} == set()
        assert tried.returncode == 0
        for attempt in ("allocate", "race", "library-path-unset", "no-environment", "exec"):
            assert rows[attempt]["outcome"] == "held"
            assert 1 << 30 < rows[attempt]["grantedBytes"] <= 2 << 30
        assert rows["limits-file"]["note"] == "/run/aliquot/share/limits cannot be written"
        assert box.engine("exec", name, "ls", "/").stdout == before, "nothing of it stays"
    finally:
        box.engine("rm", "-f", name)


def test_who_opens_the_driver_by_its_path_in_a_container_is_named(box: EngineBox) -> None:
    name, verify = f"escapes-{box.inject}", box.state / "verify"
    shutil.copytree(program_folder(), verify)  # a folder that every user of the engine can read
    fill = ("/verify/aliquot-verify", "--fill", f"--device=GPU-none={1 << 30}")
    try:
        line = box.line("-d", "--name", name, "-v", f"{verify}:/verify:ro", IMAGE, "sh", "-c", "sleep 1000")
        done = box.aliquot(*line)
        assert done.returncode == 0, done.stderr
        (lease,) = box.lease_ids()
        with _holding(box, name, (), fill):
            shown = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
            assert [process["attestation"]["memoryHeld"] for process in shown["ledger"]["processes"]] == [
                True
            ]
            assert shown["ungoverned"] == []
        driver = ("-e", "LD_LIBRARY_PATH=/run/aliquot/share/driver")
        with _holding(box, name, driver, fill):
            shown = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
            (escaped,) = shown["ungoverned"]
            assert escaped["memoryBytes"] > 1 << 30, "more than the share, for nothing stood in between"
            assert "aliquot-verify" in escaped["command"]
            assert shown["story"][-1]["what"] == "ungoverned"
    finally:
        box.engine("rm", "-f", name)


def test_a_container_s_keeper_outlives_its_client_and_knows_who_is_inside(box: EngineBox) -> None:
    """By the pids of the node: the kernel's word for them is compared with the keeper's."""
    name, verify = f"kept-{box.inject}", box.state / "verify"
    shutil.copytree(program_folder(), verify)
    fill = ("/verify/aliquot-verify", "--fill", f"--device=GPU-none={1 << 30}")
    try:
        line = box.line("-d", "--name", name, "-v", f"{verify}:/verify:ro", IMAGE, "sh", "-c", "sleep 1000")
        done = box.aliquot(*line)
        assert done.returncode == 0, done.stderr
        (lease,) = box.lease_ids()
        with _holding(box, name, (), fill):
            process = _translated(box, lease)
            status = Path(f"/proc/{process['outerPid']}/status").read_text()
            (pids,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
            assert [int(pids[0]), int(pids[-1])] == [process["outerPid"], process["pid"]]
            assert len(pids) > 1
            shown = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
            keeper = shown["keeper"]["pid"]
            os.kill(keeper, signal.SIGKILL)
            assert shown["ungoverned"] == []
            again = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
            assert [one["pid"] for one in again["ledger"]["processes"]] == [process["pid"]], "it lives"
        by_hand = subprocess.Popen([sys.executable, "-m", "aliquot", "keeper", lease], env=box.environ)
        _await_keeper(box, lease, by_hand.pid)
    finally:
        box.engine("rm", "-f", name)
    assert box.lease_ids() == []
    assert by_hand.wait(timeout=20) == 0, "it ends with the lease"


def _await_keeper(box: EngineBox, lease: str, pid: int) -> None:
    deadline = time.monotonic() + 30
    while json.loads(box.aliquot("show", lease, "-o", "json").stdout)["keeper"]["pid"] != pid:
        assert time.monotonic() < deadline, "it keeps the lease"


def _translated(box: EngineBox, lease: str) -> dict[str, int]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        shown = json.loads(box.aliquot("show", lease, "-o", "json").stdout)
        processes: list[dict[str, int]] = shown["ledger"]["processes"]
        if processes and processes[0]["outerPid"] is not None:
            return processes[0]
    raise AssertionError("the keeper did not say who is inside")


@contextlib.contextmanager
def _holding(box: EngineBox, name: str, options: tuple[str, ...], words: tuple[str, ...]) -> Iterator[None]:
    """``words`` run in the container, and have said what they got, for the length of the block."""
    running = subprocess.Popen(
        [box.client, "exec", "-i", *options, name, *words],
        env=box.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    try:
        assert running.stdout.read(8)
        yield
    finally:
        running.communicate(timeout=30)

"""A program that was given a share never finds the card without a limit, whatever became of its files."""

import json
import shutil
import signal
import subprocess
import sys

from tests.flow.box import TENANT, Box, Tenant

GIB = 1 << 30


def with_a_bare_driver(box: Box) -> Box:
    """As on a machine whose libcuda any program finds, Aliquot or not."""
    done = box.aliquot("softgpu", "env", "-o", "json")
    box.environ |= json.loads(done.stdout)["env"]
    return box


def see(box: Box, *words: str) -> "subprocess.CompletedProcess[str]":
    return box.aliquot("run", "-q", *words, sys.executable, str(TENANT), input="see\n")


def test_a_lease_whose_files_were_removed_gets_them_again(gpu_box: Box) -> None:
    box = with_a_bare_driver(gpu_box)
    lease = box.aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    shutil.rmtree(box.runtime / "shares")
    assert f'"total": {GIB}' in see(box, "--lease", lease, "--").stdout
    assert box.aliquot("release", lease).returncode == 0


def test_files_removed_under_a_running_program_let_no_second_one_in(gpu_box: Box) -> None:
    box = with_a_bare_driver(gpu_box)
    lease = box.aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    words = ["run", "-q", "--lease", lease, "--", sys.executable, str(TENANT)]
    first = Tenant([sys.executable, "-m", "aliquot", *words], box.environ)
    shutil.rmtree(box.runtime / "shares")
    done = see(box, "--lease", lease, "--")
    assert done.returncode == 125
    assert "[governor-missing]" in done.stderr
    assert done.stdout == ""
    # It is said by every command, and mended by one.
    assert f"files of lease {lease} are gone" in box.aliquot("leases").stderr
    assert first("see")["total"] == GIB
    assert box.aliquot("release", "--force", lease).returncode == 0
    assert first.process.wait(timeout=20) == 128 + signal.SIGTERM
    first.process.communicate()


def test_a_program_without_our_variable_is_known_by_its_library_path(gpu_box: Box) -> None:
    """It could load libcuda at any time: the lease must not end and take the governor from it."""
    box = with_a_bare_driver(gpu_box)
    later = f"while [ ! -e go ]; do sleep 0.05; done; echo see | {sys.executable} {TENANT}"
    script = f"env -u ALIQUOT_LEASE setsid sh -c '{later}' > out 2> err < /dev/null &"
    folder = box.state.parent
    assert box.aliquot("run", "-q", "--gpu", "1GiB", "--", "sh", "-c", script, cwd=folder).returncode == 0
    (lease,) = box.items("leases")
    (folder / "go").touch()
    box.eventually(lambda: box.items("leases") == [], within=20)
    assert f'"total": {GIB}' in (folder / "out").read_text()
    assert lease["state"] == "held"


def test_an_expired_lease_gives_a_late_program_nothing(gpu_box: Box) -> None:
    box = with_a_bare_driver(gpu_box)
    lease = box.aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    later = f"touch here; while [ ! -e go ]; do sleep 0.05; done; echo see | {sys.executable} {TENANT}"
    folder = box.state.parent
    process = subprocess.Popen(
        [sys.executable, "-m", "aliquot", "run", "-q", "--lease", lease, "--", "sh", "-c", later],
        env=box.environ,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    box.eventually((folder / "here").exists, within=60)
    assert box.aliquot("extend", lease, "--for", "1s").returncode == 0
    box.eventually(lambda: "releasing" in box.aliquot("leases").stdout, within=20)
    (folder / "go").touch()
    seen, _ = process.communicate(timeout=30)
    assert '"error"' in seen or '"total": 0' in seen
    box.eventually(lambda: box.items("leases") == [], within=20)


def test_an_argument_that_is_no_text_is_passed_on(gpu_box: Box) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "aliquot", "run", "-q", "--gpu", "10%", "--", "printf", "%s", b"\xff"],
        env=gpu_box.environ,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"\xff")
    why = subprocess.run(
        [sys.executable, "-m", "aliquot", "why", b"\xff"],
        env=gpu_box.environ,
        capture_output=True,
        check=False,
    )
    assert why.returncode == 2

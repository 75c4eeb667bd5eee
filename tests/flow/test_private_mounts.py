"""A process share in mounts of its own: whichever way a program opens the driver, it gets the governor."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.flow.box import Box

from aliquot.node.private_mounts import why_not

GIB = 1 << 30

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no mount namespaces here: {why_not()}")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs a program as somebody else")

LOOK = """
import ctypes, sys
cuda, total = ctypes.CDLL(sys.argv[1]), ctypes.c_size_t()
print(cuda.cuInit(0), cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0), total.value)
"""


def driver(box: Box) -> str:
    """The software GPU's own libcuda, as anybody may find it."""
    done = box.aliquot("softgpu", "env", "-o", "json")
    folder = json.loads(done.stdout)["env"]["LD_LIBRARY_PATH"].split(":")[0]
    return f"{folder}/libcuda.so.1"


def look(box: Box, *options: str, library: str) -> "subprocess.CompletedProcess[str]":
    words = ["env", "-u", "LD_LIBRARY_PATH", sys.executable, "-c", LOOK, library]
    return box.aliquot("run", "-q", "--gpu", "1GiB", *options, "--", *words)


def ended(box: Box) -> dict[str, str]:
    found: dict[str, str] = box.items("leases", "--ended")[0]
    return found


def test_the_drivers_own_path_leads_to_the_governor(gpu_box: Box) -> None:
    library = driver(gpu_box)
    assert look(gpu_box, library=library).stdout == f"0 0 {GIB}\n"
    found = ended(gpu_box)
    assert found["isolation"] == "advisory"
    assert "its process" in found["isolationWhy"]
    # Without them the same program is not held, and the lease says so.
    bare = look(gpu_box, "--inject", "path", library=library).stdout
    assert int(bare.split()[2]) > 10 * GIB
    assert "library path alone" in ended(gpu_box)["isolationWhy"]


def test_where_the_kernel_allows_none_the_library_path_remains(gpu_box: Box) -> None:
    words = [sys.executable, "-m", "aliquot", "run", "-q", "--gpu", "1GiB", "--", sys.executable, "-c"]
    script = 'echo 0 > /proc/sys/user/max_mnt_namespaces; exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, "sh", *words, LOOK, "libcuda.so.1"],
        env=gpu_box.environ,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stdout == f"0 0 {GIB}\n", done.stderr
    found = ended(gpu_box)
    assert "without a mount namespace (unshare: No space left on device)" in found["isolationWhy"]


def test_show_says_why_a_share_is_no_more_than_advisory(gpu_box: Box) -> None:
    with gpu_box.tenant("1GiB"):
        (lease,) = gpu_box.items("leases")
        shown = gpu_box.aliquot("show", lease["id"]).stdout
    assert f"advisory: the governor holds whoever does not go round it: {lease['isolationWhy']}" in shown


@pytest.fixture
def nobodys() -> str:
    """The name of a user without rights."""
    return pwd.getpwuid(65534).pw_name


@root_only
def test_another_users_process_is_held_softly_and_cannot_undo_it(gpu_box: Box, nobodys: str) -> None:
    script = (
        f"id -u; /usr/bin/python3 -c '{LOOK}' libcuda.so.1;"
        "umount /run/aliquot/share 2>/dev/null && echo left;"
        "(echo > /run/aliquot/share/limits) 2>/dev/null && echo written; exit 3"
    )
    done = gpu_box.aliquot(
        "run", "-q", "--gpu", "1GiB", "--isolation", "soft", "--user", nobodys, "--", "sh", "-c", script
    )
    assert (done.stdout, done.returncode) == (f"65534\n0 0 {GIB}\n", 3), done.stderr
    found = ended(gpu_box)
    assert found["isolation"] == "soft"
    assert found["isolationWhy"] is None


@root_only
def test_what_another_user_cannot_be_given_is_refused_before_anything_is_leased(gpu_box: Box) -> None:
    for options, code, said in (
        (["--user", "nobody-of-that-name"], 3, "[not-found]"),
        (["--user", "root"], 2, "[bad-usage]"),
        (["--user", "nobody", "--inject", "path"], 5, "[not-enforceable]"),
        (["--isolation", "soft"], 5, "[not-enforceable]"),
    ):
        done = gpu_box.aliquot("run", "--gpu", "1GiB", *options, "--", "true")
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert gpu_box.items("leases", "--ended") == []


@root_only
def test_a_user_without_root_has_a_namespace_of_his_own() -> None:
    """He is himself in it, and finds his share at a path that no variable moves."""
    home = Path("/tmp") / f"aliquot-test-{os.getpid()}"
    home.mkdir()
    os.chown(home, 65534, 65534)
    box = Box(home)
    as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-B"]
    environ = box.environ | {"HOME": str(home)}
    try:
        if subprocess.run([*as_nobody, "-c", "import aliquot"], check=False, capture_output=True).returncode:
            pytest.skip("another user cannot read this checkout")

        def run(*words: str) -> str:
            done = subprocess.run(
                [*as_nobody, "-m", "aliquot", *words],
                env=environ,
                text=True,
                capture_output=True,
                check=False,
            )
            return done.stdout or done.stderr

        run("softgpu", "create", "tiny")
        library = json.loads(run("softgpu", "env", "-o", "json"))["env"]["LD_LIBRARY_PATH"].split(":")[0]
        words = ["env", "-u", "LD_LIBRARY_PATH", "/usr/bin/python3", "-c", LOOK, f"{library}/libcuda.so.1"]
        assert run("run", "-q", "--gpu", "50%", "--", *words).startswith("0 0 ")
        assert run("run", "-q", "--gpu", "50%", "--", "id", "-u") == "65534\n"
        (found, _) = json.loads(run("leases", "--ended", "-o", "json"))["items"]
        assert "has the uid of the share's files, 65534" in found["isolationWhy"]
    finally:
        shutil.rmtree(home)
        shutil.rmtree("/tmp/aliquot-65534", ignore_errors=True)

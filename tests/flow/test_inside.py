"""What a program in a share sees, whatever it sets, starts or forgets."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.flow.box import TENANT, Box

from aliquot.node.private_mounts import why_not

NO_DEVICE = 100


@pytest.fixture
def box_of_three(box: Box) -> Box:
    done = box.aliquot("softgpu", "create", "2xT4", "A100-40")
    assert done.returncode == 0, done.stderr
    return box


def inside(box: Box, script: str, gpu: str = "1GiB", **environ: str) -> "subprocess.CompletedProcess[str]":
    """A shell in the share; $TENANT is the line that prints what a CUDA program sees."""
    box.environ |= environ
    tenant = f"echo see | {sys.executable} {TENANT}"
    return box.aliquot("run", "-q", "--gpu", gpu, "--", "sh", "-c", script.replace("$TENANT", tenant))


def devices(done: "subprocess.CompletedProcess[str]") -> str:
    """``1 1073741824``: devices and memory of the first, or the error's number."""
    assert done.stdout, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    return str(seen.get("error", f"{seen.get('devices')} {seen.get('total')}"))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("$TENANT", f"1 {1 << 30}"),
        ("unset CUDA_VISIBLE_DEVICES; $TENANT", f"1 {1 << 30}"),
        ("CUDA_VISIBLE_DEVICES=0 $TENANT", f"1 {1 << 30}"),
        ("CUDA_VISIBLE_DEVICES=1 $TENANT", "0 None"),
        ("CUDA_VISIBLE_DEVICES= $TENANT", "0 None"),
        ("sh -c 'sh -c \"$TENANT\"'", f"1 {1 << 30}"),
        ("unset ALIQUOT_LEASE; $TENANT", f"1 {1 << 30}"),
        ("env -u ALIQUOT_LEASE -u ALIQUOT_STATE_DIR -u ALIQUOT_RUNTIME_DIR $TENANT", f"1 {1 << 30}"),
    ],
)
def test_the_share_is_all_there_is(box_of_three: Box, script: str, expected: str) -> None:
    if "env -u" in script or "CUDA_VISIBLE_DEVICES" in script:
        # A prefix of `echo | python` belongs to python, not to echo.
        variables, _, rest = script.rpartition("$TENANT")
        if not variables.rstrip().endswith(";"):
            script = f"echo see | {variables}{sys.executable} {TENANT}{rest}"
    seen = devices(inside(box_of_three, script))
    assert seen in (expected, str(NO_DEVICE) if expected == "0 None" else expected)


def test_an_inherited_selection_is_within_the_share(box_of_three: Box) -> None:
    """Ordinal 2 of the machine is no ordinal of a share of one device."""
    assert devices(inside(box_of_three, "$TENANT", CUDA_VISIBLE_DEVICES="2")) in ("0 None", str(NO_DEVICE))


def test_two_gpus_are_two_devices_and_can_be_narrowed(box_of_three: Box) -> None:
    gpu = "2xT4:1GiB"
    assert devices(inside(box_of_three, "$TENANT", gpu=gpu)) == f"2 {1 << 30}"
    script = f"echo see | CUDA_VISIBLE_DEVICES=1 {sys.executable} {TENANT}"
    assert devices(inside(box_of_three, script, gpu=gpu)) == f"1 {1 << 30}"


def test_a_whole_gpu_has_no_governor(box_of_three: Box) -> None:
    done = inside(box_of_three, "$TENANT; cat /proc/self/environ", gpu="A100-40")
    assert "shares" in done.stdout
    program = 'import ctypes; ctypes.CDLL("libcuda.so.1"); print(open("/proc/self/maps").read())'
    maps = inside(box_of_three, f"{sys.executable} -c '{program}'", gpu="A100-40").stdout
    assert "/softgpu/libcuda.so.1" in maps
    assert "/governor/" not in maps


def test_no_variable_of_the_tenant_changes_its_limit(gpu_box: Box) -> None:
    names = (
        "CUDA_DEVICE_MEMORY_LIMIT",
        "ALIQUOT_LIMITS",
        "ALIQUOT_MEMORY",
        "ALIQUOT_SHARE",
        "ALIQUOT_STATE_DIR",
    )
    script = f"echo see | {' '.join(f'{name}=/tmp' for name in names)} {sys.executable} {TENANT}"
    assert devices(inside(gpu_box, script)) == f"1 {1 << 30}"


def test_with_broken_limits_a_program_gets_nothing_and_one_sentence(gpu_box: Box) -> None:
    lease = gpu_box.aliquot("lease", "--gpu", "1GiB", "-o", "name").stdout.strip()
    limits = gpu_box.runtime / "shares" / lease / "limits"
    limits.unlink()
    limits.write_bytes(b"nonsense")
    done = gpu_box.aliquot("run", "-q", "--lease", lease, "--", sys.executable, str(TENANT), input="see\n")
    assert "limits" in done.stdout
    assert '"error"' in done.stdout
    assert gpu_box.aliquot("release", lease).returncode == 0


@pytest.fixture
def open_box() -> Iterator[Box]:
    """In a folder that other users may enter, as pytest's own is not."""
    folder = Path(tempfile.mkdtemp(prefix="aliquot-box-"))
    folder.chmod(0o755)
    try:
        yield Box(folder)
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving up root needs root")
def test_a_tenant_that_gives_up_root_is_held_or_fails_closed(open_box: Box) -> None:
    """Without mounts it finds the governor, which finds no ledger it may write: never the bare card."""
    assert open_box.aliquot("softgpu", "create", "T4").returncode == 0
    program = Path(shutil.copy(TENANT, open_box.state.parent))
    program.chmod(0o755)
    see = f"echo see | setpriv --reuid 65534 --clear-groups /usr/bin/python3 {program}"
    words = ["run", "-q", "--gpu", "1GiB", "--", "sh", "-c", see]
    if why_not() is None:
        assert devices(open_box.aliquot(*words)) == f"1 {1 << 30}"
    done = open_box.aliquot(*words[:2], "--inject", "path", *words[2:])
    assert '"error": 802' in done.stdout, done.stderr
    assert "ledger" in done.stdout

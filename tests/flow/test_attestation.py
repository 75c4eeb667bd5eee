"""Who went round the governor is seen from outside, and stands in the lease's story."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.flow.box import TENANT, Box, Tenant

MIB = 1 << 20


@pytest.mark.slow
def test_a_program_that_brings_its_own_driver_is_named(gpu_box: Box, tmp_path: Path) -> None:
    box = gpu_box
    with box.tenant("4GiB") as tenant:
        (lease,) = box.items("leases")
        assert tenant("take", MIB)["result"] == 0
        shown = _shown(box, lease["id"])
        (process,) = shown["ledger"]["processes"]
        assert process["pid"] == tenant.pid
        assert process["attestation"]["memoryHeld"]
        assert shown["ungoverned"] == []

        # The same program in the same share, but with a private copy of the driver on its path.
        driver = tmp_path / "driver"
        shutil.copytree(_driver_folder(box), driver)
        words = [sys.executable, "-m", "aliquot", "run", "--lease", lease["id"], "--"]
        escape = ["env", f"LD_LIBRARY_PATH={driver}", sys.executable, str(TENANT)]
        escaped = Tenant([*words, *escape], box.environ)
        assert escaped("take", 5 << 30) == {"result": 0, "pointer": True}
        shown = _shown(box, lease["id"])
        (flagged,) = shown["ungoverned"]
        assert flagged["pid"] == escaped.pid
        assert flagged["memoryBytes"] > 5 << 30
        assert flagged["why"] == "is not in the share's ledger"
        assert escaped.end() == 0
        assert _shown(box, lease["id"])["ungoverned"] == []
        told = [event for event in _shown(box, lease["id"])["story"] if event["what"] == "ungoverned"]
        assert len(told) == 1
        assert f"process {escaped.pid} " in told[0]["detail"]


def _shown(box: Box, lease: str) -> dict:  # type: ignore[type-arg]
    done = box.aliquot("show", lease, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: dict = json.loads(done.stdout)  # type: ignore[type-arg]
    return found


def _driver_folder(box: Box) -> Path:
    """Where the software GPU's own libcuda lies for programs without a share."""
    (folder,) = (box.state / "lib").glob("*/softgpu")
    return folder

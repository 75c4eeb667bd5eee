"""Whatever the kernel's files hold, a look gives a Snapshot."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.inventory.kernel_log import xids
from aliquot.model import Snapshot

if TYPE_CHECKING:
    from tests.unit.inventory.conftest import FakeMachine

CONTENT = st.one_of(
    st.binary(max_size=80),
    st.sampled_from(
        [b"0x1002\n", b"-1", b"0x", b"9" * 400, b"\0", b"GPU UUID: \t GPU-x\n", b"NVRM version:"]
    ),
)
ATTRIBUTES = (
    "vendor",
    "device",
    "class",
    "unique_id",
    "product_name",
    "mem_info_vram_total",
    "gpu_busy_percent",
    "hwmon/hwmon0/temp1_input",
    "drm/renderDx/dev",
    "tile0/physical_vram_size_bytes",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    vendor=st.sampled_from([0x10DE, 0x1002, 0x8086, 0x10EE, 0x1172]),
    files=st.dictionaries(st.sampled_from(ATTRIBUTES), CONTENT, max_size=6),
    proc=CONTENT,
    log=CONTENT,
)
def test_nothing_in_sysfs_and_proc_makes_a_look_raise(
    machine: "FakeMachine", vendor: int, files: dict[str, bytes], proc: bytes, log: bytes
) -> None:
    folder = machine.sysfs / "bus/pci/devices/0000:17:00.0"
    if not folder.exists():
        machine.pci("0000:17:00.0", driver="something")
    machine.write(folder / "vendor", f"0x{vendor:04x}")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    information = machine.proc / "driver/nvidia/gpus/0000:17:00.0/information"
    machine.write(information, "")
    information.write_bytes(proc)
    (machine.proc / "driver/nvidia/version").write_bytes(proc)
    (machine.dev / "kmsg").write_bytes(log)
    snapshot = machine.look()
    assert isinstance(snapshot, Snapshot)
    assert [gpu.index for gpu in snapshot.gpus] == list(range(len(snapshot.gpus)))


@pytest.mark.parametrize("kind", ["folder", "missing"])
def test_a_kernel_log_that_cannot_be_read_has_no_xids(machine: "FakeMachine", kind: str) -> None:
    log = machine.dev / "kmsg"
    if kind == "folder":
        log.mkdir()
    assert xids(log) == {}


def test_a_driver_folder_that_is_a_circle_of_links_is_passed_over(machine: "FakeMachine") -> None:
    folder = machine.pci("0000:17:00.0", vendor=0x1002, driver=None)
    (folder / "driver").symlink_to("driver")
    assert len(machine.look().gpus) == 1

"""The software GPU itself, read as `aliquot gpus` reads it, while a real process uses it."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aliquot.inventory import look
from aliquot.model import GIB, MIB, AliquotError, Gpu, HealthState, Reason, Snapshot, Vendor
from aliquot.softgpu import SoftGpu, create, environment, library_folder, list_devices, remove
from aliquot.softgpu.failing import clear_failures, order_failures, parse_failures

HOLD = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"{name} gave {code}")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1])))
print("holding", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "softgpu"


def make(root: Path, *, profile: str = "T4", count: int = 1) -> tuple[SoftGpu, ...]:
    return create(root, profile=profile, count=count, at=1, entropy=lambda: uuid.uuid4().int)


def see(root: Path) -> Snapshot:
    """Only the software GPUs: nothing else of the machine that the test runs on."""
    nowhere = root / "nowhere"
    return look(
        softgpu_root=root, softgpu_library_folder=library_folder(), sysfs=nowhere, dev=nowhere, root=nowhere
    )


def see_one(root: Path) -> Gpu:
    (gpu,) = see(root).gpus
    return gpu


@contextmanager
def holding(root: Path, size: int) -> Iterator[subprocess.Popen[str]]:
    """A process that has a context and an allocation of ``size`` bytes on the first device."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(size)],
        env={**os.environ, **environment(library_folder()), "ALIQUOT_STATE_DIR": str(root.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_every_figure_of_the_profile_is_seen_through_nvml(root: Path) -> None:
    (made,) = make(root)
    snapshot = see(root)
    (gpu,) = snapshot.gpus
    assert (gpu.uuid, gpu.vendor, gpu.name, gpu.pci_id) == (
        made.uuid,
        Vendor.SOFTWARE,
        made.name,
        made.pci_id,
    )
    assert (gpu.memory, gpu.memory_reserved, gpu.context_bytes) == (15 * GIB, 434 * MIB, 106 * MIB)
    assert (gpu.compute_capability, gpu.multiprocessors) == ((7, 5), 40)
    assert gpu.memory_used == 0
    assert gpu.processes == ()
    assert gpu.health.state is HealthState.HEALTHY
    assert snapshot.notices == ()
    assert snapshot.node.cuda_version is not None


def test_devices_are_in_the_order_of_their_bus_ids(root: Path) -> None:
    made = make(root, profile="tiny", count=5)
    assert [gpu.uuid for gpu in see(root).gpus] == [device.uuid for device in made]


def test_a_process_is_seen_with_its_memory_and_its_command(root: Path) -> None:
    make(root)
    with holding(root, 256 * MIB) as process:
        gpu = see_one(root)
        assert gpu.memory_used is not None
        assert gpu.context_bytes is not None
        assert gpu.memory_used >= 256 * MIB + gpu.context_bytes
        (seen,) = gpu.processes or ()
        assert seen.pid == process.pid
        assert seen.memory == gpu.memory_used
        assert seen.command is not None
        assert "-c" in seen.command


def test_what_a_killed_process_held_is_free_at_the_next_look(root: Path) -> None:
    make(root)
    with holding(root, 256 * MIB) as process:
        process.kill()
        process.wait()
        gpu = see_one(root)
        assert gpu.memory_used == 0
        assert gpu.processes == ()


def test_a_device_is_not_removed_from_under_a_process_and_is_afterwards(root: Path) -> None:
    (device,) = make(root)
    with holding(root, MIB):
        with pytest.raises(AliquotError) as refused:
            remove(root, device.uuid)
        assert refused.value.reason is Reason.SOFTGPU_BUSY
        assert see_one(root).uuid == device.uuid
    remove(root, device.uuid)
    assert list_devices(root) == ()
    assert [notice.code for notice in see(root).notices] == ["no-gpu"]


@pytest.mark.parametrize("file", ["device", "state", "arena"])
def test_a_device_that_lost_a_file_never_raises_and_leaves_the_others(root: Path, file: str) -> None:
    broken, sound = make(root, profile="tiny", count=2)
    (broken.folder / file).unlink()
    snapshot = see(root)
    assert sound.uuid in [gpu.uuid for gpu in snapshot.gpus]
    told = [gpu.uuid for gpu in snapshot.gpus] + [notice.fix for notice in snapshot.notices]
    assert any(broken.uuid in (text or "") for text in told)


def test_a_process_that_looks_is_not_a_user_of_the_device(root: Path) -> None:
    (device,) = make(root)
    see(root)
    remove(root, device.uuid)
    assert list_devices(root) == ()


@pytest.mark.parametrize(
    ("xid", "state"),
    [
        *((xid, HealthState.UNHEALTHY) for xid in (48, 62, 64, 74, 95, 119, 120)),
        *((xid, HealthState.HEALTHY) for xid in (13, 31, 43, 45, 68)),
        (79, HealthState.LOST),
    ],
)
def test_an_xid_on_demand_takes_a_device_out_of_service_as_it_does_a_card(
    root: Path, xid: int, state: HealthState
) -> None:
    device, other = make(root, count=2)
    order_failures(device, parse_failures(f"xid=13,xid={xid}"), at=1)
    told, untouched = sorted(see(root).gpus, key=lambda gpu: gpu.uuid != device.uuid)
    assert told.health.state is state
    if state is not HealthState.HEALTHY:
        assert f"XID {xid} told by aliquot softgpu fail" in (told.health.why or "")
    assert (untouched.uuid, untouched.health.state) == (other.uuid, HealthState.HEALTHY)
    clear_failures(device)
    assert {gpu.health.state for gpu in see(root).gpus} == {HealthState.HEALTHY}

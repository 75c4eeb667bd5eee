"""Software GPUs beside real ones: one process, two NVML libraries, one order."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aliquot.model import MIB, Snapshot, Vendor

if TYPE_CHECKING:
    from tests.unit.inventory.conftest import FakeMachine

SOFTWARE = "GPU-aaaaaaaa-0000-4000-8000-00000000000{}"


class Devices:
    """Software GPUs on disk, and a library that reports those that its script names."""

    def __init__(self, machine: "FakeMachine") -> None:
        self.machine = machine
        self.folder = machine.root / "state/softgpu"
        self.library_folder = machine.root / "lib/softgpu"

    def make(self, number: int, *, context: str = "110100480") -> str:
        uuid = SOFTWARE.format(number)
        self.machine.write(
            self.folder / uuid / "device", f"# made\nuuid {uuid}\ncontext_bytes {context}\nunknown 1\n"
        )
        return uuid

    def report(self, *numbers: int, more: str = "") -> None:
        cards = "".join(
            f"card\nname Tesla T4 (software)\nuuid {SOFTWARE.format(number)}\n"
            f"bus 00000000:FF:{number:02X}.0\ntotal 1073741824\nreserved 0\nused 4096\nsms 40\n"
            for number in numbers
        )
        self.machine.library(self.library_folder, f"driver 0.1\ncuda 13000\n{more}{cards}")

    def look(self) -> Snapshot:
        return self.machine.look(softgpu_root=self.folder, softgpu_library_folder=self.library_folder)


@pytest.fixture
def devices(machine: "FakeMachine") -> Devices:
    return Devices(machine)


def test_a_software_gpu_is_found_with_what_its_file_tells(devices: Devices) -> None:
    uuid = devices.make(0)
    devices.report(0)
    snapshot = devices.look()
    (gpu,) = snapshot.gpus
    assert (gpu.uuid, gpu.vendor, gpu.name, gpu.pci_id) == (
        uuid,
        Vendor.SOFTWARE,
        "Tesla T4 (software)",
        "0000:ff:00.0",
    )
    assert gpu.context_bytes == 105 * MIB
    assert gpu.multiprocessors == 40
    assert gpu.shareable
    assert snapshot.notices == ()
    assert snapshot.node.cuda_version == (13, 0)
    assert snapshot.node.driver_version is None


def test_real_and_software_gpus_are_read_in_one_process_without_mixing(devices: Devices) -> None:
    machine = devices.machine
    machine.pci("0000:3b:00.0")
    machine.install("driver 550.54.15\ncuda 12040\n" + machine.card(0))
    devices.make(0)
    devices.make(1)
    devices.report(0, 1)
    for _ in range(2):
        snapshot = devices.look()
        assert [(gpu.index, gpu.vendor, gpu.pci_id) for gpu in snapshot.gpus] == [
            (0, Vendor.NVIDIA, "0000:3b:00.0"),
            (1, Vendor.SOFTWARE, "0000:ff:00.0"),
            (2, Vendor.SOFTWARE, "0000:ff:01.0"),
        ]
        assert snapshot.node.driver_version == "550.54.15"
        assert snapshot.node.cuda_version == (12, 4)


def test_a_broken_real_driver_leaves_the_software_gpus(devices: Devices) -> None:
    devices.machine.pci("0000:3b:00.0")
    devices.machine.install("fail nvmlInitWithFlags 18\n")
    devices.make(0)
    devices.report(0)
    snapshot = devices.look()
    assert [gpu.vendor for gpu in snapshot.gpus] == [Vendor.NVIDIA, Vendor.SOFTWARE]
    assert [notice.code for notice in snapshot.notices] == ["driver-mismatch"]


def test_a_broken_software_gpu_leaves_the_others_and_names_the_fix(devices: Devices) -> None:
    good, bad = devices.make(0), devices.make(1)
    devices.report(0)
    snapshot = devices.look()
    assert [gpu.uuid for gpu in snapshot.gpus] == [good]
    (notice,) = snapshot.notices
    assert (notice.code, notice.fix) == ("softgpu-device-broken", f"aliquot softgpu remove {bad}")


def test_a_library_that_fails_is_a_notice(devices: Devices) -> None:
    devices.make(0)
    devices.report(0, more="fail nvmlInitWithFlags 999\nwords 999 no room for the state file\n")
    snapshot = devices.look()
    assert snapshot.gpus == ()
    assert [notice.code for notice in snapshot.notices] == ["softgpu-broken", "no-gpu"]
    assert "no room for the state file" in snapshot.notices[0].text


def test_a_library_that_was_not_built_is_a_notice(devices: Devices) -> None:
    devices.make(0)
    assert [notice.code for notice in devices.look().notices] == ["softgpu-library-missing", "no-gpu"]


def test_devices_of_another_users_folder_are_not_taken_for_ours(devices: Devices) -> None:
    devices.make(0)
    devices.report(0, 1)
    assert [gpu.uuid for gpu in devices.look().gpus] == [SOFTWARE.format(0)]


@pytest.mark.parametrize("content", ["", "-5", "12x", "９"])
def test_a_context_cost_that_is_no_number_is_unknown(devices: Devices, content: str) -> None:
    devices.make(0, context=content)
    devices.report(0)
    assert devices.look().gpus[0].context_bytes is None


@pytest.mark.parametrize("before", [None, "/somewhere"])
def test_the_environment_is_as_before(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is None:
        monkeypatch.delenv("ALIQUOT_STATE_DIR", raising=False)
    else:
        monkeypatch.setenv("ALIQUOT_STATE_DIR", before)
    devices.make(0)
    devices.report(0)
    devices.look()
    assert os.environ.get("ALIQUOT_STATE_DIR") == before


def loaded_after(program: str, *arguments: str) -> set[str]:
    code = f"import sys\nfrom pathlib import Path\n{program}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_machine_without_gpus_loads_no_binding_of_nvml(tmp_path: Path) -> None:
    (tmp_path / "softgpu").mkdir()
    program = """from aliquot.inventory import look
root = Path(sys.argv[1])
look(softgpu_root=root / "softgpu", sysfs=root, proc=root, dev=root, root=root)"""
    loaded = loaded_after(program, str(tmp_path))
    assert "aliquot.inventory.look" in loaded
    assert not loaded & {"ctypes", "pynvml", "subprocess", "tempfile", "msgspec", "aliquot.softgpu"}


def test_managing_software_gpus_loads_nothing_heavy(tmp_path: Path) -> None:
    program = "from aliquot.softgpu import list_devices\nlist_devices(Path(sys.argv[1]))"
    loaded = loaded_after(program, str(tmp_path))
    assert not loaded & {"ctypes", "pynvml", "subprocess", "aliquot.inventory", "msgspec"}

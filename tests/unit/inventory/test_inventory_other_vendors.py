"""AMD, Intel and FPGA cards from a sysfs made of files."""

from typing import TYPE_CHECKING

import pytest

from aliquot.model import Gpu, HealthState, Vendor

if TYPE_CHECKING:
    from tests.unit.inventory.conftest import FakeMachine

IDS = """# a comment
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t740c  Aldebaran/MI200 [Instinct MI250X/MI250]
\t\t1002 0b0c  a subsystem
\t740f  Aldebaran/MI200 [Instinct MI210]
10de  NVIDIA Corporation
\t740f  not this vendor's
"""


def only(machine: "FakeMachine") -> Gpu:
    (gpu,) = machine.look().gpus
    return gpu


def test_an_amd_card_is_listed_whole_with_what_its_driver_exports(machine: "FakeMachine") -> None:
    machine.pci(
        "0000:83:00.0",
        vendor=0x1002,
        device=0x740F,
        code=0x038000,
        driver="amdgpu",
        product_name="Instinct MI210\n",
        mem_info_vram_total="68702699520\n",
        mem_info_vram_used="11296768\n",
        gpu_busy_percent="7\n",
        unique_id="6f2ba3d1cc71a43e\n",
        hwmon__hwmon3__temp1_input="39000\n",
        drm__renderD129__dev="226:129\n",
    )
    gpu = only(machine)
    assert (gpu.vendor, gpu.name, gpu.pci_id) == (Vendor.AMD, "Instinct MI210", "0000:83:00.0")
    assert (gpu.memory, gpu.memory_used) == (68702699520, 11296768)
    assert (gpu.utilisation, gpu.temperature, gpu.minor) == (7, 39, 129)
    assert gpu.health.state is HealthState.UNKNOWN
    assert not gpu.shareable
    assert machine.look().notices == ()


def test_what_the_driver_does_not_export_is_none(machine: "FakeMachine") -> None:
    machine.pci(vendor=0x1002, device=0x740F, driver="amdgpu", mem_info_vram_total="nonsense\n")
    gpu = only(machine)
    assert (gpu.memory, gpu.memory_used, gpu.utilisation, gpu.temperature, gpu.minor) == (None,) * 5


def test_a_uuid_stays_with_the_card_where_it_has_a_serial_number(machine: "FakeMachine") -> None:
    machine.pci("0000:83:00.0", vendor=0x1002, driver="amdgpu", unique_id="6f2ba3d1cc71a43e\n")
    machine.pci("0000:84:00.0", vendor=0x1002, driver="amdgpu")
    first, second = (gpu.uuid for gpu in machine.look().gpus)
    assert first == "AMD-caee1b55-0703-534d-b7f0-1485f6d62ccc"  # another value would rename every card
    assert second.startswith("AMD-")
    assert second != first


def test_the_uuid_moves_with_its_card_to_another_slot(machine: "FakeMachine") -> None:
    machine.pci("0000:c1:00.0", vendor=0x1002, driver="amdgpu", unique_id="6f2ba3d1cc71a43e\n")
    assert only(machine).uuid == "AMD-caee1b55-0703-534d-b7f0-1485f6d62ccc"


def test_a_name_that_the_driver_does_not_tell_is_looked_up(machine: "FakeMachine") -> None:
    machine.write(machine.root / "usr/share/misc/pci.ids", IDS)
    machine.pci(vendor=0x1002, device=0x740F, driver="amdgpu")
    assert only(machine).name == "Aldebaran/MI200 [Instinct MI210]"


def test_a_name_that_is_nowhere_has_the_device_id(machine: "FakeMachine") -> None:
    machine.write(machine.root / "usr/share/hwdata/pci.ids", IDS)
    machine.pci(vendor=0x1002, device=0x1234, driver="amdgpu")
    assert only(machine).name == "AMD GPU 1234"


def test_a_card_without_a_kernel_driver_is_unhealthy(machine: "FakeMachine") -> None:
    machine.pci(vendor=0x1002, driver=None)
    health = only(machine).health
    assert (health.state, health.why) == (HealthState.UNHEALTHY, "no kernel driver")


def test_a_discrete_intel_card_is_listed_and_an_integrated_one_is_not(machine: "FakeMachine") -> None:
    machine.pci("0000:00:02.0", vendor=0x8086, device=0x9A49, code=0x030000, driver="i915")
    machine.pci("0000:4d:00.0", vendor=0x8086, device=0x0BD5, code=0x038000, driver="xe")
    gpu = only(machine)
    assert (gpu.vendor, gpu.pci_id, gpu.memory) == (Vendor.INTEL, "0000:4d:00.0", None)


def test_memory_of_intel_cards_is_read_where_a_driver_exports_it(machine: "FakeMachine") -> None:
    machine.pci("0000:4d:00.0", vendor=0x8086, driver="i915", drm__card1__lmem_total_bytes="17079205888\n")
    machine.pci(
        "0000:4e:00.0",
        vendor=0x8086,
        driver="xe",
        tile0__physical_vram_size_bytes="0x1000000000\n",
        tile1__physical_vram_size_bytes="0x1000000000\n",
    )
    assert [gpu.memory for gpu in machine.look().gpus] == [17079205888, 2 * 0x1000000000]


def test_an_alveo_card_with_two_functions_is_one_device(machine: "FakeMachine") -> None:
    machine.pci("0000:65:00.0", vendor=0x10EE, device=0x5000, code=0x120000, driver="xclmgmt")
    machine.pci("0000:65:00.1", vendor=0x10EE, device=0x5001, code=0x120000, driver="xocl")
    gpu = only(machine)
    assert (gpu.vendor, gpu.pci_id) == (Vendor.XILINX, "0000:65:00.0")


@pytest.mark.parametrize(
    ("vendor", "device", "code", "name"),
    [
        (0x1172, 0x2494, 0x120000, "Altera FPGA 2494"),
        (0x8086, 0x09C4, 0x120000, "Intel Programmable Acceleration Card with Arria 10 GX"),
        (0x8086, 0x0B2B, 0x120000, "Intel FPGA Programmable Acceleration Card D5005"),
    ],
)
def test_fpga_cards_of_altera_and_intel_are_listed(
    machine: "FakeMachine", vendor: int, device: int, code: int, name: str
) -> None:
    machine.pci("0000:17:00.0", vendor=vendor, device=device, code=code, driver="dfl-pci")
    gpu = only(machine)
    assert (gpu.vendor, gpu.name) == (Vendor.ALTERA, name)


@pytest.mark.parametrize(
    ("vendor", "device", "code"),
    [
        (0x1A03, 0x2000, 0x030000),  # ASPEED, a server's management controller
        (0x102B, 0x0536, 0x030000),  # Matrox, another
        (0x1234, 0x1111, 0x030000),  # QEMU's standard VGA
        (0x1AF4, 0x1050, 0x038000),  # virtio
        (0x15AD, 0x0405, 0x030000),  # VMware
        (0x1414, 0x5353, 0x030000),  # Hyper-V
        (0x8086, 0x7D1D, 0x120000),  # an NPU, no FPGA
        (0x10EE, 0x7024, 0x058000),  # an FPGA that is not an accelerator
        (0x10DE, 0x228B, 0x040300),  # the sound function of a GPU
        (0x10DE, 0x1AF1, 0x068000),  # an NVSwitch
    ],
)
def test_what_is_no_accelerator_is_not_listed(
    machine: "FakeMachine", vendor: int, device: int, code: int
) -> None:
    machine.pci(vendor=vendor, device=device, code=code, driver="whatever")
    assert machine.look().gpus == ()


def test_a_virtual_function_is_not_listed_beside_its_card(machine: "FakeMachine") -> None:
    card = machine.pci("0000:83:00.0", vendor=0x1002, driver="amdgpu")
    function = machine.pci("0000:83:02.0", vendor=0x1002, driver="amdgpu")
    (function / "physfn").symlink_to(card)
    assert only(machine).pci_id == "0000:83:00.0"


def test_cards_of_all_vendors_are_in_one_order(machine: "FakeMachine") -> None:
    machine.install(machine.card(0))
    machine.pci("0000:3b:00.0")
    machine.pci("0000:17:00.0", vendor=0x1002, driver="amdgpu")
    machine.pci("0000:4d:00.0", vendor=0x8086, driver="xe")
    gpus = machine.look().gpus
    assert [(gpu.index, gpu.vendor) for gpu in gpus] == [
        (0, Vendor.AMD),
        (1, Vendor.NVIDIA),
        (2, Vendor.INTEL),
    ]


@pytest.mark.parametrize("broken", ["class", "vendor", "device"])
def test_an_entry_that_is_not_as_the_kernel_writes_it_is_passed_over(
    machine: "FakeMachine", broken: str
) -> None:
    machine.pci("0000:17:00.0", vendor=0x1002, driver="amdgpu")
    folder = machine.pci("0000:83:00.0", vendor=0x1002, driver="amdgpu")
    (folder / broken).write_bytes(b"\xff\xfe nonsense")
    assert only(machine).pci_id == "0000:17:00.0"

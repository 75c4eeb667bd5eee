"""NVIDIA's cards through the real nvidia-ml-py and a scripted NVML."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aliquot.model import MIB, Gpu, GpuProcess, HealthState, Mig, Notice, Severity, Snapshot, Vendor

if TYPE_CHECKING:
    from tests.unit.inventory.conftest import FakeMachine

HEAD = "driver 550.54.15\ncuda 12040\n"


def codes(snapshot: Snapshot) -> list[str]:
    return [notice.code for notice in snapshot.notices]


def the_notice(snapshot: Snapshot, code: str) -> Notice:
    (notice,) = (one for one in snapshot.notices if one.code == code)
    assert notice.fix, f"{code} has no fix"
    return notice


def only_gpu(snapshot: Snapshot) -> Gpu:
    (gpu,) = snapshot.gpus
    return gpu


def test_every_field_of_a_sound_card_is_read(machine: "FakeMachine") -> None:
    machine.pci()
    machine.install(HEAD + machine.card(more="mig 0\nrecovery 0\nremap-pending 0\nremap-failed 0\nretired 0"))
    snapshot = machine.look()
    assert snapshot.node.driver_version == "550.54.15"
    assert snapshot.node.cuda_version == (12, 4)
    assert snapshot.notices == ()
    gpu = only_gpu(snapshot)
    assert gpu.uuid == "GPU-00000000-0000-4000-8000-000000000000"
    assert (gpu.index, gpu.vendor, gpu.name, gpu.pci_id) == (0, Vendor.NVIDIA, "Tesla T4", "0000:3b:00.0")
    assert gpu.memory == 15360 * MIB
    assert gpu.memory_reserved == 434 * MIB
    assert gpu.memory_used == 1024 * MIB
    assert gpu.compute_capability == (7, 5)
    assert gpu.multiprocessors == 40
    assert (gpu.utilisation, gpu.temperature, gpu.minor) == (37, 41, 0)
    assert gpu.mig is Mig.DISABLED
    assert (gpu.health.state, gpu.health.why) == (HealthState.HEALTHY, None)
    assert gpu.processes == ()
    assert gpu.context_bytes is None


FIELDS = {
    "nvmlDeviceGetName": "name",
    "nvmlDeviceGetCudaComputeCapability": "compute_capability",
    "nvmlDeviceGetUtilizationRates": "utilisation",
    "nvmlDeviceGetTemperature": "temperature",
    "nvmlDeviceGetMigMode": "mig",
    "nvmlDeviceGetMinorNumber": "minor",
    "nvmlDeviceGetMemoryInfo_v2": "memory_reserved",
    "nvmlDeviceGetNumGpuCores": "multiprocessors",
    "nvmlDeviceGetUUID": "uuid",
    "nvmlDeviceGetPciInfo_v3": "pci_id",
    "nvmlDeviceGetTotalEccErrors": "",
    "nvmlDeviceGetRemappedRows": "",
    "nvmlDeviceGetFieldValues": "",
    "nvmlDeviceGetRetiredPagesPendingStatus": "",
    "nvmlDeviceGetAttributes_v2": "",
    "nvmlDeviceGetProcessUtilization": "",
}
ALSO = {
    "nvmlDeviceGetMemoryInfo_v2": {"memory_used"},  # the older call counts the reserved part as used
    "nvmlDeviceGetCudaComputeCapability": {"multiprocessors"},  # cores are divided by what it says
}


@pytest.mark.parametrize("function", FIELDS)
@pytest.mark.parametrize("code", [3, 4, 13, 999, 4711])
def test_a_field_that_fails_spoils_no_other(machine: "FakeMachine", function: str, code: int) -> None:
    """Not supported, no permission, function not found, unknown, and a code of the future."""
    script = HEAD + machine.card(more="mig 0")
    machine.install(script)
    sound = only_gpu(machine.look())
    machine.install(f"fail {function} {code}\n{script}")
    gpu = only_gpu(machine.look())
    different = {key for key in Gpu.__slots__ if getattr(gpu, key) != getattr(sound, key)}
    assert different - ALSO.get(function, set()) == ({FIELDS[function]} - {""})
    assert gpu.health.state is HealthState.HEALTHY


def test_what_is_not_told_is_none(machine: "FakeMachine") -> None:
    failing = "".join(f"fail {function} 3\n" for function in FIELDS)
    lists = "".join(
        f"fail nvmlDeviceGet{kind}RunningProcesses_v3 3\n" for kind in ("Compute", "Graphics", "MPSCompute")
    )
    machine.install(HEAD + failing + lists + "fail nvmlDeviceGetMemoryInfo 3\n" + machine.card())
    gpu = only_gpu(machine.look())
    for key in (
        "memory",
        "memory_reserved",
        "memory_used",
        "compute_capability",
        "multiprocessors",
        "utilisation",
    ):
        assert getattr(gpu, key) is None, key
    assert (gpu.temperature, gpu.minor, gpu.processes) == (None, None, None)
    assert gpu.mig is Mig.UNSUPPORTED
    assert gpu.health.state is HealthState.UNKNOWN
    assert not gpu.shareable


def test_a_driver_before_510_tells_memory_without_the_reserved_part(machine: "FakeMachine") -> None:
    machine.install("fail nvmlDeviceGetMemoryInfo_v2 13\n" + machine.card())
    gpu = only_gpu(machine.look())
    assert (gpu.memory, gpu.memory_reserved) == (15360 * MIB, None)
    assert gpu.memory_used == 1024 * MIB + 434 * MIB


def test_multiprocessors_come_from_attributes_where_the_card_has_them(machine: "FakeMachine") -> None:
    machine.install(machine.card(more="sms 108"))
    assert only_gpu(machine.look()).multiprocessors == 108


def test_multiprocessors_of_an_unknown_generation_are_unknown(machine: "FakeMachine") -> None:
    machine.install(machine.card(more="major 42"))
    assert only_gpu(machine.look()).multiprocessors is None


def test_mig_on_is_seen(machine: "FakeMachine") -> None:
    machine.install(machine.card(more="mig 1"))
    assert only_gpu(machine.look()).mig is Mig.ENABLED


def test_cards_are_ordered_by_bus_and_not_as_the_driver_counts(machine: "FakeMachine") -> None:
    machine.install(
        machine.card(0, bus="00000000:AF:00.0")
        + machine.card(1, bus="00000000:3B:00.0")
        + machine.card(2, bus="00000001:01:00.0")
    )
    assert [(gpu.index, gpu.pci_id) for gpu in machine.look().gpus] == [
        (0, "0000:3b:00.0"),
        (1, "0000:af:00.0"),
        (2, "0001:01:00.0"),
    ]


class TestProcesses:
    def test_memory_utilisation_and_command_are_told(self, machine: "FakeMachine") -> None:
        machine.write(machine.proc / "77/cmdline", "python\0train.py\0--lr\0" + "0.1\0")
        machine.install(machine.card(more="compute 77 1048576\nsample 77 63 100\nsample 77 12 900"))
        assert only_gpu(machine.look()).processes == (
            GpuProcess(77, 1048576, 63, "python train.py --lr 0.1"),  # type: ignore[arg-type]
        )

    def test_one_that_is_in_several_lists_is_counted_once(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="compute 77 100\ngraphics 77 100\nmps 77 300\ngraphics 5 1"))
        processes = only_gpu(machine.look()).processes
        assert [(one.pid, one.memory) for one in processes or ()] == [(5, 1), (77, 300)]

    def test_processes_that_this_pid_namespace_does_not_show_stay_several(
        self, machine: "FakeMachine"
    ) -> None:
        machine.install(
            machine.card(more="compute 0 5\ncompute 0 5\ncompute 7 1\ngraphics 0 5\nsample 0 50 10")
        )
        processes = only_gpu(machine.look()).processes
        assert [(one.pid, one.memory, one.utilisation, one.command) for one in processes or ()] == [
            (0, 5, None, None),
            (0, 5, None, None),
            (7, 1, None, None),
        ]

    def test_memory_that_is_not_told_is_none_and_not_0(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="compute 77 -1"))
        processes = only_gpu(machine.look()).processes
        assert [(one.pid, one.memory, one.command) for one in processes or ()] == [(77, None, None)]

    def test_an_old_sample_says_nothing_of_now(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="compute 77 1\nsample 77 99 60000"))
        processes = only_gpu(machine.look()).processes
        assert [one.utilisation for one in processes or ()] == [None]

    @pytest.mark.parametrize("list_name", ["Graphics", "MPSCompute"])
    def test_a_list_that_is_not_supported_leaves_the_others(
        self, machine: "FakeMachine", list_name: str
    ) -> None:
        machine.install(
            f"fail nvmlDeviceGet{list_name}RunningProcesses_v3 3\n" + machine.card(more="compute 7 1")
        )
        processes = only_gpu(machine.look()).processes
        assert [one.pid for one in processes or ()] == [7]

    def test_a_list_that_grows_while_it_is_read_is_read_again(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="compute 7 1\ngrowing 3"))
        processes = only_gpu(machine.look()).processes
        assert [one.pid for one in processes or ()] == [7]

    def test_a_list_that_never_stops_growing_is_unknown(self, machine: "FakeMachine") -> None:
        others = "".join(
            f"fail nvmlDeviceGet{kind}RunningProcesses_v3 3\n" for kind in ("Graphics", "MPSCompute")
        )
        machine.install(others + machine.card(more="compute 7 1\ngrowing 1000"))
        assert only_gpu(machine.look()).processes is None

    def test_a_command_cannot_act_on_a_terminal_and_is_trimmed(self, machine: "FakeMachine") -> None:
        machine.write(machine.proc / "7/cmdline", "evil\x1b[2J\n\x9b" + "x" * 5000)
        machine.install(machine.card(more="compute 7 1"))
        (process,) = only_gpu(machine.look()).processes or ()
        assert process.command is not None
        assert process.command.startswith("evil?[2J??xxx")
        assert process.command.endswith("x…")
        assert len(process.command) == 200


class TestHealth:
    @pytest.mark.parametrize(
        ("more", "why"),
        [
            ("ecc 3", "3 uncorrected ECC errors"),
            ("ecc 1", "1 uncorrected ECC error"),
            ("remap-pending 0\nremap-failed 1", "a bad memory row could not be remapped"),
            ("recovery 1", "the driver asks for a reset of the GPU"),
            ("recovery 2", "the driver asks for a reboot of the machine"),
            ("recovery 99", "the driver asks for recovery action 99"),
        ],
    )
    def test_what_the_driver_reports_makes_a_card_unhealthy(
        self, machine: "FakeMachine", more: str, why: str
    ) -> None:
        machine.install(machine.card(more=more))
        snapshot = machine.look()
        health = only_gpu(snapshot).health
        assert (health.state, health.why) == (HealthState.UNHEALTHY, why)
        assert why in the_notice(snapshot, "gpu-unhealthy").text

    @pytest.mark.parametrize("more", ["retired 1", "remap-pending 1\nremap-failed 0"])
    def test_what_waits_for_a_reset_does_no_harm_and_is_told(self, machine: "FakeMachine", more: str) -> None:
        machine.install(machine.card(more=more))
        health = only_gpu(machine.look()).health
        assert health.state is HealthState.HEALTHY
        assert health.why is not None
        assert "waits for a reset" in health.why or "wait for a reset" in health.why

    def test_a_card_that_recovered_is_healthy_at_the_next_look(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="ecc 3"))
        assert only_gpu(machine.look()).health.state is HealthState.UNHEALTHY
        machine.install(machine.card(more="ecc 0"))
        assert only_gpu(machine.look()).health.state is HealthState.HEALTHY

    @pytest.mark.parametrize("function", ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperature"])
    def test_a_card_lost_after_it_was_opened_is_lost(self, machine: "FakeMachine", function: str) -> None:
        machine.install(f"fail {function} 15\n" + machine.card())
        snapshot = machine.look()
        assert only_gpu(snapshot).health.state is HealthState.LOST
        assert the_notice(snapshot, "gpu-lost").severity is Severity.ERROR

    def test_a_card_that_must_be_reset_is_unhealthy(self, machine: "FakeMachine") -> None:
        machine.install("fail nvmlDeviceGetUtilizationRates 16\n" + machine.card())
        assert only_gpu(machine.look()).health.state is HealthState.UNHEALTHY


XID = (
    "4,{at},{at},-;NVRM: Xid (PCI:0000:3b:00): {xid}, pid='<unknown>', name=<unknown>, text\n SUBSYSTEM=pci\n"
)


class TestXids:
    def put_log(self, machine: "FakeMachine", *xids: int | str) -> None:
        lines = [
            one if isinstance(one, str) else XID.format(at=100 + at, xid=one) for at, one in enumerate(xids)
        ]
        machine.write(machine.dev / "kmsg", "".join(lines))

    @pytest.mark.parametrize("xid", [46, 48, 54, 62, 64, 74, 79, 95, 109, 119, 120, 140, 143, 158])
    def test_a_grave_one_in_the_kernel_log_makes_the_card_unhealthy(
        self, machine: "FakeMachine", xid: int
    ) -> None:
        machine.install(machine.card() + machine.card(1))
        self.put_log(machine, 13, xid, 31)
        first, second = machine.look().gpus
        assert (first.health.state, first.health.why) == (
            HealthState.UNHEALTHY,
            f"XID {xid} in the kernel log",
        )
        assert second.health.state is HealthState.HEALTHY

    def test_a_programs_own_fault_does_not(self, machine: "FakeMachine") -> None:
        machine.install(machine.card())
        self.put_log(machine, 8, 13, 31, 43, 45, 63, 68, 69, 92, 94, 137, 154)
        assert only_gpu(machine.look()).health.state is HealthState.HEALTHY

    def test_one_from_before_the_driver_was_loaded_is_past(self, machine: "FakeMachine") -> None:
        machine.install(machine.card())
        self.put_log(machine, 79, "4,9,9,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\n")
        assert only_gpu(machine.look()).health.state is HealthState.HEALTHY

    def test_a_driver_that_asks_for_no_recovery_is_believed(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="recovery 0"))
        self.put_log(machine, 79)
        assert only_gpu(machine.look()).health.state is HealthState.HEALTHY

    def test_it_is_told_beside_another_fault(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(more="ecc 2"))
        self.put_log(machine, 48)
        assert only_gpu(machine.look()).health.why == "2 uncorrected ECC errors; XID 48 in the kernel log"


class TestBrokenDrivers:
    def test_versions_that_differ_are_named_with_the_fix(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.kernel_card("0000:3b:00.0", uuid="GPU-11111111-0000-4000-8000-000000000000", minor=0)
        machine.write(machine.dev / "nvidia0", "")
        machine.install("fail nvmlInitWithFlags 18\n", version="550.90.07", module="550.54.15")
        snapshot = machine.look()
        notice = the_notice(snapshot, "driver-mismatch")
        assert "550.90.07" in notice.text
        assert "550.54.15" in notice.text
        assert "modprobe nvidia" in (notice.fix or "")
        gpu = only_gpu(snapshot)
        assert gpu.uuid == "GPU-11111111-0000-4000-8000-000000000000"
        assert (gpu.name, gpu.minor, gpu.memory) == ("Tesla T4", 0, None)
        assert gpu.health.state is HealthState.UNHEALTHY

    def test_an_open_kernel_module_has_a_version_too(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.install("fail nvmlInitWithFlags 18\n", version="580.1.2", module=None)
        machine.write(
            machine.proc / "driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
        )
        assert "580.65.06" in the_notice(machine.look(), "driver-mismatch").text

    @pytest.mark.parametrize("code", [4, 17])
    def test_no_permission_is_named_with_the_fix(self, machine: "FakeMachine", code: int) -> None:
        machine.pci()
        machine.install(f"fail nvmlInitWithFlags {code}\n")
        snapshot = machine.look()
        assert "may not open" in the_notice(snapshot, "driver-no-permission").text
        assert only_gpu(snapshot).health.state is HealthState.UNHEALTHY

    def test_the_group_of_the_device_node_is_what_to_join(self, machine: "FakeMachine") -> None:
        node = machine.dev / "nvidiactl"
        node.write_text("")
        if os.geteuid() != 0:
            pytest.skip("only root can give a file to another group")
        import grp

        os.chown(node, 0, grp.getgrnam("video").gr_gid)
        machine.pci()
        machine.install("fail nvmlInitWithFlags 4\n")
        assert "usermod -aG video" in (the_notice(machine.look(), "driver-no-permission").fix or "")

    def test_a_module_that_is_not_loaded_is_named_with_the_fix(self, machine: "FakeMachine") -> None:
        machine.pci(driver=None)
        machine.install("fail nvmlInitWithFlags 9\n", module=None)
        snapshot = machine.look()
        assert "modprobe nvidia" in (the_notice(snapshot, "driver-not-loaded").fix or "")
        assert only_gpu(snapshot).health.state is HealthState.UNHEALTHY

    def test_a_library_without_a_card_and_a_module_is_no_fault(self, machine: "FakeMachine") -> None:
        machine.install("fail nvmlInitWithFlags 9\n", module=None)
        assert codes(machine.look()) == ["no-gpu"]

    @pytest.mark.parametrize("code", [1, 2, 14, 20, 27, 999, 4711])
    def test_any_other_failure_is_told_in_the_drivers_words(self, machine: "FakeMachine", code: int) -> None:
        machine.pci()
        machine.install(f"fail nvmlInitWithFlags {code}\nwords {code} the fuse is blown\n")
        assert "the fuse is blown" in the_notice(machine.look(), "driver-broken").text

    def test_a_count_that_fails_is_a_broken_driver(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.install("fail nvmlDeviceGetCount_v2 999\n" + machine.card())
        assert "driver-broken" in codes(machine.look())

    def test_a_library_that_cannot_be_loaded_is_named(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.install("")
        library = machine.root / "usr/lib64/libnvidia-ml.so.550.54.15"
        library.write_bytes(library.read_bytes()[:600])
        notice = the_notice(machine.look(), "driver-unloadable")
        assert "libnvidia-ml.so.1" in notice.text

    def test_a_library_that_is_no_nvml_is_named(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.install("")
        empty = machine.root / "usr/lib64/libnvidia-ml.so.550.54.15"
        subprocess.run(["cc", "-shared", "-o", str(empty), "-x", "c", "/dev/null"], check=True)
        assert "driver-too-old" in codes(machine.look())

    def test_a_card_without_any_driver_is_named_with_the_fix(self, machine: "FakeMachine") -> None:
        machine.pci(driver=None)
        snapshot = machine.look()
        notice = the_notice(snapshot, "driver-missing")
        assert "0000:3b:00.0" in notice.text
        assert "nvidia-driver" in (notice.fix or "")
        assert only_gpu(snapshot).health.state is HealthState.UNHEALTHY

    def test_a_module_without_a_library_asks_for_the_library(self, machine: "FakeMachine") -> None:
        machine.pci()
        machine.write(
            machine.proc / "driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.1  x\n",
        )
        assert "libnvidia-ml1" in (the_notice(machine.look(), "driver-missing").fix or "")

    def test_wsl_without_a_driver_asks_for_the_one_of_windows(self, machine: "FakeMachine") -> None:
        (machine.dev / "dxg").write_text("")
        assert "Windows" in the_notice(machine.look(), "driver-missing").text

    def test_nouveau_is_named_with_the_fix(self, machine: "FakeMachine") -> None:
        machine.pci(driver="nouveau")
        snapshot = machine.look()
        assert codes(snapshot) == ["driver-nouveau"]
        assert the_notice(snapshot, "driver-nouveau").severity is Severity.ERROR
        assert only_gpu(snapshot).health.why == "driven by nouveau"

    def test_a_card_given_to_a_virtual_machine_is_named(self, machine: "FakeMachine") -> None:
        machine.install(machine.card(0))
        machine.pci("0000:3b:00.0")
        machine.pci("0000:af:00.0", driver="vfio-pci")
        snapshot = machine.look()
        assert the_notice(snapshot, "gpu-passed-through").severity is Severity.INFO
        assert [gpu.health.state for gpu in snapshot.gpus] == [HealthState.HEALTHY, HealthState.UNHEALTHY]

    def test_a_card_that_the_driver_is_too_new_for_is_named(self, machine: "FakeMachine") -> None:
        machine.install(HEAD + machine.card(0))
        machine.pci("0000:3b:00.0")
        machine.pci("0000:af:00.0", driver=None)
        assert "550.54.15" in the_notice(machine.look(), "gpu-unsupported").text

    def test_no_gpu_at_all_names_the_software_gpu(self, machine: "FakeMachine") -> None:
        snapshot = machine.look()
        assert snapshot.gpus == ()
        assert codes(snapshot) == ["no-gpu"]
        assert the_notice(snapshot, "no-gpu").fix == "aliquot softgpu create T4"

    def test_a_driver_with_0_gpus_is_a_machine_without(self, machine: "FakeMachine") -> None:
        machine.install(HEAD)
        snapshot = machine.look()
        assert codes(snapshot) == ["no-gpu"]
        assert snapshot.node.driver_version == "550.54.15"

    def test_a_machine_without_sysfs_and_proc_is_looked_at(self, machine: "FakeMachine") -> None:
        machine.sysfs = machine.proc = machine.dev = machine.root / "nowhere"
        assert codes(machine.look()) == ["no-gpu"]


class TestLostCards:
    def test_one_of_two_lost_leaves_the_other_and_is_listed(self, machine: "FakeMachine") -> None:
        machine.pci("0000:3b:00.0")
        machine.pci("0000:3c:00.0")
        machine.kernel_card("0000:3c:00.0", uuid="GPU-22222222-0000-4000-8000-000000000000", minor=1)
        machine.write(machine.dev / "nvidia1", "")
        machine.install(
            "fail nvmlDeviceGetHandleByIndex_v2 15 1\nwords 15 GPU is lost\n"
            + machine.card(0)
            + machine.card(1)
        )
        snapshot = machine.look()
        good, lost = snapshot.gpus
        assert good.health.state is HealthState.HEALTHY
        assert good.memory == 15360 * MIB
        assert (lost.health.state, lost.health.why) == (HealthState.LOST, "the driver says: GPU is lost")
        assert (lost.index, lost.pci_id) == (1, "0000:3c:00.0")
        assert lost.uuid == "GPU-22222222-0000-4000-8000-000000000000"
        assert lost.memory is None
        assert codes(snapshot) == ["gpu-lost"]

    def test_one_that_is_gone_from_the_bus_is_told_though_it_cannot_be_listed(
        self, machine: "FakeMachine"
    ) -> None:
        machine.pci("0000:3b:00.0")
        machine.install(
            "fail nvmlDeviceGetHandleByIndex_v2 15 1\nwords 15 GPU is lost\n"
            + machine.card(0)
            + machine.card(1)
        )
        snapshot = machine.look()
        assert len(snapshot.gpus) == 1
        assert "GPU is lost" in the_notice(snapshot, "gpu-lost").text

    def test_one_whose_configuration_space_reads_all_ones_fell_off_the_bus(
        self, machine: "FakeMachine"
    ) -> None:
        machine.pci("0000:3b:00.0")
        machine.pci("0000:af:00.0", config=b"\xff\xff\xff\xff")
        machine.install(machine.card(0))
        lost = machine.look().gpus[1]
        assert (lost.health.state, lost.health.why) == (HealthState.LOST, "it has fallen off the bus")

    def test_an_unknown_error_is_unhealthy_and_not_lost(self, machine: "FakeMachine") -> None:
        machine.pci("0000:3b:00.0")
        machine.install("fail nvmlDeviceGetHandleByIndex_v2 999\nwords 999 Unknown Error\n" + machine.card(0))
        assert only_gpu(machine.look()).health.state is HealthState.UNHEALTHY

    @pytest.mark.parametrize("toolkit", [False, True])
    @pytest.mark.parametrize("lost", [False, True])
    def test_a_card_that_this_container_was_not_given_is_not_listed(
        self, machine: "FakeMachine", toolkit: bool, lost: bool
    ) -> None:
        """sysfs shows all of the machine's cards; device nodes, and with the toolkit /proc, do not."""
        for minor, pci_id in enumerate(("0000:3b:00.0", "0000:3c:00.0", "0000:af:00.0")):
            machine.pci(pci_id)
            if minor < 2 or not toolkit:
                uuid = f"GPU-3333333{minor}-0000-4000-8000-000000000000"
                machine.kernel_card(pci_id, uuid=uuid, minor=minor)
        for minor in (0, 1):
            machine.write(machine.dev / f"nvidia{minor}", "")
        failing = "fail nvmlDeviceGetHandleByIndex_v2 15 1\n" if lost else ""
        machine.install(failing + machine.card(0) + machine.card(1))
        snapshot = machine.look()
        assert [gpu.pci_id for gpu in snapshot.gpus] == ["0000:3b:00.0", "0000:3c:00.0"]
        states = [gpu.health.state for gpu in snapshot.gpus]
        assert states == [HealthState.HEALTHY, HealthState.LOST if lost else HealthState.HEALTHY]
        assert codes(snapshot) == (["gpu-lost"] if lost else [])

    def test_a_container_that_was_given_no_card_is_told_how_to_get_one(self, machine: "FakeMachine") -> None:
        machine.pci("0000:3b:00.0")
        machine.kernel_card("0000:3b:00.0", uuid="GPU-3", minor=0)
        machine.write(machine.proc / "driver/nvidia/version", "NVRM version: NVIDIA UNIX  550.1  x\n")
        snapshot = machine.look()
        assert snapshot.gpus == ()
        assert codes(snapshot) == ["driver-missing", "no-gpu"]
        assert "container" in (snapshot.notices[0].fix or "")

    def test_a_lost_card_keeps_its_uuid_only_where_the_module_knows_it(self, machine: "FakeMachine") -> None:
        machine.pci("0000:3b:00.0")
        machine.kernel_card("0000:3b:00.0", uuid="GPU-????????-????-????-????-????????????", minor=0)
        machine.write(machine.dev / "nvidia0", "")
        machine.install("fail nvmlDeviceGetHandleByIndex_v2 15\n" + machine.card(0))
        first = only_gpu(machine.look()).uuid
        assert first.startswith("NVIDIA-")
        assert only_gpu(machine.look()).uuid == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_node_that_this_user_may_not_open_explains_an_unknown_error(machine: "FakeMachine") -> None:
    """As another user, because root may open everything; in a folder that this user can enter."""
    machine.pci()
    machine.install("fail nvmlInitWithFlags 999\n")
    (machine.dev / "nvidiactl").write_text("")
    (machine.dev / "nvidiactl").chmod(0)
    program = """
import os, sys
from pathlib import Path
from aliquot.inventory import look
root = Path(sys.argv[1])
def tell():
    seen = look(sysfs=root / "sys", proc=root / "proc", dev=root / "dev", root=root)
    print(*[notice.code for notice in seen.notices])
tell()
# Only now, when everything is imported: the other user may not be able to read the packages.
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
tell()
"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        copied = shutil.copytree(machine.root, Path(folder) / "machine", symlinks=True)
        command = [sys.executable, "-c", program, str(copied)]
        done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["driver-broken", "driver-no-permission"], "")

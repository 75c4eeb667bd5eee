"""NVML's answers about figures, models of sensors, errors of memory, topology, and what is not there."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer
from tests.native.softgpu.nvml_questions import nonsense_questions

NOT_SUPPORTED, INVALID, NOT_FOUND = {"error": 3}, {"error": 2}, {"error": 6}
GIB = 1 << 30

# The figures of a data-centre card and of a desk's card, as a profile gives them.
BOARD: dict[str, Any] = {
    "power_limit_min_mw": 100000,
    "power_idle_mw": 60000,
    "slowdown_celsius": 89,
    "shutdown_celsius": 92,
    "pci_device_id": 0x20B210DE,
    "pcie_generation": 4,
    "pcie_width": 16,
    "bar1_bytes": 128 * GIB,
}


def ask(box: Box, python: str, *questions: object) -> dict[str, Any]:
    return box.run("nvml_figures.py", json.dumps(questions), python=python)


def test_clocks_are_the_profiles_and_never_fall(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    seen = ask(
        box,
        client_python,
        ["nvmlDeviceGetClockInfo", 0],
        ["nvmlDeviceGetMaxClockInfo", 2],
        ["nvmlDeviceGetApplicationsClock", 1],
        ["nvmlDeviceGetClock", 0, 3],
        ["nvmlDeviceGetClockInfo", 3],
        ["nvmlDeviceGetClockInfo", 9],
        "nvmlDeviceGetSupportedMemoryClocks",
        ["nvmlDeviceGetSupportedGraphicsClocks", 1215],
        ["nvmlDeviceGetSupportedGraphicsClocks", 1],
        "nvmlDeviceGetPerformanceState",
        "nvmlDeviceGetSupportedPerformanceStates",
        ["nvmlDeviceGetMinMaxClockOfPState", 0, 0],
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetSupportedClocksEventReasons",
    )
    assert list(seen.values()) == [
        1410, 1215, 1410, 1410, NOT_SUPPORTED, INVALID, [1215], [1410], NOT_FOUND, 0, [0], [1410, 1410], 0, 0,
    ]  # fmt: skip


def test_power_limits_are_the_cards_and_power_is_a_model_of_load(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    seen = ask(
        box,
        client_python,
        "nvmlDeviceGetPowerManagementMode",
        "nvmlDeviceGetPowerManagementLimit",
        "nvmlDeviceGetPowerManagementLimitConstraints",
        "nvmlDeviceGetPowerManagementDefaultLimit",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetPowerUsage",
    )
    assert list(seen.values()) == [1, 400000, [100000, 400000], 400000, 400000, 60000]


def test_energy_grows_with_idle_time_and_more_with_busy_time(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    before = ask(box, client_python, "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage")
    spinner = box.start("spin.py", "2000000")
    for _ in range(3):
        first_answer(spinner)
    after = ask(box, client_python, "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage")
    assert after["nvmlDeviceGetTotalEnergyConsumption"] > before["nvmlDeviceGetTotalEnergyConsumption"]


@pytest.mark.parametrize(("fans", "fan"), [(0, NOT_SUPPORTED), (2, 30)])
def test_temperatures_and_fans(box: Box, client_python: str, fans: int, fan: object) -> None:
    box.add_device(**BOARD, fans=fans)
    seen = ask(
        box,
        client_python,
        ["nvmlDeviceGetTemperature", 0],
        ["nvmlDeviceGetTemperatureV", 0],
        ["nvmlDeviceGetTemperatureThreshold", 0],
        ["nvmlDeviceGetTemperatureThreshold", 1],
        ["nvmlDeviceGetTemperatureThreshold", 2],
        "nvmlDeviceGetNumFans",
        "nvmlDeviceGetFanSpeed",
        ["nvmlDeviceGetFanSpeed_v2", 2],
    )
    beyond = INVALID if fans else NOT_SUPPORTED
    assert list(seen.values()) == [34, 34, 92, 89, NOT_SUPPORTED, fans, fan, beyond]


def test_the_link_and_the_pci_device_are_the_profiles(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    seen = ask(
        box,
        client_python,
        "nvmlDeviceGetMaxPcieLinkGeneration",
        "nvmlDeviceGetCurrPcieLinkGeneration",
        "nvmlDeviceGetMaxPcieLinkWidth",
        "nvmlDeviceGetCurrPcieLinkWidth",
        "nvmlDeviceGetPcieSpeed",
        ["nvmlDeviceGetPcieThroughput", 0],
        "nvmlDeviceGetPcieReplayCounter",
        "nvmlDeviceGetBAR1MemoryInfo",
        "nvmlDeviceGetPciInfo",
        "nvmlDeviceGetPciInfoExt",
    )
    info, extended = seen["nvmlDeviceGetPciInfo"], seen["nvmlDeviceGetPciInfoExt"]
    assert list(seen.values())[:7] == [4, 4, 16, 16, 16000, NOT_SUPPORTED, NOT_SUPPORTED]
    assert seen["nvmlDeviceGetBAR1MemoryInfo"] == {
        "bar1Total": 128 * GIB,
        "bar1Free": 128 * GIB,
        "bar1Used": 0,
    }
    assert info["pciDeviceId"] == extended["pciDeviceId"] == 0x20B210DE


def test_a_device_without_the_figures_says_that_it_has_not(box: Box, client_python: str) -> None:
    box.add_device(ecc=None, memory_clock_khz=None)
    seen = ask(
        box,
        client_python,
        "nvmlDeviceGetMaxPcieLinkGeneration",
        "nvmlDeviceGetBAR1MemoryInfo",
        ["nvmlDeviceGetClockInfo", 2],
        "nvmlDeviceGetEccMode",
    )
    assert list(seen.values()) == [NOT_SUPPORTED] * 4


@pytest.mark.parametrize(
    ("major", "minor", "ecc", "rows", "pages"),
    [
        (8, 0, 1, [0, 0, 0, 0], NOT_SUPPORTED),
        (7, 0, 1, NOT_SUPPORTED, []),
        (8, 9, 0, NOT_SUPPORTED, NOT_SUPPORTED),
    ],
)
def test_memory_errors_are_counted_where_ecc_is_on(
    box: Box, client_python: str, major: int, minor: int, ecc: int, rows: object, pages: object
) -> None:
    box.add_device(compute_major=major, compute_minor=minor, ecc=ecc)
    seen = ask(
        box,
        client_python,
        "nvmlDeviceGetEccMode",
        "nvmlDeviceGetDefaultEccMode",
        ["nvmlDeviceGetTotalEccErrors", 1, 0],
        ["nvmlDeviceGetMemoryErrorCounter", 1, 0, 2],
        "nvmlDeviceGetRemappedRows",
        ["nvmlDeviceGetRetiredPages", 0],
        ["fields", 1, 4, 142],
    )
    none = 0 if ecc else NOT_SUPPORTED
    fourth = rows[0] if isinstance(rows, list) else rows
    assert list(seen.values()) == [
        [ecc, ecc], [ecc], none, none, rows, pages, {"1": ecc, "4": none, "142": fourth},
    ]  # fmt: skip


def test_field_values_are_what_the_functions_say(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    wanted = {91: 0, 185: 60000, 186: 60000, 187: 100000, 188: 400000, 189: 400000, 190: 400000, 74: 0}
    unknown = {82: NOT_SUPPORTED, 94: NOT_SUPPORTED, 165: NOT_SUPPORTED, 9999: NOT_SUPPORTED}
    seen = ask(box, client_python, ["fields", *wanted, 83, *unknown])["fields"]
    assert seen.pop("83") > 0
    assert seen == {str(number): answer for number, answer in {**wanted, **unknown}.items()}


def test_what_a_software_gpu_has_not_is_not_supported(box: Box, client_python: str) -> None:
    box.add_device(**BOARD, mig_instances=0)
    absent = [
        ["nvmlDeviceGetNvLinkState", 0],
        ["nvmlDeviceGetNvLinkVersion", 0],
        "nvmlDeviceGetVbiosVersion",
        "nvmlDeviceGetInforomImageVersion",
        "nvmlDeviceGetBoardPartNumber",
        "nvmlDeviceGetIrqNum",
        "nvmlDeviceGetGspFirmwareVersion",
        "nvmlDeviceGetGspFirmwareMode",
        "nvmlDeviceGetMigMode",
        ["nvmlDeviceGetMigDeviceHandleByIndex", 0],
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetConfComputeMemSizeInfo",
        "nvmlSystemGetConfComputeState",
        "nvmlDeviceGetAutoBoostedClocksEnabled",
        ["nvmlDeviceSetPowerManagementLimit", 300000],
        ["nvmlDeviceSetComputeMode", 1],
        ["nvmlDeviceSetPersistenceMode", 1],
        "nvmlDeviceGetNumaNodeId",
    ]
    seen = ask(box, client_python, *absent)
    assert seen == dict.fromkeys(seen, NOT_SUPPORTED)
    assert len(seen) == len(absent)


def test_modes_and_counts_of_what_is_none(box: Box, client_python: str) -> None:
    box.add_device(**BOARD)
    seen = ask(
        box,
        client_python,
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetComputeMode",
        "nvmlDeviceGetDisplayMode",
        "nvmlDeviceGetDisplayActive",
        "nvmlDeviceGetVirtualizationMode",
        "nvmlDeviceGetMultiGpuBoard",
        "nvmlUnitGetCount",
        "nvmlSystemGetHicVersion",
        "nvmlDeviceGetMaxMigDeviceCount",
        ["nvmlDeviceGetMigDeviceHandleByIndex", 0],
        ["nvmlDeviceGetMigDeviceHandleByIndex", 7],
        "nvmlDeviceIsMigDeviceHandle",
        "nvmlDeviceGetEncoderUtilization",
        "nvmlSystemGetDriverBranch",
    )
    answers = list(seen.values())
    assert answers[:12] == [1, 0, 0, 0, 0, 0, 0, [], 7, NOT_FOUND, INVALID, "c_uint(0)"]
    assert answers[12] == [0, 1000000]
    assert answers[13]["branch"].startswith("r")


def test_the_way_between_devices_follows_their_buses(box: Box, client_python: str) -> None:
    box.add_device(bus=0x10)
    box.add_device(bus=0x20)
    seen = ask(
        box,
        client_python,
        ["nvmlDeviceGetTopologyCommonAncestor", "other"],
        ["nvmlDeviceOnSameBoard", "other"],
        ["nvmlDeviceGetTopologyNearestGpus", 30],
        ["nvmlDeviceGetTopologyNearestGpus", 10],
        ["nvmlDeviceGetCpuAffinity", 2],
    )
    answers = list(seen.values())
    assert answers[:2] == [30, 0]
    assert [len(found) for found in answers[2:4]] == [1, 0]
    assert answers[4][0] != 0


@pytest.mark.parametrize(("second", "expected"), [("Tesla T4", [0, 0, 5]), ("NVIDIA L4", [5, 5, 5])])
def test_devices_of_one_kind_are_peers_without_a_link(
    box: Box, client_python: str, second: str, expected: list[int]
) -> None:
    box.add_device(bus=0x10, name="Tesla T4")
    box.add_device(bus=0x20, name=second)
    answers = [
        ask(box, client_python, ["nvmlDeviceGetP2PStatus", "other", capability])["nvmlDeviceGetP2PStatus"]
        for capability in (0, 1, 2)
    ]
    assert answers == expected


def test_a_serial_number_stays_with_its_device_and_finds_it(box: Box, client_python: str) -> None:
    box.add_device()
    box.add_device(bus=0x3C)
    serial = ask(box, client_python, "nvmlDeviceGetSerial")["nvmlDeviceGetSerial"]
    again = ask(box, client_python, "nvmlDeviceGetSerial", ["nvmlDeviceGetHandleBySerial", serial])
    assert len(serial) == 13
    assert serial.isdigit()
    assert again["nvmlDeviceGetSerial"] == serial
    assert "error" not in again["nvmlDeviceGetHandleBySerial"]
    missing = ask(box, client_python, ["nvmlDeviceGetHandleBySerial", "0"])
    assert missing["nvmlDeviceGetHandleBySerial"] == NOT_FOUND


@pytest.mark.usefixtures("device")
def test_samples_of_an_idle_device_are_whole_tenths_of_a_second(box: Box, client_python: str) -> None:
    seen = ask(box, client_python, ["nvmlDeviceGetSamples", 1, 0], ["nvmlDeviceGetSamples", 3, 0])
    kind, samples = seen["nvmlDeviceGetSamples 1 0"]
    times = [sample["timeStamp"] for sample in samples]
    assert kind == 1
    assert [later - earlier for earlier, later in pairwise(times)] == [100000] * 13
    assert seen["nvmlDeviceGetSamples 3 0"] == NOT_SUPPORTED


@pytest.mark.usefixtures("device")
def test_a_process_is_accounted_for_with_the_most_it_held(box: Box, client_python: str) -> None:
    held = first_answer(box.start("hold_memory.py", str(10 * MIB)))
    seen = ask(
        box, client_python, "nvmlDeviceGetAccountingPids", ["nvmlDeviceGetAccountingStats", held["pid"]],
        ["nvmlDeviceGetAccountingStats", 1], "nvmlDeviceGetAccountingMode",
    )  # fmt: skip
    stats = seen[f"nvmlDeviceGetAccountingStats {held['pid']}"]
    assert seen["nvmlDeviceGetAccountingPids"] == [held["pid"]]
    assert (stats["maxMemoryUsage"], stats["isRunning"], stats["time"]) == (30 * MIB, 1, 0)
    assert seen["nvmlDeviceGetAccountingStats 1"] == NOT_FOUND


@pytest.mark.usefixtures("device")
def test_nonsense_for_arguments_is_an_error_and_never_a_crash(box: Box) -> None:
    seen = box.run("nvml_nonsense.py", nonsense_questions())
    assert seen == {"succeeded": [], "uninitialised": []}

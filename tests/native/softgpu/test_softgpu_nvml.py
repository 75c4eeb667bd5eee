"""The NVML side, read through NVIDIA's own Python binding."""

from __future__ import annotations

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer


def test_nvml_shows_the_device_as_its_file_describes_it(box: Box, client_python: str) -> None:
    device = box.add_device()
    seen = box.run("nvml_client.py", python=client_python)
    assert (seen["count"], seen["index"], seen["minor"]) == (1, 0, 0)
    assert (seen["name"], seen["uuid"]) == ("Aliquot Test GPU", device.name)
    assert (seen["bus"], seen["legacy_bus"]) == ("00000000:3B:00.0", "0000:3B:00.0")
    assert (seen["driver_fields"], seen["cuda"]) == (3, 13050)
    assert str(seen["nvml"]).startswith("13.")
    assert (seen["capability"], seen["cores"]) == ([8, 0], 16 * 64)
    assert (seen["clock"], seen["memory_clock"], seen["power_limit"]) == (1410, 1215, 400000)
    assert (seen["by_uuid"], seen["by_bus"]) == (0, 0)


@pytest.mark.usefixtures("device")
def test_memory_adds_up_in_both_forms(box: Box, client_python: str) -> None:
    seen = box.run("nvml_client.py", python=client_python)
    assert seen["memory"] == [256 * MIB, 16 * MIB, 240 * MIB]
    assert seen["memory_v2"] == [256 * MIB, 16 * MIB, 0, 240 * MIB]


@pytest.mark.usefixtures("device")
def test_a_process_is_listed_with_what_it_holds(box: Box, client_python: str) -> None:
    holder = box.start("hold_memory.py", str(10 * MIB))
    held = first_answer(holder)
    seen = box.run("nvml_client.py", python=client_python)
    assert seen["processes"] == [[held["pid"], 30 * MIB]]
    assert seen["graphics"] == 0
    assert seen["memory"] == [256 * MIB, 46 * MIB, 210 * MIB]


@pytest.mark.usefixtures("device")
def test_an_idle_device_is_idle_and_healthy(box: Box, client_python: str) -> None:
    seen = box.run("nvml_client.py", python=client_python)
    assert (seen["utilisation"], seen["power"], seen["temperature"]) == (0, 50000, 34)
    assert (seen["ecc"], seen["ecc_errors"], seen["performance"]) == ([1, 1], 0, 0)


def test_mig_is_off_where_the_card_has_it_and_unknown_where_not(box: Box, client_python: str) -> None:
    box.add_device()
    assert box.run("nvml_client.py", python=client_python)["mig"] == [0, 0]


def test_a_card_without_mig_says_so(box: Box, client_python: str) -> None:
    box.add_device(compute_major=7, compute_minor=5, mig_instances=0)
    seen = box.run("nvml_client.py", python=client_python)
    assert seen["mig"] is None


@pytest.mark.usefixtures("device")
def test_errors_are_those_of_nvml(box: Box, client_python: str) -> None:
    seen = box.run("nvml_client.py", python=client_python)
    assert seen["event_wait"] == 10
    assert seen["unsupported"] == 3
    assert (seen["no_such_index"], seen["no_such_uuid"]) == (2, 6)
    assert (seen["after_shutdown"], seen["shutdown_again"]) == (1, 1)

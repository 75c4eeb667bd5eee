"""XIDs: what a program's fault tells those who listen to the device."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.native.softgpu.machine import Box, first_answer

XID = 8
MMU_FAULT, EXCEPTION = 31, 13
KEPT = 64
"""SG_INCIDENTS of native/softgpu/device/device.h."""


def heard_while(box: Box, python: str, faults: list[str], count: int) -> list[list[int]]:
    listener = box.start("nvml_listen.py", str(count), "3000", python=python)
    assert first_answer(listener) == {"listening": True}
    for fault in faults:
        box.run("fault_on.py", fault)
    out, errors = listener.communicate(timeout=60)
    assert listener.returncode == 0, errors
    heard = json.loads(out.splitlines()[-1])["heard"]
    assert isinstance(heard, list)
    return heard


def test_faults_are_heard_in_their_order_and_with_their_numbers(box: Box, client_python: str) -> None:
    box.add_device(bus=0x10)
    box.add_device(bus=0x11)
    heard = heard_while(box, client_python, ["0 address", "1 misaligned", "1 trap"], 3)
    assert [event for event in heard if event[0] == 0] == [[0, XID, MMU_FAULT]]
    assert [event for event in heard if event[0] == 1] == [[1, XID, EXCEPTION], [1, XID, EXCEPTION]]


@pytest.mark.usefixtures("device")
def test_what_was_before_is_not_heard(box: Box, client_python: str) -> None:
    box.run("fault_on.py", "0 trap")
    listener = box.start("nvml_listen.py", "1", "50", python=client_python)
    assert first_answer(listener) == {"listening": True}
    assert first_answer(listener) == {"heard": []}


@pytest.mark.usefixtures("device")
def test_who_was_stopped_hears_the_last_ones_that_are_kept(box: Box, client_python: str) -> None:
    listener = box.start("nvml_listen.py", "100", "300", python=client_python)
    assert first_answer(listener) == {"listening": True}
    listener.send_signal(signal.SIGSTOP)
    box.run("fault_on.py", "0 trap", "70")
    listener.send_signal(signal.SIGCONT)
    assert first_answer(listener) == {"heard": [[0, XID, EXCEPTION]] * KEPT}


def test_nonsense_in_the_shared_state_holds_up_no_listener(
    box: Box, device: Path, client_python: str
) -> None:
    listener = box.start("nvml_listen.py", "1", "200", python=client_python)
    assert first_answer(listener) == {"listening": True}
    size = (device / "state").stat().st_size
    with (device / "state").open("r+b") as state:
        state.seek(64)  # behind magic and version
        state.write(b"\xff" * min(size - 64, 1 << 16))
    assert "heard" in first_answer(listener)

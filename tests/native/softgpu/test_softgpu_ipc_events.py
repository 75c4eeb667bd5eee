"""Events of several processes: recorded in one, waited for in another."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import Box, first_answer

OK, INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE, NOT_READY, NOT_SUPPORTED = 0, 1, 201, 400, 600, 801
MILLISECOND = 1_000_000
RECORDS = 16  # SG_EVENT_RECORDS
SECRET = 64  # where a handle, in hexadecimal digits, has what nobody can guess


class Process:
    def __init__(self, box: Box) -> None:
        self.process = box.start("ipc_events.py")

    def ready(self) -> Process:
        assert first_answer(self.process)["ready"]
        return self

    def send(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        return first_answer(self.process)["seen"]

    def ask(self, *words: object) -> Any:
        self.send(*words)
        return self.answer()


def pair(box: Box) -> tuple[Process, Process]:
    """Two processes with one event, made by the first."""
    one, other = Process(box).ready(), Process(box).ready()
    assert one.ask("make") == OK
    assert other.ask("opened", one.ask("handle")) == OK
    return one, other


@pytest.fixture(params=["real", "scaled", "virtual"])
def device(box: Box, request: pytest.FixtureRequest) -> Path:
    return box.add_device(time=request.param, time_scale_ppm=10_000 if request.param == "scaled" else None)


@pytest.mark.usefixtures("device")
def test_a_stream_waits_for_the_work_before_another_process_s_record(box: Box) -> None:
    one, other = pair(box)
    assert other.ask("memory_opened", one.ask("memory_handle")) == OK
    assert other.ask("registered") == OK
    assert [one.ask(*words) for words in (("hold", "a"), ("write", "a", 7), ("record", "a"))] == [OK] * 3
    assert (one.ask("query"), other.ask("query")) == (NOT_READY, NOT_READY)
    assert [other.ask("wait", "a"), other.ask("read", "a"), other.ask("stream_query", "a")] == [
        OK,
        OK,
        NOT_READY,
    ]
    other.send("stream_synchronize", "a")
    assert one.ask("let_go") == OK
    assert other.answer()[0] == OK
    assert other.ask("saw") == [7]
    assert (one.ask("query"), other.ask("query")) == (OK, OK)


@pytest.mark.usefixtures("device")
def test_either_process_records_and_the_event_means_the_latest(box: Box) -> None:
    one, other = pair(box)
    assert [one.ask("hold", "a"), one.ask("record", "a"), other.ask("query")] == [OK, OK, NOT_READY]
    assert other.ask("wait", "b") == OK  # for the first record
    assert [other.ask("record", "a"), other.ask("query"), one.ask("query")] == [OK, OK, OK]
    assert other.ask("stream_query", "b") == NOT_READY
    assert one.ask("let_go") == OK
    assert other.ask("stream_synchronize", "b")[0] == OK


@pytest.mark.usefixtures("device")
def test_records_of_two_streams_are_done_in_any_order(box: Box) -> None:
    one, other = pair(box)
    assert [one.ask("hold", "a"), one.ask("record", "a"), one.ask("record", "b")] == [OK] * 3
    assert [other.ask("query"), other.ask("synchronize")[0], one.ask("synchronize")[0]] == [OK] * 3
    assert one.ask("let_go") == OK


@pytest.mark.usefixtures("device")
def test_an_event_never_recorded_has_passed(box: Box) -> None:
    one, other = pair(box)
    for process in (one, other):
        assert [process.ask("query"), process.ask("synchronize")[0], process.ask("wait", "a")] == [OK] * 3
        assert process.ask("stream_synchronize", "a")[0] == OK


@pytest.mark.usefixtures("device")
def test_more_records_than_an_event_remembers(box: Box) -> None:
    one, other = pair(box)
    for _ in range(3 * RECORDS):
        assert one.ask("record", "a") == OK
    assert [one.ask("hold", "a"), *(one.ask("record", "a") for _ in range(RECORDS))] == [OK] * (RECORDS + 1)
    one.send("record", "b")  # has to wait for the oldest
    assert other.ask("query") == NOT_READY
    one.process.send_signal(signal.SIGKILL)
    assert other.ask("synchronize")[0] == OK


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("waiting", ["synchronize", "stream_synchronize a"])
def test_the_death_of_who_recorded_lets_others_go_on_within_a_second(box: Box, waiting: str) -> None:
    one, other = pair(box)
    assert [one.ask("hold", "a"), one.ask("record", "a"), other.ask("wait", "a")] == [OK] * 3
    other.send(waiting)
    one.process.kill()
    one.process.wait()
    killed = time.monotonic()
    assert other.answer()[0] == OK
    assert time.monotonic() - killed < 5  # it is 50 ms; the machine may be loaded
    assert [other.ask("query"), other.ask("record", "b"), other.ask("query")] == [OK, OK, OK]


def test_in_virtual_time_a_wait_ends_at_the_nanosecond_of_the_work_before_the_record(box: Box) -> None:
    seen = []
    for bus in range(2):
        folder = box.add_device(bus=bus, time="virtual")
        one, other = pair(box)
        assert [one.ask("kernel", "a", 80 * MILLISECOND), one.ask("record", "a")] == [OK, OK]
        assert [other.ask("query"), other.ask("wait", "a"), other.ask("kernel", "a", MILLISECOND)] == [
            NOT_READY,
            OK,
            OK,
        ]
        one.send("stream_synchronize", "a")
        other.send("synchronize")
        results = [one.answer(), other.answer(), other.ask("stream_synchronize", "a")]
        assert [result for result, _ in results] == [OK] * 3
        ends = [end for _, end in results]
        assert ends[0] == ends[1] >= 80 * MILLISECOND
        assert MILLISECOND < ends[2] - ends[1] < 2 * MILLISECOND
        seen.append(ends)
        (folder / "device").unlink()
    assert seen[0] == seen[1]


def test_in_virtual_time_no_time_passes_while_a_record_is_held_up_on_the_host(box: Box) -> None:
    box.add_device(time="virtual")
    one, other = pair(box)
    assert [one.ask("hold", "a"), one.ask("record", "a"), other.ask("wait", "a")] == [OK] * 3
    begun = one.ask("stream_synchronize", "b")[1]
    other.send("stream_synchronize", "a")
    assert one.ask("let_go") == OK
    assert one.ask("stream_synchronize", "a")[0] == OK
    result, end = other.answer()
    assert (result, end - begun < MILLISECOND) == (OK, True)


def test_what_the_documentation_refuses(box: Box) -> None:
    folder = box.add_device()
    one, other = Process(box).ready(), Process(box).ready()
    assert one.ask("supported") == 1
    assert one.ask("make", 4) == INVALID_VALUE  # timing has to be off
    assert [one.ask("make", 2), one.ask("handle"), one.ask("destroy")] == [OK, INVALID_HANDLE, OK]
    assert one.ask("handle") == INVALID_HANDLE  # destroyed
    assert one.ask("make") == OK
    handle = one.ask("handle")
    assert one.ask("opened", handle) == INVALID_CONTEXT  # by who made it
    assert other.ask("opened", "00" * 64) == INVALID_HANDLE
    assert other.ask("opened", handle[:SECRET] + "00" * 8 + handle[SECRET + 16 :]) == INVALID_HANDLE
    assert other.ask("opened", handle) == OK
    assert [other.ask("handle"), other.ask("elapsed"), other.ask("graph")] == [
        INVALID_HANDLE,
        INVALID_HANDLE,
        NOT_SUPPORTED,
    ]
    assert [one.ask("destroy"), other.ask("destroy"), other.ask("opened", handle)] == [OK, OK, INVALID_HANDLE]
    assert box.log(folder) == ["graph event of several processes in a graph"]


def test_the_event_of_a_process_that_is_gone_cannot_be_opened(box: Box) -> None:
    box.add_device()
    one, other = Process(box).ready(), Process(box).ready()
    assert one.ask("make") == OK
    handle = one.ask("handle")
    os.kill(one.process.pid, signal.SIGKILL)
    one.process.wait()
    assert other.ask("opened", handle) == INVALID_HANDLE


def test_a_device_has_room_for_1024_of_them_and_the_killed_give_theirs_back(box: Box) -> None:
    box.add_device()
    one, other = Process(box).ready(), Process(box).ready()
    assert one.ask("make_all") == [1024, 2]
    assert other.ask("make_all") == [0, 2]
    one.process.kill()
    one.process.wait()
    assert other.ask("make") == OK


def test_a_context_that_ends_lets_its_events_go(box: Box) -> None:
    box.add_device()
    one, other = pair(box)
    handle = one.ask("handle")
    assert [one.ask("reset"), one.ask("query"), one.ask("handle")] == [OK, OK, INVALID_HANDLE]
    assert [other.ask("record", "a"), other.ask("query"), other.ask("destroy")] == [OK, OK, OK]
    assert other.ask("opened", handle) == INVALID_HANDLE

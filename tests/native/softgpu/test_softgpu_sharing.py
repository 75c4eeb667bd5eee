"""Memory that several processes, or several devices, reach: who is charged, and what a kill leaves."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import MIB, Box, first_answer

CONTEXT = 20 * MIB
SIZE = {"descriptor": 6 * MIB, "ipc": 2 * MIB, "pool": 2 * MIB}


def next_answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write("go on\n")
    process.stdin.flush()
    return first_answer(process)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def held(box: Box) -> tuple[int, dict[str, int]]:
    seen = box.run("look.py")
    return seen["used"], seen["processes"]


def exporter_and_importer(
    box: Box, kind: str, path: Path
) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    exporter = box.start("share_memory.py", "export", kind, str(path))
    first_answer(exporter)
    importer = box.start("share_memory.py", "import", kind, str(path))
    first_answer(importer)
    return exporter, importer


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("kind", ["descriptor", "ipc", "pool"])
def test_two_processes_write_to_one_memory_which_counts_once_and_outlives_its_exporter(
    box: Box, tmp_path: Path, kind: str
) -> None:
    exporter, importer = exporter_and_importer(box, kind, tmp_path / "s")
    opened = next_answer(importer)
    assert (opened["result"], opened["seen"], opened["beyond"]) == (0, True, 1)
    assert next_answer(exporter)["head"] == "5a5a5a5aa5a5a5a5"
    size = SIZE[kind]
    both = {str(exporter.pid): CONTEXT + size, str(importer.pid): CONTEXT}
    assert held(box) == (2 * CONTEXT + size, both)
    end(exporter)
    assert next_answer(importer)["head"] == "5a5a5a5aa5a5a5a5"
    assert held(box) == (CONTEXT + size, {str(importer.pid): CONTEXT + size})
    end(importer)
    assert held(box) == (0, {})


def test_a_killed_importer_takes_nothing_with_it(box: Box, device: Path, tmp_path: Path) -> None:
    exporter, importer = exporter_and_importer(box, "ipc", tmp_path / "s")
    assert next_answer(importer)["result"] == 0
    end(importer)
    assert held(box) == (CONTEXT + 2 * MIB, {str(exporter.pid): CONTEXT + 2 * MIB})
    assert next_answer(exporter)["head"] == "5a5a5a5aa5a5a5a5"
    end(exporter)
    assert held(box) == (0, {})
    assert (device / "arena").stat().st_blocks == 0


def test_a_descriptor_in_the_mail_keeps_memory_and_a_handle_of_64_bytes_does_not(
    box: Box, device: Path, tmp_path: Path
) -> None:
    exporter, importer = exporter_and_importer(box, "descriptor", tmp_path / "s")
    next_answer(exporter)  # it has sent the descriptor, and closed its own
    end(exporter)
    # The importer has not received it yet: the memory is in use, and no process's.
    assert held(box) == (CONTEXT + 6 * MIB, {str(importer.pid): CONTEXT})
    assert next_answer(importer)["seen"] is True
    assert held(box) == (CONTEXT + 6 * MIB, {str(importer.pid): CONTEXT + 6 * MIB})
    end(importer)
    exporter, importer = exporter_and_importer(box, "ipc", tmp_path / "t")
    next_answer(exporter)
    end(exporter)
    assert next_answer(importer)["result"] == 400
    end(importer)
    assert held(box) == (0, {})
    assert (device / "arena").stat().st_blocks == 0


def test_a_descriptor_in_the_mail_that_nobody_receives_is_no_leak(
    box: Box, device: Path, tmp_path: Path
) -> None:
    exporter, importer = exporter_and_importer(box, "descriptor", tmp_path / "s")
    next_answer(exporter)
    end(exporter)
    end(importer)
    assert held(box) == (0, {})
    assert (device / "arena").stat().st_blocks == 0


@pytest.mark.usefixtures("device")
def test_virtual_memory_is_mapped_allowed_aliased_and_given_back(box: Box) -> None:
    seen = box.run("virtual_memory.py")
    chunk = 2 * MIB
    wrong = {
        "map_over",
        "map_outside",
        "map_nonsense",
        "no_access_yet",
        "allow_part",
        "fill_beyond",
        "alias_memset",
    }
    wrong |= {
        "free_while_mapped",
        "unmap_part",
        "after_unmap",
        "release_again",
        "export_unasked",
        "import_nonsense",
    }
    assert {name: seen.pop(name) for name in wrong} == dict.fromkeys(wrong, 1)
    true = {
        "border",
        "alias_reads",
        "reads_zero",
        "first_write_shows_in_the_other",
        "still_there",
        "retained_is_it",
    }
    assert {name: seen.pop(name) for name in true} == dict.fromkeys(true, True)
    assert (seen.pop("granularity"), seen.pop("taken"), seen.pop("leaked")) == (chunk, 3 * chunk, 0)
    assert (seen.pop("kernel_no_access"), seen.pop("kernel_writes_alias")) == (700, 700)
    assert seen.pop("access") == 3
    assert all(value in (0, [0, 0], [0, 0, 0]) for value in seen.values()), seen


def test_a_kernel_reaches_a_peers_memory_only_while_that_is_enabled(box: Box) -> None:
    box.add_device(bus=0x3B)
    box.add_device(bus=0x3C)
    assert box.run("peers.py") == {
        "can": 1,
        "itself": 0,
        "attributes": [0, 1, 1, 1],
        "copy": 0,
        "copied": True,
        "disabled": [700],
        "enabled": [0, 704, 0, 0x11, 0, 705, 700],
    }


def test_devices_of_two_kinds_are_no_peers_and_are_copied_between_all_the_same(box: Box) -> None:
    box.add_device(bus=0x3B)
    box.add_device(bus=0x3C, name="Another Card")
    seen = box.run("peers.py")
    assert (seen["can"], seen["copied"], seen["disabled"], seen["enabled"]) == (0, True, [700], 217)


@pytest.mark.slow
def test_exporters_and_importers_killed_at_random_moments_leave_no_drift(
    box: Box, device: Path, tmp_path: Path
) -> None:
    rng = random.Random(11)
    for turn in range(12):
        kind = ("descriptor", "ipc", "pool")[turn % 3]
        exporter, importer = exporter_and_importer(box, kind, tmp_path / str(turn))
        assert importer.stdin is not None
        importer.stdin.write("go on\n")
        importer.stdin.flush()
        order = [exporter, importer]
        rng.shuffle(order)
        for process in order:
            try:
                process.wait(timeout=rng.uniform(0.0, 0.2))
            except subprocess.TimeoutExpired:
                end(process)
        assert held(box) == (0, {})
        assert (device / "arena").stat().st_blocks == 0

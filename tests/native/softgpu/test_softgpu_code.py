"""Code and launches that are wrong: what a program is told, and what of it stays."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.softgpu.machine import ROOT, Box

ILLEGAL_ADDRESS = 700
FOLDER = Path(__file__).parent / "fatbins"
FATBINS = sorted(path for path in FOLDER.glob("*.fatbin") if path.stem != "several")


def test_a_fault_shows_after_the_launch_and_ends_its_context_only(box: Box, device: Path) -> None:
    seen = box.run("faults.py")
    assert seen["stored"] is True
    assert seen["unmapped"] == [0, ILLEGAL_ADDRESS, ILLEGAL_ADDRESS, 0]
    assert seen["other_context"] == [0, ILLEGAL_ADDRESS, ILLEGAL_ADDRESS, 0]
    assert seen["misaligned_or_outside"] is True
    assert seen["healthy_after"] == 0
    assert [line for line in box.log(device) if not line.startswith("fault ")] == ["image ELF"]


@pytest.mark.usefixtures("device")
def test_code_that_cannot_run_is_refused_with_a_reason(box: Box) -> None:
    seen = box.run("faults.py")
    assert (seen["bad_ptx"], seen["message"]) == (218, True)
    assert seen["newer"] == 218
    assert "higher than default SM version" in seen["newer_message"]
    assert (seen["not_ptx"], seen["empty"], seen["elf"]) == (200, 200, 209)
    assert seen["no_such_function"] == 500


@pytest.mark.usefixtures("device")
def test_a_launch_that_cannot_be_is_refused(box: Box) -> None:
    seen = box.run("faults.py")
    assert (seen["too_many_threads"], seen["enough_threads"]) == (1, 0)
    assert (seen["block_too_large"], seen["empty_grid"]) == (1, 1)
    assert (seen["no_parameters"], seen["too_much_shared"]) == (1, 1)


@pytest.mark.usefixtures("device")
def test_texts_linked_into_one_run_in_another_process(box: Box, tmp_path: Path) -> None:
    blob = str(tmp_path / "blob")
    made = box.run("linking.py", "make", blob)
    assert (made["result"], made["ends_with_nul"]) == (0, True)
    assert box.run("linking.py", "use", blob)["value"] == 0x02020202


@pytest.mark.usefixtures("device")
def test_a_text_that_does_not_parse_fails_the_link_with_a_reason(box: Box, tmp_path: Path) -> None:
    made = box.run("linking.py", "make", str(tmp_path / "blob"))
    assert made["broken"] != 0
    assert made["message"] != ""


def test_a_call_of_a_function_that_nobody_defines_is_refused_and_named(box: Box, device: Path) -> None:
    assert box.run("linking.py", "alone")["launched"] == 801
    assert [line for line in box.log(device) if "doubled" in line]


@pytest.mark.usefixtures("device")
def test_a_limit_of_registers_stays_with_the_linked_code(box: Box) -> None:
    seen = box.run("link_options.py")
    assert seen["free"] > 57
    assert (seen["limited"], seen["linked_again"], seen["declared"]) == (38, 57, 32)
    assert seen["constant_bytes"] == 80


@pytest.mark.usefixtures("device")
def test_only_texts_that_were_linked_may_differ_about_a_result(box: Box) -> None:
    seen = box.run("link_options.py")
    assert seen["together"] == [0, 0, 0]
    assert seen["in_one"] == 218


def test_the_device_runtime_links_and_other_archives_do_not(box: Box, device: Path) -> None:
    seen = box.run("link_options.py")
    assert seen["runtime"] == [0, 0, 0]
    assert (seen["other_archive"], seen["cut_short"]) == (209, 209)
    assert box.log(device) == ["image archive"]


@pytest.mark.usefixtures("device")
def test_kernels_take_memory_of_their_heap_and_give_it_back(box: Box) -> None:
    seen = box.run("device_heap.py")
    assert (seen["default_limit"], seen["small"], seen["too_late"]) == (8 << 20, 0, 1)
    assert (seen["distinct"], seen["aligned"], seen["values"]) == (64, True, True)
    assert seen["apart"] >= 24
    assert seen["freed_by_the_host"] == 1
    assert (seen["fitting"], seen["full"], seen["whole"], seen["nothing"]) == (16, 0, True, 0)
    assert seen["twice"] == 700


def test_ptx_in_fat_binaries_of_every_compression_runs(box: Box, device: Path) -> None:
    assert len(FATBINS) == 6
    seen = box.run("fatbins.py", *map(str, FATBINS))
    for name, (results, computed) in seen["seen"].items():
        assert results == [0, 0, 0], name
        if name.startswith("saxpy"):
            assert computed == [[1, 2, 3, 4], [10, 20, 30, 40], [12, 24, 36, 48]]
    for name, result in seen["broken"].items():
        assert result == (209 if name.endswith("other_kind") else 200) or name.endswith("byte"), name
    assert box.log(device) == ["image fatbin"]


@pytest.mark.parametrize(
    ("capability", "taken"), [((7, 0), 218), ((7, 5), 75), ((8, 0), 80), ((8, 9), 86), ((9, 0), 90)]
)
def test_of_several_the_newest_that_the_device_can_have_is_taken(
    box: Box, capability: tuple[int, int], taken: int
) -> None:
    box.add_device(compute_major=capability[0], compute_minor=capability[1])
    assert box.run("fatbins.py", "which", str(FOLDER / "several.fatbin"))["which"] == taken


@pytest.mark.slow
def test_damaged_fat_binaries_read_and_write_nothing_outside(compile_c: Callable[..., Path]) -> None:
    driver = ROOT / "native" / "softgpu" / "driver"
    sources = (Path(__file__).parent / "c" / "unpack_damaged.c", *sorted(driver.glob("unpack_*.c")))
    program = compile_c(
        *sources, flags=("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{driver}")
    )
    packed = [str(path) for path in FATBINS if not path.stem.endswith("none")]
    result = subprocess.run([str(program), "300", *packed], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")

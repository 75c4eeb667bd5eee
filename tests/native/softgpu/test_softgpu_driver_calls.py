"""The driver API as such: which devices are seen, which variant of a function, what nonsense gives."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.native.softgpu.machine import LIBRARIES, ROOT, Box


def symbols(table: str) -> list[str]:
    lines = (ROOT / "native" / "cuda" / f"{table}.tsv").read_text().splitlines()
    return [line.split("\t")[0] for line in lines[1:]]


@pytest.mark.parametrize(
    ("value", "buses"),
    [
        (None, [1, 2, 3]),
        ("", []),
        ("-1", []),
        ("0", [1]),
        ("2,0", [3, 1]),
        ("0,2,-1,1", [1, 3]),
        ("0,7,1", [1]),
        ("1,1", []),
        (" 1 , 2", [2, 3]),
        ("1gpu", [2]),
        ("none", []),
        ("GPU-bbbb", [2]),
        ("GPU-cccccccc-0000-0000-0000-000000000000,GPU-a", [3, 1]),
        ("GPU-", []),
        ("GPU-dddd", []),
        ("MIG-aaaa", []),
    ],
)
def test_cuda_visible_devices_selects_as_nvidia_documents_it(
    box: Box, value: str | None, buses: list[int]
) -> None:
    for bus, digit in ((2, "b"), (3, "c"), (1, "a")):
        box.add_device(bus=bus, uuid=f"GPU-{digit * 8}-0000-0000-0000-000000000000")
    extra = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert box.run("visible.py", **extra) == {"result": 0 if buses else 100, "buses": buses}


def test_without_a_device_there_is_none(box: Box) -> None:
    assert box.run("visible.py") == {"result": 100, "buses": []}


def test_a_folder_that_is_not_a_whole_device_is_passed_over(box: Box) -> None:
    box.add_device(bus=9)
    (box.devices / "GPU-unfinished").mkdir()
    broken = box.add_device(bus=4)
    (broken / "device").write_text("uuid nonsense\n")
    assert box.run("visible.py")["buses"] == [9]


@pytest.mark.usefixtures("device")
def test_get_proc_address_gives_the_variant_of_the_version_asked_for(box: Box) -> None:
    seen = box.run("proc_address.py")
    assert seen["wrong"] == []
    assert seen["unknown"] == [0, None, 1]
    assert seen["too_old"] == [0, None, 2]
    assert seen["too_new"] == [0, None, 2]
    assert seen["version_suffix"] == [0, None, 1]
    assert seen["without_status"] == 500


@pytest.mark.parametrize(("library", "table"), [("libcuda.so.1", "cuda"), ("libnvidia-ml.so.1", "nvml")])
@pytest.mark.usefixtures("device")
def test_no_function_crashes_on_zeros(box: Box, library: str, table: str) -> None:
    names = symbols(table)
    process = box.start("null_arguments.py", library)
    out, errors = process.communicate("\n".join(names), timeout=60)
    assert process.returncode == 0, f"crashed in {errors.splitlines()[-1]}"
    assert f'"prepared": {len(names)}' in out


@pytest.mark.usefixtures("box")
def test_every_function_of_the_table_is_exported_and_no_other() -> None:
    own = (ROOT / "native" / "softgpu" / "aliquot_softgpu.h").read_text()
    private = set(re.findall(r"\b(aliquotSoftgpu\w+)\(", own))
    for library, table in (("libcuda.so.1", "cuda"), ("libnvidia-ml.so.1", "nvml")):
        path = LIBRARIES / library
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True
        ).stdout
        exported = {line.split()[2] for line in listed.splitlines()}
        assert exported - private == set(symbols(table))


def test_an_unsupported_call_is_named_in_the_log_once(box: Box, device: Path) -> None:
    for _ in range(2):
        process = box.start("null_arguments.py", "libcuda.so.1")
        process.communicate("cuMulticastCreate\ncuMulticastCreate\ncuTexRefCreate", timeout=30)
    assert sorted(box.log(device)) == ["call cuMulticastCreate", "call cuTexRefCreate"]


@pytest.mark.usefixtures("device")
def test_host_functions_run_in_order_apart_and_the_stream_waits_for_them(box: Box) -> None:
    seen = box.run("callbacks.py")
    assert seen["busy"] is True
    assert seen["order"] == [1, 2]
    assert seen["other_thread"] is True
    assert seen["inside"] == [800]
    assert 0 < seen["elapsed"] < 20_000
    assert seen["query"] == 0

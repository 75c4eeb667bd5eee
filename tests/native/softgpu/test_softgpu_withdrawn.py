"""Drivers that lack what came later: functions that a program calls by the name it linked to."""

from __future__ import annotations

import csv
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.native.softgpu.machine import ROOT, Box, first_answer

from aliquot.model import GpuUuid
from aliquot.softgpu.devices import SoftGpu
from aliquot.softgpu.failing import DRIVER_BRANCHES, clear_failures, order_failures, parse_failures

NOT_SUPPORTED, FUNCTION_NOT_FOUND = 801, 13
ALWAYS = {"cuGetProcAddress_v2", "cuGetProcAddress_v2_ptsz"}
PTX_UNKNOWN = 222
VERSIONS = (
    *((470, 11040), (510, 11060), (515, 11070), (520, 11080), (525, 12000), (530, 12010), (535, 12020)),
    *((545, 12030), (550, 12040), (555, 12050), (560, 12060), (565, 12070), (570, 12080), (575, 12090)),
    *((580, 13000), (590, 13010), (595, 13020), (615, 13050)),
)
"""Driver branches and their CUDA versions, by NVIDIA's release notes."""


def table(library: str) -> dict[str, int]:
    with (ROOT / "native" / "cuda" / f"{library}.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row["symbol"]: int(row["version"]) for row in rows}


class Program:
    def __init__(self, box: Box, *arguments: str) -> None:
        self.process: subprocess.Popen[str] = box.start("withdrawn.py", *arguments)
        assert first_answer(self.process)["ready"]

    def ask(self, library: str, name: str) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{library} {name}\n")
        self.process.stdin.flush()
        return first_answer(self.process)["seen"]


def tell(folder: Path, failure: str) -> None:
    order_failures(SoftGpu(GpuUuid(folder.name), folder), parse_failures(failure), at=time.time_ns())


def test_every_branch_has_its_version() -> None:
    assert tuple(branch for branch, _ in VERSIONS) == DRIVER_BRANCHES


def test_a_late_function_called_by_its_name_is_not_supported_while_it_is_withdrawn(
    box: Box, device: Path
) -> None:
    program = Program(box)
    assert program.ask("cuda", "cuKernelGetLibrary") == [400, True]  # of no kernel
    tell(device, "driver=535")
    assert program.ask("cuda", "cuKernelGetLibrary") == [NOT_SUPPORTED, False]  # 12.5
    assert program.ask("cuda", "cuKernelGetLibrary")[0] == NOT_SUPPORTED
    assert program.ask("cuda", "cuKernelGetFunction") == [400, True]  # 12.0
    tell(device, "driver=550")
    assert program.ask("cuda", "cuKernelGetLibrary")[0] == NOT_SUPPORTED
    tell(device, "driver=555")
    assert program.ask("cuda", "cuKernelGetLibrary") == [400, True]
    clear_failures(SoftGpu(GpuUuid(device.name), device))
    assert program.ask("cuda", "cuKernelGetLibrary") == [400, True]
    assert box.log(device) == ["withdrawn cuKernelGetLibrary"]


def test_nvml_says_that_the_function_is_not_found(box: Box, device: Path) -> None:
    program = Program(box)
    assert program.ask("nvml", "nvmlDeviceGetPciInfoExt")[0] not in (0, FUNCTION_NOT_FOUND)
    tell(device, "driver=535")
    assert program.ask("nvml", "nvmlDeviceGetPciInfoExt")[0] == FUNCTION_NOT_FOUND  # 12.4, not implemented
    assert program.ask("nvml", "nvmlDeviceGetRunningProcessDetailList")[0] != FUNCTION_NOT_FOUND  # 12.2
    assert program.ask("nvml", "nvmlDeviceGetMemoryInfo_v2")[0] != FUNCTION_NOT_FOUND
    assert box.log(device) == ["withdrawn nvmlDeviceGetPciInfoExt"]


@pytest.mark.parametrize("branch", [470, 535, 580])
@pytest.mark.parametrize("library", ["cuda", "nvml"])
def test_all_that_the_table_dates_later_is_withdrawn(
    box: Box, device: Path, branch: int, library: str
) -> None:
    tell(device, f"driver={branch}")
    late = {name for name, since in table(library).items() if since > dict(VERSIONS)[branch]} - ALWAYS
    assert late
    process = box.start("withdrawn.py")
    out, errors = process.communicate("".join(f"{library} {name}\n" for name in sorted(late)), timeout=60)
    assert process.returncode == 0, errors
    answers = {json.loads(line)["seen"][0] for line in out.splitlines()[1:]}
    assert answers == {NOT_SUPPORTED if library == "cuda" else FUNCTION_NOT_FOUND}
    assert sorted(box.log(device)) == sorted(f"withdrawn {name}" for name in late)


def test_a_program_that_looks_names_up_before_it_initialises_sees_the_older_driver(
    box: Box, device: Path
) -> None:
    tell(device, "driver=535")
    program = Program(box, "cold")
    assert program.ask("cuda", "cuKernelGetLibrary") == [NOT_SUPPORTED, False]


def test_of_several_devices_the_oldest_driver_counts_also_where_it_is_not_visible(box: Box) -> None:
    folders = [box.add_device(bus=bus) for bus in (1, 2)]
    tell(folders[0], "driver=580")
    tell(folders[1], "driver=535")
    process = box.start("withdrawn.py", CUDA_VISIBLE_DEVICES="0")
    assert first_answer(process)["ready"]
    out, _ = process.communicate("cuda cuKernelGetLibrary\n", timeout=30)
    assert f"[{NOT_SUPPORTED}, false]" in out


def test_arguments_on_the_stack_and_by_value_pass_a_gate(box: Box, device: Path, client_python: str) -> None:
    """A client whose launches go through late functions, on a driver that is told to have them all:
    its compiler makes PTX that no older one takes."""
    tell(device, "driver=615")
    box.run("cuda_core_client.py", python=client_python)


@pytest.fixture(scope="module")
def cuda_of_ptx() -> dict[str, int]:
    """The first CUDA version that takes a PTX version, as NVIDIA's own Python package has it."""
    python = ROOT / ".clients" / "bin" / "python"
    question = (
        "import json; from cuda.bindings.utils import get_minimal_required_cuda_ver_from_ptx_ver as of; "
        "versions = [f'{major}.{minor}' for major in (7, 8, 9) for minor in range(9)]; found = {}\n"
        "for version in versions:\n"
        "    try: found[version] = of(version)\n"
        "    except ValueError: pass\n"
        "print(json.dumps(found))"
    )
    asked = subprocess.run([str(python), "-c", question], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        pytest.skip("the client environment has no cuda.bindings")
    return {str(version): int(cuda) for version, cuda in json.loads(asked.stdout).items()}


@pytest.mark.parametrize(("branch", "cuda"), VERSIONS)
def test_a_driver_takes_ptx_up_to_the_version_of_its_cuda(
    box: Box, device: Path, cuda_of_ptx: dict[str, int], branch: int, cuda: int
) -> None:
    tell(device, f"driver={branch}")
    seen = box.run("ptx_versions.py", *cuda_of_ptx)["seen"]
    for (version, needs), outcome in zip(cuda_of_ptx.items(), seen, strict=True):
        library = 0 if cuda >= 12000 else NOT_SUPPORTED  # cuLibraryLoadData came with CUDA 12
        expected = [0, library, 0] if needs <= cuda else [PTX_UNKNOWN, library or PTX_UNKNOWN, PTX_UNKNOWN]
        assert outcome["results"] == expected, (version, outcome)


def test_ptx_that_the_driver_does_not_know_is_named_with_its_line(box: Box, device: Path) -> None:
    assert box.run("ptx_versions.py", "9.3")["seen"][0]["results"] == [0, 0, 0]
    tell(device, "driver=535")
    (seen,) = box.run("ptx_versions.py", "9.3")["seen"]
    said = "line 2: Unsupported .version 9.3; the driver of branch 535 (CUDA 12.2) knows PTX up to '8.2'"
    assert (seen["results"], seen["log"], seen["same"]) == ([PTX_UNKNOWN] * 3, said, True)
    assert box.log(device) == [f"ptx {said}"]

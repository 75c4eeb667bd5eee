"""The table of symbols: complete, decided, and refused where it is not."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.native.governor.shares import ROOT

from check_surface import CLASSES, faults
from generate_surface import CUDA_TABLE, NVML_TABLE, Symbol, read_table, table_text

TABLES = {"cuda": read_table(CUDA_TABLE), "nvml": read_table(NVML_TABLE)}


def _symbols(table: dict[str, dict[str, str]]) -> list[Symbol]:
    return [
        Symbol(row["symbol"], row["base"], int(row["version"]), row["per_thread"], row["parameters"])
        for row in table.values()
    ]


@pytest.mark.parametrize("name", TABLES)
def test_every_symbol_is_decided_and_dated(name: str) -> None:
    table = TABLES[name]
    assert list(table) == sorted(table)
    assert {row["class"] for row in table.values()} <= CLASSES
    assert faults(_symbols(table), table) == []


@pytest.mark.parametrize("name", TABLES)
def test_writing_the_table_again_keeps_what_was_decided(name: str) -> None:
    path = {"cuda": CUDA_TABLE, "nvml": NVML_TABLE}[name]
    assert table_text(_symbols(TABLES[name]), TABLES[name]) == path.read_text()


def test_a_new_symbol_is_unclassified_and_refused() -> None:
    new = Symbol("cuMemAllocTomorrow", "cuMemAllocTomorrow", 14000, "-", "CUdeviceptr *dptr")
    assert "\tunclassified\t" in table_text([new], TABLES["cuda"])
    assert faults([new], TABLES["cuda"]) == ["cuMemAllocTomorrow: in the header, not in the table"]


@pytest.mark.parametrize(
    ("name", "line", "says"),
    [
        (
            "cuda.h",
            "CUresult CUDAAPI cuMemAllocTomorrow(CUdeviceptr *dptr);",
            "cuMemAllocTomorrow: in the header",
        ),
        ("cuda.h", "CUresult CUDAAPI cuInit(unsigned int Flags);", ""),
        (
            "nvml.h",
            "nvmlReturn_t nvmlDeviceStealTomorrow(void *device);",
            "nvmlDeviceStealTomorrow: in the header",
        ),
        ("cuda.h", "int not_of_cuda(void);", "not a header of CUDA or NVML"),
    ],
)
def test_a_header_is_checked_by_make_check_surface(tmp_path: Path, name: str, line: str, says: str) -> None:
    header = tmp_path / name
    header.write_text(line + "\n")
    done = subprocess.run(
        ["make", "-s", "check-surface", f"HEADER={header}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode != 0) == bool(says), done.stdout + done.stderr
    assert says in done.stdout


def test_a_changed_parameter_list_and_a_missing_reason_are_refused() -> None:
    table = TABLES["cuda"]
    (alloc,) = [symbol for symbol in _symbols(table) if symbol.symbol == "cuMemAlloc_v2"]
    assert "parameters changed" in faults([replace(alloc, parameters="void")], table)[0]
    unexplained = {"cuMemAlloc_v2": table["cuMemAlloc_v2"] | {"why": "-"}}
    assert "without a reason" in faults([alloc], unexplained)[0]


def test_a_per_thread_form_is_treated_like_its_plain_form() -> None:
    table = TABLES["cuda"]
    for row in table.values():
        if row["per_thread"] != "-":
            plain = table[row["symbol"].removesuffix("_" + row["per_thread"])]
            assert (plain["class"], plain["base"]) == (row["class"], row["base"]), row["symbol"]


def test_every_function_that_names_device_memory_it_hands_out_is_decided_on() -> None:
    """Whatever allocates by name and merely passes would be a hole."""
    passing = {
        row["symbol"]
        for row in TABLES["cuda"].values()
        if row["class"] == "pass"
        and ("Alloc" in row["base"] or "Import" in row["base"] or "Create" in row["base"])
    }
    assert passing <= {
        # host memory and addresses
        "cuMemAllocHost", "cuMemAllocHost_v2", "cuMemHostAlloc",
        # questions
        "cuMemGetAllocationGranularity", "cuMemGetAllocationPropertiesFromHandle", "cuStreamGetAttribute",
        # objects without memory of the size a tenant chooses
        "cuEventCreate", "cuEventCreateFromEGLSync", "cuGraphCreate", "cuLinkCreate", "cuLinkCreate_v2",
        "cuStreamCreate", "cuStreamCreateWithPriority", "cuSurfObjectCreate", "cuTexObjectCreate",
        "cuTexRefCreate", "cuUserObjectCreate", "cuGreenCtxStreamCreate", "cuImportExternalSemaphore",
        "cuGraphConditionalHandleCreate", "cuGraphMemAllocNodeGetParams", "cuTensorMapSetAllocationClass",
    }  # fmt: skip


def _header() -> Path | None:
    roots = [Path(os.environ["CUDA_HOME"])] if "CUDA_HOME" in os.environ else []
    roots += (ROOT / ".clients").glob("lib/python3*/site-packages/nvidia/*")
    return next((root / "include" for root in roots if (root / "include" / "cuda.h").exists()), None)


LAYOUTS = """
#include <stddef.h>
#include <stdio.h>
#include HEADER
#define SIZE(type) printf(#type " %zu\\n", sizeof(type));
#define AT(type, field) printf(#type "." #field " %zu\\n", offsetof(type, field));
int main(void) {
  SIZE(CUDA_ARRAY3D_DESCRIPTOR) SIZE(CUDA_ARRAY3D_DESCRIPTOR_v1) SIZE(CUDA_ARRAY_DESCRIPTOR)
  SIZE(CUDA_ARRAY_DESCRIPTOR_v1) SIZE(CUmemLocation) SIZE(CUdeviceptr) SIZE(CUdeviceptr_v1) SIZE(CUdevice)
  SIZE(CUmemGenericAllocationHandle)
  AT(CUDA_ARRAY3D_DESCRIPTOR, Depth) AT(CUDA_ARRAY3D_DESCRIPTOR, Format)
  AT(CUDA_ARRAY3D_DESCRIPTOR, NumChannels) AT(CUDA_ARRAY3D_DESCRIPTOR, Flags)
  AT(CUDA_ARRAY3D_DESCRIPTOR_v1, Flags) AT(CUDA_ARRAY_DESCRIPTOR, NumChannels)
  AT(CUmemAllocationProp, type) AT(CUmemAllocationProp, location) AT(CUmemPoolProps, allocType)
  AT(CUmemPoolProps, location) SIZE(CUmemPoolProps) SIZE(CUDA_MEM_ALLOC_NODE_PARAMS) SIZE(CUipcMemHandle)
  AT(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize) AT(CUgraphNodeParams, alloc) SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS)
  AT(CUmemLocation, type) AT(CUmemLocation, id) AT(CUgraphNodeParams, type)
  printf("%d %d %d %d %d\\n", CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_SYSTEM_NOT_READY,
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_INVALID_VALUE);
#ifdef CUDA_VERSION
  printf("%d %d %d %d %d %d %d %d %d\\n", CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
         CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, CU_MEM_ALLOCATION_TYPE_PINNED,
         CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_LIMIT_MALLOC_HEAP_SIZE,
         CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
#else
  printf("%d %d %d %d %d %d %d %d %d\\n", LOCATION_DEVICE, LOCATION_HOST_NUMA_CURRENT,
         LOCATION_DEVICE_LOCALITY_DOMAIN, ALLOCATION_PINNED, POOL_ATTRIBUTE_RESERVED_CURRENT,
         GRAPH_NODE_MEM_ALLOC, LIMIT_MALLOC_HEAP_SIZE, ATTRIBUTE_MULTIPROCESSORS,
         ATTRIBUTE_THREADS_PER_MULTIPROCESSOR);
#endif
  return 0; }
"""


def test_the_governor_s_own_types_are_laid_out_like_nvidia_s(tmp_path: Path) -> None:
    include = _header()
    if include is None:
        pytest.skip("cuda.h is not at hand (`make demo` installs it into .clients)")
    source = tmp_path / "layouts.c"
    source.write_text(LAYOUTS)
    said = []
    for folder, name in ((include, "cuda.h"), (ROOT / "native" / "governor", "cuda_api.h")):
        program = tmp_path / name.removesuffix(".h")
        subprocess.run(
            [
                "cc",
                "-D__CUDA_API_VERSION_INTERNAL",
                f"-I{folder}",
                f'-DHEADER="{name}"',
                source,
                "-o",
                program,
            ],
            check=True,
        )
        said.append(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    assert said[0] == said[1]

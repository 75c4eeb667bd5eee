"""Software GPUs: as GPUs are shown, and what they were told to do wrong."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.views.gpus import GPUS, GpuRow
from aliquot.model import GpuUuid


@dataclass(frozen=True, slots=True)
class SoftwareGpuRow(GpuRow):
    failures: tuple[str, ...]
    """As `aliquot softgpu fail` takes them."""


def software_gpu_rows(
    rows: Iterable[GpuRow], failures: Mapping[GpuUuid, tuple[str, ...]]
) -> list[SoftwareGpuRow]:
    return [
        SoftwareGpuRow(row.gpu, row.shares, row.short_uuid, failures.get(row.gpu.uuid, ())) for row in rows
    ]


def _nested(row: SoftwareGpuRow) -> Mapping[str, object]:
    of_a_gpu = GPUS.nested(row) if GPUS.nested else {}
    return {**of_a_gpu, "failures": list(row.failures)}


SOFTWARE_GPUS: Listing[SoftwareGpuRow] = replace(
    cast("Listing[SoftwareGpuRow]", GPUS),
    empty="no software GPU; `aliquot softgpu create T4` makes one",
    columns=(
        *cast("Listing[SoftwareGpuRow]", GPUS).columns,
        Column("failures", lambda row: ",".join(row.failures) or "none", shown=Shown.WIDE),
    ),
    nested=_nested,
)

"""Software GPUs: as GPUs are shown, what passes for time on them, and what they were told to do wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.views.gpus import GPUS, GpuRow
from aliquot.model import GpuUuid

_USUAL = {"time": "real", "slice": "2ms"}
"""What a device has that was created without --time and --slice."""


@dataclass(frozen=True, slots=True)
class SoftwareGpuRow(GpuRow):
    failures: tuple[str, ...]
    """As `aliquot softgpu fail` takes them."""
    time: str | None = None
    slice: str | None = None
    """As `aliquot softgpu create` takes them."""


def software_gpu_rows(
    rows: Iterable[GpuRow],
    failures: Mapping[GpuUuid, tuple[str, ...]],
    times: Mapping[GpuUuid, tuple[str | None, str | None]],
) -> list[SoftwareGpuRow]:
    return [
        SoftwareGpuRow(
            row.gpu,
            row.shares,
            row.short_uuid,
            failures.get(row.gpu.uuid, ()),
            *times.get(row.gpu.uuid, (None, None)),
        )
        for row in rows
    ]


def _nested(row: SoftwareGpuRow) -> Mapping[str, object]:
    of_a_gpu = GPUS.nested(row) if GPUS.nested else {}
    return {**of_a_gpu, "failures": list(row.failures)}


SOFTWARE_GPUS: Listing[SoftwareGpuRow] = replace(
    cast("Listing[SoftwareGpuRow]", GPUS),
    empty="no software GPU; `aliquot softgpu create T4` makes one",
    columns=(
        *cast("Listing[SoftwareGpuRow]", GPUS).columns,
        Column("time", lambda row: row.time, shown=Shown.WIDE),
        Column("slice", lambda row: row.slice, shown=Shown.WIDE),
        Column("failures", lambda row: ",".join(row.failures) or "none", shown=Shown.WIDE),
    ),
    nested=_nested,
)


def software_gpus_with(rows: Sequence[SoftwareGpuRow]) -> Listing[SoftwareGpuRow]:
    """The list, its plain table with TIME and SLICE where one of ``rows`` has another than usual."""
    unusual = {
        name for name, usual in _USUAL.items() if any(getattr(row, name) not in (usual, None) for row in rows)
    }
    return replace(
        SOFTWARE_GPUS,
        columns=tuple(
            replace(column, shown=Shown.TABLE) if column.name in unusual else column
            for column in SOFTWARE_GPUS.columns
        ),
    )

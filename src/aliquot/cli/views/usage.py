"""Usage: what was leased and used, summed; and the cards that it was leased of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.kinds import AMOUNT, BYTES, COUNT, SPAN
from aliquot.cli.output.tables import table
from aliquot.model import GIB

if TYPE_CHECKING:
    from aliquot.metering import Coverage, UsageRow

_HOUR = 3600


def gib_hours(byte_seconds: float | None) -> float | None:
    return None if byte_seconds is None else byte_seconds / GIB / _HOUR


def gpu_hours(compute_seconds: float | None) -> float | None:
    return None if compute_seconds is None else compute_seconds / _HOUR


USAGE: "Listing[UsageRow]" = Listing(
    kind="Usage",
    name=lambda row: row.key,
    empty="nothing was leased in that time",
    columns=(
        Column("key", lambda row: row.key, narrowest=8),
        Column("leases", lambda row: row.leases, COUNT),
        Column("wall", lambda row: row.wall_ns, SPAN, key="wallSeconds"),
        Column("memory", lambda row: gib_hours(row.byte_seconds), AMOUNT, key="gibHours", header="GIB-H"),
        Column("compute", lambda row: gpu_hours(row.compute_seconds), AMOUNT, key="gpuHours", header="GPU-H"),
        Column("peak", lambda row: row.peak_bytes, BYTES, key="peakBytes"),
        Column("denied", lambda row: row.denied, COUNT, key="deniedAllocations"),
        Column(
            "unknown",
            lambda row: row.unknown_memory,
            COUNT,
            key="sharesOfUnknownMemory",
            shown=Shown.WIDE,
        ),
        Column("byte-seconds", lambda row: row.byte_seconds, AMOUNT, key="byteSeconds", shown=Shown.WIDE),
        Column(
            "compute-seconds",
            lambda row: row.compute_seconds,
            AMOUNT,
            key="computeSecondsReserved",
            shown=Shown.WIDE,
        ),
    ),
    labels={"key": lambda row: [row.key]},
    example="peak>=10GiB or denied>0",
)

_COVERAGE: "Listing[Coverage]" = Listing(
    kind="Coverage",
    name=lambda row: row.gpu,
    empty="",
    columns=(
        Column("gpu", lambda row: row.gpu, brief=lambda row: row.gpu[:12]),
        Column("name", lambda row: row.name, narrowest=8),
        Column("card-memory", lambda row: gib_hours(row.card_byte_seconds), AMOUNT, header="CARD GIB-H"),
        Column("leased-memory", lambda row: gib_hours(row.leased_byte_seconds), AMOUNT, header="LEASED"),
        Column(
            "unleased-memory", lambda row: gib_hours(row.unleased_byte_seconds), AMOUNT, header="UNLEASED"
        ),
        Column("card-compute", lambda row: gpu_hours(row.card_compute_seconds), AMOUNT, header="CARD GPU-H"),
        Column("leased-compute", lambda row: gpu_hours(row.leased_compute_seconds), AMOUNT, header="LEASED"),
        Column(
            "unleased-compute",
            lambda row: gpu_hours(row.unleased_compute_seconds),
            AMOUNT,
            header="UNLEASED",
        ),
    ),
)


def coverage_lines(rows: "Sequence[Coverage]", *, width: int | None = None) -> list[str]:
    """The cards over the same span: leased plus unleased is the card."""
    return table(_COVERAGE, rows, now=0, width=width)


def coverage_items(rows: "Sequence[Coverage]") -> list[dict[str, object]]:
    """In byte-seconds and GPU-seconds, as they were summed: rounding is for people only."""
    return [
        {
            "gpu": row.gpu,
            "name": row.name,
            "cardByteSeconds": row.card_byte_seconds,
            "leasedByteSeconds": row.leased_byte_seconds,
            "unleasedByteSeconds": row.unleased_byte_seconds,
            "cardComputeSeconds": row.card_compute_seconds,
            "leasedComputeSeconds": row.leased_compute_seconds,
            "unleasedComputeSeconds": row.unleased_compute_seconds,
        }
        for row in rows
    ]

"""Usage: what was leased and used, summed; and the cards that it was leased of."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.kinds import AMOUNT, BYTES, COUNT, SPAN
from aliquot.cli.output.tables import table
from aliquot.model import GIB, Lease

if TYPE_CHECKING:
    from aliquot.metering import Coverage, UsageRow

_HOUR = 3600


def gib_hours(byte_seconds: float | None) -> float | None:
    return None if byte_seconds is None else byte_seconds / GIB / _HOUR


def gpu_hours(compute_seconds: float | None) -> float | None:
    return None if compute_seconds is None else compute_seconds / _HOUR


@dataclass(frozen=True, slots=True)
class UsageLine:
    sums: "UsageRow"
    lease: Lease | None = None
    """Where the sums are of one lease."""

    @property
    def name(self) -> str | None:
        return self.lease.name if self.lease else None

    @property
    def user(self) -> str | None:
        return self.lease.user if self.lease else None


def usage_lines(rows: "Iterable[UsageRow]", leases: Iterable[Lease]) -> list[UsageLine]:
    """``leases`` are those whose ids may be keys: none where the sums are not by lease."""
    known: dict[str, Lease] = {lease.id: lease for lease in leases}
    return [UsageLine(sums=row, lease=known.get(row.key)) for row in rows]


_OF_ONE_LEASE: tuple[Column[UsageLine], ...] = (
    Column("name", lambda line: line.name, narrowest=6),
    Column("user", lambda line: line.user, narrowest=6),
)
_LABELS_OF_ONE_LEASE: dict[str, Callable[[UsageLine], Iterable[str | None]]] = {
    "lease": lambda line: [line.sums.key, line.name],
    "name": lambda line: [line.name],
    "user": lambda line: [line.user],
}


def usage_listing(by: str) -> Listing[UsageLine]:
    """``by`` is ``lease``, ``user`` or ``command``, and the first column's name."""
    of_one = by == "lease"
    return Listing(
        kind="Usage",
        name=lambda line: line.sums.key,
        empty="nothing was leased in that time",
        columns=(
            Column(by, lambda line: line.sums.key, key="key", narrowest=8),
            *(_OF_ONE_LEASE if of_one else ()),
            Column(
                "leases", lambda line: line.sums.leases, COUNT, shown=Shown.WIDE if of_one else Shown.TABLE
            ),
            *_SUMS,
        ),
        labels={"key": lambda line: [line.sums.key]}
        | (_LABELS_OF_ONE_LEASE if of_one else {by: lambda line: [line.sums.key]}),
        example="peak>=10GiB or denied>0",
    )


_SUMS: tuple[Column[UsageLine], ...] = (
    Column("wall", lambda line: line.sums.wall_ns, SPAN, key="wallSeconds"),
    Column("memory", lambda line: gib_hours(line.sums.byte_seconds), AMOUNT, key="gibHours", header="GIB-H"),
    Column(
        "compute", lambda line: gpu_hours(line.sums.compute_seconds), AMOUNT, key="gpuHours", header="GPU-H"
    ),
    Column("busy", lambda line: gpu_hours(line.sums.busy_seconds), AMOUNT, key="busyGpuHours"),
    Column("peak", lambda line: line.sums.peak_bytes, BYTES, key="peakBytes"),
    Column("denied", lambda line: line.sums.denied, COUNT, key="deniedAllocations"),
    Column(
        "unknown",
        lambda line: line.sums.unknown_memory,
        COUNT,
        key="sharesOfUnknownMemory",
        shown=Shown.WIDE,
    ),
    Column("byte-seconds", lambda line: line.sums.byte_seconds, AMOUNT, key="byteSeconds", shown=Shown.WIDE),
    Column(
        "compute-seconds",
        lambda line: line.sums.compute_seconds,
        AMOUNT,
        key="computeSecondsReserved",
        shown=Shown.WIDE,
    ),
    Column("busy-seconds", lambda line: line.sums.busy_seconds, AMOUNT, key="busySeconds", shown=Shown.WIDE),
)

USAGE = usage_listing("lease")

_COVERAGE: "Listing[Coverage]" = Listing(
    kind="Coverage",
    name=lambda row: row.gpu,
    empty="",
    columns=(
        Column("gpu", lambda row: row.gpu, brief=lambda row: row.gpu[:12]),
        Column("name", lambda row: row.name, narrow=lambda row: _short(row.name), narrowest=8),
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


def _short(name: str) -> str:
    from aliquot.placement import short_name

    return short_name(name)


def of_interest(rows: "Iterable[Coverage]", *, here: Collection[str]) -> "list[Coverage]":
    """The cards that are ``here`` (UUIDs) now or were leased in the span."""
    return [row for row in rows if row.gpu in here or row.leased_compute_ns > 0]


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

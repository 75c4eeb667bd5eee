"""Leases: who holds what, how strongly, and until when."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.durations import format_time
from aliquot.cli.output.kinds import AGE, BYTES, COMPUTE, REMAINING, SPAN
from aliquot.model import (
    Bytes,
    ContainerHolder,
    Isolation,
    Lease,
    LeaseState,
    NobodyHolder,
    Policy,
    ProcessHolder,
    Share,
    Snapshot,
    Thousandths,
    format_bytes,
    format_compute,
)

UNKNOWN_PASSES = "functions that this Aliquot does not know reach the driver, uncounted"
COMPUTE_MEANING = {
    Policy.FAIR: "guaranteed, idle time is given away",
    Policy.CAP: "guaranteed and never more",
    Policy.PRIORITY: "before the shares of others, which keep a twentieth",
}
"""What a share's part of the compute means, by its policy."""

_MEANING = {
    Isolation.HARD: "the hardware holds it",
    Isolation.FIRM: "a partition of multiprocessors and the governor hold it",
    Isolation.SOFT: "the governor holds it",
    Isolation.ADVISORY: "the governor holds whoever does not go round it",
}


@dataclass(frozen=True, slots=True)
class LeaseRow:
    lease: Lease
    indices: Mapping[str, int]
    """GPU UUID → position, of the GPUs that are still here."""

    @property
    def gpus(self) -> str:
        return ",".join(self.gpu_text(share) for share in self.lease.shares)

    @property
    def memory(self) -> Bytes | None:
        sizes = [share.memory for share in self.lease.shares]
        return None if None in sizes else Bytes(sum(size or 0 for size in sizes))

    @property
    def compute(self) -> Thousandths:
        return Thousandths(sum(share.compute for share in self.lease.shares))

    def gpu_text(self, share: Share) -> str:
        index = self.indices.get(share.gpu)
        return share.gpu[:12] if index is None else str(index)


def newest_first(leases: Iterable[Lease], *, by_end: bool) -> list[Lease]:
    """By their end, or by their beginning."""

    def moment(lease: Lease) -> int:
        return lease.ended_at if by_end and lease.ended_at is not None else lease.created_at

    return sorted(leases, key=moment, reverse=True)


def lease_rows(leases: Iterable[Lease], snapshot: Snapshot) -> list[LeaseRow]:
    indices: dict[str, int] = {gpu.uuid: gpu.index for gpu in snapshot.gpus}
    return [LeaseRow(lease=lease, indices=indices) for lease in leases]


def holder_text(lease: Lease) -> str:
    match lease.holder:
        case ProcessHolder(pid=pid):
            return f"pid {pid}"
        case ContainerHolder(engine=engine):
            return f"{engine} container"
        case NobodyHolder():
            return "nobody"


def isolation_text(lease: Lease) -> str:
    """What holds it, as a clause, and why not more does."""
    meaning = isolation_meaning(lease.isolation, governed=lease.governed)
    return f"{meaning}: {lease.isolation_why}" if lease.governed and lease.isolation_why else meaning


def isolation_meaning(isolation: Isolation, *, governed: bool) -> str:
    if not governed:
        return "the whole GPU, for this lease alone"
    return f"{isolation.value}: {_MEANING[isolation]}"


def compute_text(lease: Lease) -> str:
    shares = ", ".join(format_compute(share.compute) for share in lease.shares)
    return shares if not lease.governed else f"{shares} {lease.policy.value}: {COMPUTE_MEANING[lease.policy]}"


def share_text(share: Share, row: LeaseRow) -> str:
    """``gpu0 10GiB 25%``."""
    size = "whole" if share.whole else f"{format_bytes(share.memory)} {format_compute(share.compute)}"
    return f"gpu{row.gpu_text(share)} {size}"


def one_line(row: LeaseRow) -> str:
    """What ``run`` says on stderr: lease, GPU, size, isolation."""
    lease = row.lease
    shares = ", ".join(share_text(share, row) for share in lease.shares)
    isolation = lease.isolation.value
    held = (
        f"memory {isolation}, compute {isolation} ({lease.policy.value})" if lease.governed else "whole GPU"
    )
    name = f" ({lease.name})" if lease.name else ""
    return f"lease {lease.id}{name} · {lease.ask} · {shares} · {held}"


def _state(row: LeaseRow) -> str:
    """A lease that waits to be resumed is held all the same; a person wants to see why nothing happens."""
    paused = row.lease.state is LeaseState.HELD and row.lease.paused_at is not None
    return "paused" if paused else row.lease.state.value


def _expiry(row: LeaseRow) -> int | None:
    """Of a live lease: one that has ended expires no more."""
    return row.lease.expires_at if row.lease.state.live else None


def holder_item(lease: Lease) -> dict[str, object]:
    match lease.holder:
        case ProcessHolder() as process:
            return {"kind": "process", **_process_item(process)}
        case ContainerHolder() as container:
            return {
                "kind": "container",
                "engine": container.engine,
                "endpoint": container.endpoint,
                "releaseOnStop": container.release_on_stop,
                "client": _process_item(container.client) if container.client else None,
            }
        case NobodyHolder():
            return {"kind": "nobody"}


def _process_item(process: ProcessHolder) -> dict[str, object]:
    return {
        "pid": process.pid,
        "startTimeTicks": process.start_time,
        "pidNamespace": process.pid_namespace,
    }


def _nested(row: LeaseRow) -> dict[str, object]:
    lease = row.lease
    return {
        "shares": [
            {
                "gpu": share.gpu,
                "index": row.indices.get(share.gpu),
                "memoryBytes": share.memory,
                "computeThousandths": share.compute,
                "whole": share.whole,
                "computeHeld": share.whole,
            }
            for share in lease.shares
        ],
        "pausedAt": None if lease.paused_at is None else format_time(lease.paused_at),
        "isolationWhy": lease.isolation_why,
        "unknown": lease.unknown.value,
        "holderDetail": holder_item(lease),
        "heldAt": None if lease.held_at is None else format_time(lease.held_at),
    }


LEASES: Listing[LeaseRow] = Listing(
    kind="Lease",
    name=lambda row: row.lease.id,
    empty="no leases; `aliquot lease --gpu 1/4` takes one, --ended shows those of the past",
    columns=(
        Column("id", lambda row: row.lease.id),
        Column("name", lambda row: row.lease.name, narrowest=6),
        Column("user", lambda row: row.lease.user, narrowest=6),
        Column("size", lambda row: row.lease.ask, narrowest=10),
        Column("gpus", lambda row: row.gpus, narrowest=4),
        Column("isolation", lambda row: row.lease.isolation.value),
        Column("state", lambda row: row.lease.state.value, brief=_state),
        Column("holder", lambda row: holder_text(row.lease), narrowest=9, spare=1),
        Column("age", lambda row: row.lease.created_at, AGE, key="createdAt"),
        Column(
            "expires",
            _expiry,
            REMAINING,
            key="expiresAt",
            spare=2,
        ),
        Column("memory", lambda row: row.memory, BYTES, key="memoryBytes", shown=Shown.WIDE),
        Column("compute", lambda row: row.compute, COMPUTE, key="computeThousandths", shown=Shown.WIDE),
        Column("policy", lambda row: row.lease.policy.value, shown=Shown.WIDE),
        Column("ended", lambda row: row.lease.ended_at, AGE, key="endedAt", shown=Shown.WIDE),
        Column(
            "lasted",
            lambda row: (
                None
                if row.lease.held_at is None or row.lease.ended_at is None
                else row.lease.ended_at - row.lease.held_at
            ),
            SPAN,
            key="lastedSeconds",
            shown=Shown.WIDE,
        ),
        Column("why", lambda row: row.lease.end_why, key="endWhy", shown=Shown.WIDE, narrowest=8),
        Column("command", lambda row: row.lease.command, shown=Shown.WIDE),
    ),
    labels={
        "user": lambda row: [row.lease.user],
        "state": lambda row: [row.lease.state.value],
        "name": lambda row: [row.lease.name],
        "isolation": lambda row: [row.lease.isolation.value],
        "policy": lambda row: [row.lease.policy.value],
        "gpu": lambda row: [text for share in row.lease.shares for text in (share.gpu, row.gpu_text(share))],
        "holder": lambda row: [str(holder_item(row.lease)["kind"]), holder_text(row.lease)],
    },
    example="memory>=10GiB and age>2h",
    nested=_nested,
)

_OF_THE_PAST: dict[str, dict[str, Any]] = {
    "isolation": {"spare": 1},
    "holder": {"spare": 2},
    "expires": {"shown": Shown.WIDE},
    "ended": {"shown": Shown.TABLE},
    "why": {"shown": Shown.TABLE},
}

PAST_LEASES: Listing[LeaseRow] = replace(
    LEASES,
    empty="no leases of that time; `aliquot leases` lists the live ones",
    columns=tuple(replace(column, **_OF_THE_PAST.get(column.name, {})) for column in LEASES.columns),
)
"""Where leases have ended: when and why, instead of when they would expire."""

"""One lease in full: what it asked beside what it used, how it is held, and what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aliquot.cli.output.documents import document
from aliquot.cli.output.durations import format_duration, format_time
from aliquot.cli.output.kinds import UNKNOWN
from aliquot.cli.output.streams import printable
from aliquot.cli.output.tables import aligned
from aliquot.cli.views.leases import (
    LEASES,
    UNKNOWN_PASSES,
    LeaseRow,
    compute_text,
    holder_text,
    isolation_text,
)
from aliquot.model import (
    Attestation,
    LeaseState,
    Ledger,
    LedgerSlot,
    Policy,
    Share,
    Unknown,
    Usage,
    format_bytes,
    format_compute,
)
from aliquot.node import Keeping

if TYPE_CHECKING:
    from aliquot.node import LeaseEvent, Ungoverned


@dataclass(frozen=True, slots=True)
class LeaseStory:
    row: LeaseRow
    usages: Sequence[Usage]
    ledger: Ledger | None
    """As it stands now; ``None`` for a whole GPU and after the end."""
    events: "Sequence[LeaseEvent]"
    ungoverned: "Sequence[Ungoverned] | None" = ()
    """``None`` where it cannot be known."""
    keeping: "Keeping | None" = None
    """``None`` of a lease that nobody keeps: of whole GPUs, or not held."""
    keeper_pid: int | None = None


def story_lines(story: LeaseStory, *, now: int) -> list[str]:
    lease = story.row.lease
    title = f"lease {lease.id}" + (f"  {lease.name}" if lease.name else "")
    fields = [
        ("size", f"{lease.ask}  ({lease.policy.value})"),
        ("state", _state(story.row, now)),
        ("isolation", isolation_text(lease)),
        ("compute", compute_text(lease)),
        ("holder", printable(f"{holder_text(lease)}, user {lease.user}")),
        ("command", printable(lease.command or UNKNOWN)),
        ("expires", UNKNOWN if lease.expires_at is None else format_time(lease.expires_at)),
    ]
    if lease.unknown is Unknown.PASS:
        fields.append(("unknown", UNKNOWN_PASSES))
    if story.keeping is not None:
        fields.insert(4, ("keeper", keeper_text(story)))
    lines = [title, *_indented(aligned(fields)), "shares"]
    header = ("", "asked", "peak", "mean", "used now", "compute", "busy", "denied")
    shares = [_share_row(story, position, share) for position, share in enumerate(lease.shares)]
    lines += _indented(aligned([header, *shares]))
    lines += _process_lines(story.ledger)
    lines += _ungoverned_lines(story)
    if story.ledger is not None and story.ledger.unknown:
        asked = "passed through" if lease.unknown is Unknown.PASS else "asked for in vain"
        lines.append(f"{asked}, unknown to this Aliquot: " + ", ".join(story.ledger.unknown))
    lines.append("story")
    return lines + _indented(aligned([_event_row(event) for event in story.events]))


def story_document(story: LeaseStory) -> dict[str, object]:
    ledger = story.ledger
    return document(
        "Lease",
        LEASES.item(story.row)
        | {
            "usage": [usage_item(usage) for usage in story.usages],
            "keeper": None
            if story.keeping is None
            else {"state": story.keeping.value, "pid": story.keeper_pid},
            "ledger": None if ledger is None else _ledger_item(ledger),
            "ungoverned": None
            if story.ungoverned is None
            else [_ungoverned_item(process) for process in story.ungoverned],
            "story": [
                {"at": format_time(event.at), "what": event.what, "detail": event.detail}
                for event in story.events
            ],
        },
    )


def keeper_text(story: LeaseStory) -> str:
    """Whether somebody keeps it, what it means where nobody does, and what starts one."""
    lease = story.row.lease
    again = f"`aliquot keeper {lease.id}` starts one"
    if story.keeping is Keeping.GONE:
        means = "" if lease.policy is Policy.CAP else f": {lease.policy.value} acts as cap meanwhile"
        if story.keeper_pid is not None:
            return f"process {story.keeper_pid} is stopped or hangs{means}"
        return f"gone{means}; {again}"
    if story.keeping is Keeping.NEVER:
        return f"none, as of an older Aliquot; {again}"
    if story.keeper_pid is None:
        return f"none yet, or just gone; {again}"
    return f"process {story.keeper_pid}"


def usage_item(usage: Usage) -> dict[str, object]:
    return {
        "gpu": usage.gpu,
        "wallSeconds": usage.wall_ns / 1e9,
        "leasedBytes": usage.leased_bytes,
        "peakBytes": usage.peak_bytes,
        "meanBytes": usage.mean_bytes,
        "deniedAllocations": usage.denied,
        "byteSeconds": usage.byte_seconds,
        "computeSecondsReserved": usage.compute_seconds,
        "busySeconds": usage.busy_seconds,
    }


def _state(row: LeaseRow, now: int) -> str:
    lease = row.lease
    since = format_duration((lease.ended_at or now) - lease.created_at)
    if lease.state is LeaseState.HELD and lease.paused_at is not None:
        paused = format_duration(now - lease.paused_at)
        return f"held, paused for {paused}: its launches wait until `aliquot resume {lease.id}`"
    if lease.state is LeaseState.RELEASING:
        return f"releasing ({lease.end_why or 'by hand'}): it gets no more memory"
    if lease.ended_at is None:
        return f"{lease.state.value}, {since} old"
    return f"{lease.state.value} after {since} ({lease.end_why or 'the book does not say why'})"


def _share_row(story: LeaseStory, position: int, share: Share) -> tuple[str, ...]:
    usage = next((usage for usage in story.usages if usage.gpu == share.gpu), None)
    devices = story.ledger.devices if story.ledger else ()
    used = devices[position].used if position < len(devices) else None
    return (
        f"gpu{story.row.gpu_text(share)}",
        f"{format_bytes(share.memory)}{' (whole)' if share.whole else ''}",
        format_bytes(usage.peak_bytes if usage else None),
        format_bytes(None if usage is None or usage.mean_bytes is None else int(usage.mean_bytes)),
        format_bytes(used),
        format_compute(share.compute),
        UNKNOWN if usage is None or usage.busy_ns is None else _busy_text(usage.busy_ns),
        UNKNOWN if usage is None or usage.denied is None else str(usage.denied),
    )


def _busy_text(nanoseconds: int) -> str:
    """To the tenth of a second while it is short: work of a minute is seldom busy for all of it."""
    return f"{nanoseconds / 1e9:.1f}s" if nanoseconds < 120e9 else format_duration(nanoseconds)


def _process_lines(ledger: Ledger | None) -> list[str]:
    alive = [slot for slot in ledger.slots if slot.alive] if ledger else []
    if not alive:
        return []
    rows = [
        (
            _pid_text(slot),
            ", ".join(_used_text(slot, device) for device in range(len(slot.used))),
            attestation_text(slot.attestation),
        )
        for slot in alive
    ]
    return ["processes", *_indented(aligned(rows))]


def _pid_text(slot: LedgerSlot) -> str:
    """As it calls itself, and as we call it where that is something else."""
    here = f" (here {slot.outer_pid})" if slot.outer_pid not in (None, slot.pid) else ""
    return f"pid {slot.pid}{here}"


def _used_text(slot: LedgerSlot, device: int) -> str:
    taken = slot.taken[device] if device < len(slot.taken) else None
    of_it = f", {format_bytes(taken)} of it the driver's own" if taken else ""
    return f"{format_bytes(slot.used[device])}{of_it}"


def attestation_text(attestation: Attestation | None) -> str:
    """What a process says of its governor, as a clause."""
    if attestation is None:
        return "says nothing of its governor"
    held = [
        name for name, holds in (("memory", attestation.memory), ("compute", attestation.compute)) if holds
    ]
    governor = f"governor {attestation.version} ({attestation.build})"
    return f"{governor} holds {' and '.join(held) or 'nothing'}"


def _ungoverned_lines(story: LeaseStory) -> list[str]:
    if story.ungoverned is None:
        return ["not governed: unknown, for the driver or the ledger cannot be read"]
    if not story.ungoverned:
        return []
    rows = [
        (
            f"pid {process.pid}",
            format_bytes(process.memory),
            printable(process.command or UNKNOWN),
            process.why,
        )
        for process in story.ungoverned
    ]
    return ["not governed", *_indented(aligned(rows))]


def _ledger_item(ledger: Ledger) -> dict[str, object]:
    return {
        "devices": [
            {"usedBytes": device.used, "peakBytes": device.peak, "deniedAllocations": device.denied}
            for device in ledger.devices
        ],
        "processes": [
            {
                "pid": slot.pid,
                "outerPid": slot.outer_pid,
                "usedBytes": list(slot.used),
                "driversOwnBytes": list(slot.taken),
                "attestation": None if slot.attestation is None else _attestation_item(slot.attestation),
            }
            for slot in ledger.slots
            if slot.alive
        ],
        "unknownFunctions": list(ledger.unknown),
    }


def _attestation_item(attestation: Attestation) -> dict[str, object]:
    return {
        "build": attestation.build,
        "version": attestation.version,
        "memoryHeld": attestation.memory,
        "computeHeld": attestation.compute,
        "limitsSeen": attestation.limits_seen,
    }


def _ungoverned_item(process: "Ungoverned") -> dict[str, object]:
    return {
        "pid": process.pid,
        "gpu": process.gpu,
        "memoryBytes": process.memory,
        "command": process.command,
        "why": process.why,
    }


def _event_row(event: "LeaseEvent") -> tuple[str, ...]:
    return (format_time(event.at), printable(event.what), printable(event.detail or ""))


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]

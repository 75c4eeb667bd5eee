"""Why: what an ask met on every GPU and who is in its way; why a lease is held or how it ended."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aliquot.ask import to_document
from aliquot.cli.output.documents import document
from aliquot.cli.output.durations import format_duration, format_time
from aliquot.cli.output.failures import considered_item, next_lines
from aliquot.cli.output.streams import printable
from aliquot.cli.output.tables import aligned
from aliquot.cli.views.leases import (
    LEASES,
    LeaseRow,
    holder_text,
    lease_rows,
    share_text,
)
from aliquot.cli.views.plans import placed_text, refused_item
from aliquot.model import ContainerHolder, Lease, LeaseState, NobodyHolder, ProcessHolder, Snapshot
from aliquot.placement import headline

if TYPE_CHECKING:
    from aliquot.node import Explanation, LeaseEvent


def explanation_lines(explanation: "Explanation", snapshot: Snapshot) -> list[str]:
    """For people, in the order of the questions: fits? why not? who? what now?"""
    lines = [_verdict(explanation, snapshot), *(f"  {printable(line)}" for line in explanation.lines)]
    holders = lease_rows(explanation.holders, snapshot)
    if holders:
        lines += ["held by", *(f"  {line}" for line in aligned([_holder_row(row) for row in holders]))]
    return [*lines, *next_lines(explanation.next)]


def explanation_document(explanation: "Explanation", snapshot: Snapshot) -> dict[str, object]:
    result = explanation.placed or explanation.refused
    return document(
        "Explanation",
        {
            "ask": to_document(explanation.ask),
            "fits": explanation.placed is not None,
            "refused": None if explanation.refused is None else refused_item(explanation.refused),
            "reasons": list(explanation.lines),
            "considered": [considered_item(one) for one in result.considered] if result else [],
            "holders": [LEASES.item(row) for row in lease_rows(explanation.holders, snapshot)],
            "nearest": explanation.nearest,
            "next": [{"command": command, "meaning": meaning} for command, meaning in explanation.next],
        },
    )


def lease_lines(row: LeaseRow, story: "Sequence[LeaseEvent]") -> list[str]:
    """Why a lease is held, or how it ended, and its last event."""
    lease = row.lease
    shares = ", ".join(share_text(share, row) for share in lease.shares)
    lines = [f"lease {lease.id} of {printable(lease.user)} is {lease.state.value}: {shares}"]
    lines += [f"  {printable(text)}" for text in _reasons(lease)]
    if story:
        last = story[-1]
        detail = f": {last.detail}" if last.detail else ""
        lines.append(f"  last  {format_time(last.at)}  {printable(last.what + detail)}")
    return [*lines, *next_lines(_steps(lease))]


def _verdict(explanation: "Explanation", snapshot: Snapshot) -> str:
    if explanation.refused is not None:
        sentence = headline(explanation.refused, explanation.ask, node=snapshot.node.name)
        return f"✗ {sentence}   [{explanation.refused.reason.code}]"
    shares = explanation.placed.shares if explanation.placed else ()
    where = "; ".join(placed_text(share, snapshot) for share in shares)
    return f"✓ {explanation.ask} fits: {where}"


def _holder_row(row: LeaseRow) -> tuple[str, ...]:
    lease = row.lease
    return (
        lease.id,
        printable(lease.user),
        ", ".join(share_text(share, row) for share in lease.shares),
        holder_text(lease),
        printable(lease.command or lease.name or ""),
    )


def _reasons(lease: Lease) -> list[str]:
    if lease.state is LeaseState.ENDED:
        lasted = (
            "" if lease.ended_at is None else f" after {format_duration(lease.ended_at - lease.created_at)}"
        )
        return [f"it ended{lasted}: {lease.end_why or 'the book does not say why'}"]
    match lease.holder:
        case ProcessHolder(pid=pid):
            reasons = [f"held while process {pid} lives: {lease.command or 'command unknown'}"]
        case ContainerHolder(engine=engine, release_on_stop=on_stop):
            end = "stops" if on_stop else "is removed; a stopped one keeps it"
            reasons = [f"held until its {engine} container {end}: {lease.command or 'command unknown'}"]
        case NobodyHolder():
            reasons = ["held until released" + (", or until it expires" if lease.expires_at else "")]
    if lease.expires_at is not None:
        reasons.append(f"expires at {format_time(lease.expires_at)}")
    if lease.state is LeaseState.RELEASING:
        reasons.append("releasing: no new work starts; it ends when the last process that uses it is gone")
    return reasons


def _steps(lease: Lease) -> list[tuple[str, str]]:
    steps = [(f"aliquot show {lease.id}", "its numbers and its whole story")]
    return [*steps, (f"aliquot release {lease.id}", "ends it")] if lease.state.live else steps

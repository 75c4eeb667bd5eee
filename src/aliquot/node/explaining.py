"""Why an ask fits or does not, who holds what, and what to type next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aliquot.model import (
    AliquotError,
    Ask,
    Isolation,
    Lease,
    Placed,
    PlacementPolicy,
    Reason,
    Refused,
    Snapshot,
    format_bytes,
    format_compute,
)
from aliquot.placement import explain, headline, nearest, place


@dataclass(frozen=True, slots=True)
class Explanation:
    ask: Ask
    placed: Placed | None
    refused: Refused | None
    lines: tuple[str, ...]
    """One a GPU looked at."""
    holders: tuple[Lease, ...]
    """Live leases on those GPUs, the largest first."""
    nearest: str | None
    """The largest SPEC of that kind that fits now."""
    next: tuple[tuple[str, str], ...]


def explain_ask(
    ask: Ask,
    snapshot: Snapshot,
    live: Sequence[Lease],
    *,
    policy: PlacementPolicy = PlacementPolicy.PACK,
    achievable: Isolation,
) -> Explanation:
    held = [share for lease in live for share in lease.shares]
    result = place(ask, snapshot, held, policy=policy, achievable=achievable)
    placed = result if isinstance(result, Placed) else None
    refused = result if isinstance(result, Refused) else None
    near = nearest(ask, snapshot, held, achievable=achievable) if refused else None
    return Explanation(
        ask=ask,
        placed=placed,
        refused=refused,
        lines=explain(result, ask),
        holders=_holders(result, live),
        nearest=near,
        next=_next(ask, refused, near, live) if refused else (_run(str(ask), "starts it there"),),
    )


def refusal(ask: Ask, refused: Refused, snapshot: Snapshot, live: Sequence[Lease]) -> AliquotError:
    """The error that carries a refusal: every GPU's numbers, who holds them, what to type."""
    held = [share for lease in live for share in lease.shares]
    near = nearest(ask, snapshot, held, achievable=ask.isolation or Isolation.ADVISORY)
    lines = explain(refused, ask)
    # Who holds what matters only where their end would help.
    held_by = _holders(refused, live) if refused.reason is Reason.NO_ROOM else ()
    holders = [holder_line(lease) for lease in held_by]
    return AliquotError(
        refused.reason,
        headline(refused, ask, node=snapshot.node.name),
        facts=(*lines, *holders),
        next=_next(ask, refused, near, live),
        considered=refused.considered,
    )


def holder_line(lease: Lease) -> str:
    """``lease k7f3q  9.3GiB, 60%  alice  python train.py``."""
    sizes = ", ".join(
        "a whole GPU"
        if share.whole
        else f"{format_bytes(share.memory)} and {format_compute(share.compute)} compute"
        for share in lease.shares
    )
    label = f"{lease.id} ({lease.name})" if lease.name else lease.id
    command = f": {lease.command}" if lease.command else ""
    return f"lease {label} of {lease.user} holds {sizes}{command}"


def _holders(result: Placed | Refused, live: Iterable[Lease]) -> tuple[Lease, ...]:
    looked_at = {considered.gpu for considered in result.considered}
    on_them = [lease for lease in live if any(share.gpu in looked_at for share in lease.shares)]
    return tuple(sorted(on_them, key=lambda lease: -sum(share.memory or 0 for share in lease.shares)))


def _next(ask: Ask, refused: Refused, near: str | None, live: Sequence[Lease]) -> tuple[tuple[str, str], ...]:
    if refused.reason is Reason.NOT_ENFORCEABLE:
        return (
            (
                f"aliquot run --gpu {ask} -- docker run IMAGE …",
                "in a container: soft, and firm for a whole GPU",
            ),
            (f"aliquot run --gpu {ask} -- CMD", "without --isolation takes what can be had"),
        )
    steps: list[tuple[str, str]] = []
    if near is not None:
        steps.append(_run(near, "fits now"))
    if refused.could_ever_fit:
        for lease in _holders(refused, live)[:1]:
            steps.append((f"aliquot show {lease.id}", f"shows what {lease.user} uses of it"))
    if not steps or not refused.considered:
        steps.append(_fix(refused))
    return tuple(steps)


def _run(spec: str, what: str) -> tuple[str, str]:
    return (f"aliquot run --gpu {spec} -- CMD", what)


def _fix(refused: Refused) -> tuple[str, str]:
    if not refused.considered:
        return ("aliquot softgpu create T4", "makes a software GPU; `aliquot doctor` looks for real ones")
    return ("aliquot gpus -o wide", "shows what every GPU here has, and what is wrong with it")

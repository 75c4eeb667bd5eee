"""A plan: what an ask means in its normal form, and where it would go or why nowhere."""

from aliquot.ask import to_document
from aliquot.cli.output.documents import document
from aliquot.cli.output.failures import considered_item
from aliquot.cli.output.tables import aligned
from aliquot.cli.views.leases import COMPUTE_MEANING, UNKNOWN_PASSES, isolation_meaning
from aliquot.model import (
    AliquotError,
    Ask,
    Isolation,
    Placed,
    Refused,
    Share,
    Snapshot,
    Unknown,
    format_bytes,
    format_compute,
)
from aliquot.placement import explain, headline


def plan_lines(ask: Ask, result: Placed | Refused, snapshot: Snapshot, *, isolation: Isolation) -> list[str]:
    """For people: the normal form, the GPUs it would go to, and the isolation it would have there."""
    rows = [
        ("size", str(ask)),
        ("policy", ask.policy.value),
        ("isolation", _isolation_text(ask, result, isolation)),
    ]
    if isinstance(result, Placed):
        rows += [("goes to", placed_text(share, snapshot)) for share in result.shares]
        if any(not share.whole for share in result.shares):
            rows.append(("compute", COMPUTE_MEANING[ask.policy]))
    if ask.unknown is Unknown.PASS:
        rows.append(("unknown", UNKNOWN_PASSES))
    return aligned(rows)


def _isolation_text(ask: Ask, result: Placed | Refused, isolation: Isolation) -> str:
    asked = f"at least {ask.isolation.value}" if ask.isolation else "any"
    if isinstance(result, Refused):
        return asked
    got = isolation_meaning(isolation, governed=any(not share.whole for share in result.shares))
    return f"{got} (asked: {asked})" if ask.isolation else got


def placed_text(share: Share, snapshot: Snapshot) -> str:
    """``gpu0 (T4)  4GiB memory, 25% compute``."""
    gpu = next((gpu for gpu in snapshot.gpus if gpu.uuid == share.gpu), None)
    where = share.gpu if gpu is None else f"gpu{gpu.index} ({gpu.name})"
    if share.whole:
        return f"{where}  the whole GPU"
    return f"{where}  {format_bytes(share.memory)} memory, {format_compute(share.compute)} compute"


def plan_document(
    ask: Ask, result: Placed | Refused, snapshot: Snapshot, *, isolation: Isolation
) -> dict[str, object]:
    indices = {gpu.uuid: gpu.index for gpu in snapshot.gpus}
    placed = isinstance(result, Placed)
    return document(
        "Plan",
        {
            "ask": to_document(ask),
            "fits": placed,
            "isolation": isolation.value if placed else None,
            "shares": [
                {
                    "gpu": share.gpu,
                    "index": indices.get(share.gpu),
                    "memoryBytes": share.memory,
                    "computeThousandths": share.compute,
                    "whole": share.whole,
                    "computeHeld": share.whole,
                }
                for share in (result.shares if isinstance(result, Placed) else ())
            ],
            "refused": refused_item(result) if isinstance(result, Refused) else None,
            "considered": [considered_item(one) for one in result.considered],
        },
    )


def refused_item(refused: Refused) -> dict[str, object]:
    return {
        "code": refused.reason.code,
        "exitCode": refused.reason.exit_code,
        "title": refused.reason.title,
        "couldEverFit": refused.could_ever_fit,
    }


def refusal_of(ask: Ask, refused: Refused, *, node: str) -> AliquotError:
    """The refusal as the error that `aliquot run` would give, less who holds what."""
    return AliquotError(
        refused.reason,
        headline(refused, ask, node=node),
        facts=explain(refused, ask),
        next=[(f"aliquot why {ask}", "says who holds what, and what fits now")],
        considered=refused.considered,
    )

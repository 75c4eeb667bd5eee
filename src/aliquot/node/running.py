"""``aliquot run``: a command or a container in a share, from the fork to the exit code."""

import os
import shlex
import sys
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from aliquot.lease import Book
from aliquot.model import AliquotError, Lease, LeaseId, LeaseState, Reason, Snapshot
from aliquot.node.looking import by_uuid
from aliquot.node.orders import Order, Plan
from aliquot.node.paths import Paths
from aliquot.node.supervising import WaitingChild
from aliquot.node.taking import Terms, prepare, reserve

if TYPE_CHECKING:
    from aliquot.node.keepers import HostedKeeper


def run_order(paths: Paths, book: Book, snapshot: Snapshot, order: Order, plan: Plan) -> tuple[Lease, int]:
    """Start the command in its share and wait for it. Gives the lease and the exit code.

    The lease is committed as held, by the child, while the child still waits for our word.
    """
    if order.lease is not None:  # it has its keeper
        if order.announce:
            order.announce(order.lease, snapshot)
        return order.lease, plan.start(order.lease).child.go()
    if order.ask is None:
        raise AliquotError(Reason.BAD_USAGE, "`run` needs a size or a lease")
    terms = Terms(
        ask=order.ask,
        holder=plan.holder(os.getpid()),
        placement=order.placement,
        name=order.name,
        command=_in_text(shlex.join(order.command)),
        container=plan.container,
        apart=plan.apart,
    )
    lease = reserve(book, snapshot, terms)
    child: WaitingChild | None = None

    def hold(prepared: Lease) -> Lease:
        nonlocal child
        started = plan.start(prepared)
        child = started.child
        try:
            return book.advance(
                prepared.id,
                LeaseState.HELD,
                at=time.time_ns(),
                holder=plan.holder(child.pid),
                isolation_why=started.isolation_why,
            )
        except BaseException:
            child.abandon()
            raise

    lease = prepare(paths, book, lease, by_uuid(snapshot), then=hold)
    if child is None:
        raise RuntimeError("a held lease has its child")
    if order.announce:
        order.announce(lease, snapshot)
    return lease, _kept(paths, lease, child, container=plan.container)


def _kept(paths: Paths, lease: Lease, child: WaitingChild, *, container: bool) -> int:
    """Wait for ``child`` and keep its share meanwhile. A container outlives the client that starts it, and so
    must its keeper."""
    if container:
        from aliquot.node.keepers import start_keeper

        start_keeper(paths, lease)
        return child.go()
    hosted: list[HostedKeeper] = []

    def tick() -> None:
        if not hosted:
            # Nothing of it is loaded for a command that is done within a second.
            from aliquot.node.keepers import HostedKeeper

            hosted.append(HostedKeeper(paths, lease))
        hosted[0].tick()

    try:
        return child.go(tick)
    finally:
        for keeper in hosted:
            keeper.stop()


def _in_text(command: str) -> str:
    """For the book: file names may be bytes that are no text."""
    return command.encode(errors="backslashreplace").decode()


def refuse_inside_a_share(environ: Mapping[str, str], live: Collection[LeaseId]) -> None:
    """A share of a share would be booked against the card, and held by the outer one's limits."""
    lease = environ.get("ALIQUOT_LEASE")
    if lease in live:
        command = shlex.join(sys.argv[sys.argv.index("--") + 1 :]) if "--" in sys.argv else "CMD"
        raise AliquotError(
            Reason.BAD_USAGE,
            f"this shell is already in the share of lease {lease}; a share is not cut again",
            next=[
                (command, "runs in it"),
                ("exit", "leaves it; then ask anew"),
            ],
        )

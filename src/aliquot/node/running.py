"""``aliquot run``: a command or a container in a share, from the fork to the exit code."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from aliquot.injection import (
    ContainerCommand,
    Engine,
    cdi_flags,
    child_environment,
    flags,
    image_environment,
    image_of,
    probe,
    process_edits,
    rewrite,
    takes_cdi,
    writable_cdi_folder,
)
from aliquot.lease import Book, describe
from aliquot.model import (
    AliquotError,
    Ask,
    ContainerHolder,
    Edits,
    Holder,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    Notice,
    PlacementPolicy,
    Reason,
    Snapshot,
)
from aliquot.node.cdi import edits_inside, write_spec
from aliquot.node.looking import by_uuid
from aliquot.node.paths import Paths
from aliquot.node.share_folder import folder_of, refuse_without_governor
from aliquot.node.supervising import WaitingChild, fork_waiting
from aliquot.node.taking import Terms, driver_of, prepare, reserve

Announce = Callable[[Lease, Snapshot], None]
Tell = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked of ``run``; exactly one of ``ask`` and ``lease`` is given."""

    command: tuple[str, ...]
    ask: Ask | None
    lease: Lease | None
    name: str | None
    placement: PlacementPolicy
    release_on_stop: bool
    inject: str
    """``auto``, ``cdi`` or ``flags``; of containers only."""
    announce: Announce | None


@dataclass(frozen=True, slots=True)
class Plan:
    """How the command will be started, once there is a lease."""

    holder: Callable[[int], Holder]
    """The holder, given the child's pid."""
    start: Callable[[Lease], WaitingChild]
    container: bool


def run_order(paths: Paths, book: Book, snapshot: Snapshot, order: Order, plan: Plan) -> tuple[Lease, int]:
    """Start the command in its share and wait for it. Gives the lease and the exit code.

    The lease is committed as held, by the child, while the child still waits for our word.
    """
    if order.lease is not None:
        if order.announce:
            order.announce(order.lease, snapshot)
        return order.lease, plan.start(order.lease).go()
    if order.ask is None:
        raise AliquotError(Reason.BAD_USAGE, "`run` needs a size or a lease")
    terms = Terms(
        ask=order.ask,
        holder=plan.holder(os.getpid()),
        placement=order.placement,
        name=order.name,
        command=_in_text(shlex.join(order.command)),
        container=plan.container,
    )
    lease = reserve(book, snapshot, terms)
    child: WaitingChild | None = None

    def hold(prepared: Lease) -> Lease:
        nonlocal child
        child = plan.start(prepared)
        try:
            return book.advance(
                prepared.id, LeaseState.HELD, at=time.time_ns(), holder=plan.holder(child.pid)
            )
        except BaseException:
            child.abandon()
            raise

    lease = prepare(paths, book, lease, by_uuid(snapshot), then=hold)
    if child is None:
        raise RuntimeError("a held lease has its child")
    if order.announce:
        order.announce(lease, snapshot)
    return lease, child.go()


def _in_text(command: str) -> str:
    """For the book: file names may be bytes that are no text."""
    return command.encode(errors="backslashreplace").decode()


def process_plan(paths: Paths, snapshot: Snapshot, order: Order) -> Plan:
    gpus = by_uuid(snapshot)

    def start(lease: Lease) -> WaitingChild:
        if lease.governed:
            refuse_without_governor(paths, lease)
        edits = process_edits(lease, folder=folder_of(paths, lease.id), driver=driver_of(paths, lease, gpus))
        return fork_waiting(order.command, child_environment(edits, os.environ))

    return Plan(holder=describe, start=start, container=False)


def container_plan(
    paths: Paths, snapshot: Snapshot, order: Order, command: ContainerCommand, tell: Tell
) -> Plan:
    """Asks the engine, and refuses what would hand out every card before anything is leased."""
    if order.release_on_stop and command.verb == "create":
        raise AliquotError(
            Reason.BAD_USAGE,
            "--release-on-stop with `create`: a container that was created and not started does not run, "
            "so its lease would end at once",
            next=[(f"{command.argv[0]} run -d …", "creates and starts it")],
        )
    engine = probe(command.client)
    own = (str(paths.state), str(paths.runtime))
    _refuse_weakened(order, rewrite(command, engine=engine, insertion=(), own_folders=own).notices)
    image = image_of(command, engine=engine)
    image_env = image_environment(engine.client, image) if image else None
    gpus = by_uuid(snapshot)

    def start(lease: Lease) -> WaitingChild:
        edits = edits_inside(paths, lease, gpus, driver_of(paths, lease, gpus))
        insertion = _insertion(paths, lease, edits, command, engine, order.inject)
        rewritten = rewrite(command, engine=engine, insertion=insertion, image_env=image_env, own_folders=own)
        for notice in rewritten.notices:
            tell(notice)
        return fork_waiting(rewritten.argv, os.environ)

    def holder(pid: int) -> Holder:
        return ContainerHolder(
            engine=engine.kind.value,
            client=describe(pid),
            release_on_stop=order.release_on_stop,
            endpoint=engine.client.endpoint,
        )

    return Plan(holder=holder, start=start, container=True)


def _refuse_weakened(order: Order, notices: Sequence[Notice]) -> None:
    """An isolation that was asked for, and that an option of the same command takes away."""
    asked = order.ask.isolation if order.ask is not None else None
    weakened = [notice for notice in notices if notice.code == "isolation-weakened"]
    if weakened and asked is not None and asked is not Isolation.ADVISORY:
        raise AliquotError(
            Reason.NOT_ENFORCEABLE,
            f"{asked.value} isolation is asked for, and the command takes it away: {weakened[0].text}",
            facts=[notice.text for notice in weakened[1:]],
            next=[("aliquot run --isolation advisory …", "takes the share all the same")],
        )


def _insertion(
    paths: Paths, lease: Lease, edits: Edits, command: ContainerCommand, engine: Engine, inject: str
) -> tuple[str, ...]:
    """The options to insert: the name of a CDI specification where the engine reads one."""
    folder = None
    if inject != "flags" and takes_cdi(command, engine=engine, edits=edits):
        folder = writable_cdi_folder(engine.cdi_folders)
    if folder is not None:
        write_spec(paths, lease.id, edits, folder)
        return cdi_flags(lease.id, engine=engine)
    if inject == "cdi":
        raise AliquotError(
            Reason.NO_CDI,
            _no_cdi(engine),
            next=[("aliquot run --inject flags …", "uses plain options instead")],
        )
    return flags(edits, lease_id=lease.id, engine=engine)


def _no_cdi(engine: Engine) -> str:
    if not engine.cdi_folders:
        return f"this {engine.kind.value} has no CDI"
    if writable_cdi_folder(engine.cdi_folders) is None:
        return f"none of {', '.join(engine.cdi_folders)} is writable"
    return f"this {engine.kind.value} would let a mount of the command hide the share that CDI puts in"


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

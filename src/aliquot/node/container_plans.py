"""How a container is started in a share: the user's own command, with our options put in."""

import os
from collections.abc import Sequence

from aliquot.injection import (
    ContainerCommand,
    Engine,
    cdi_flags,
    flags,
    image_environment,
    image_of,
    probe,
    rewrite,
    takes_cdi,
    writable_cdi_folder,
)
from aliquot.lease import describe
from aliquot.model import (
    AliquotError,
    ContainerHolder,
    Edits,
    Holder,
    Isolation,
    Lease,
    Notice,
    Reason,
    Snapshot,
)
from aliquot.node.cdi import edits_inside, write_spec
from aliquot.node.looking import by_uuid
from aliquot.node.orders import Order, Plan, Started, Tell
from aliquot.node.paths import Paths
from aliquot.node.supervising import fork_waiting
from aliquot.node.taking import driver_of


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
    if order.user is not None or order.inject == "path":
        option = "--user" if order.user is not None else "--inject path"
        raise AliquotError(
            Reason.BAD_USAGE,
            f"{option} is of a process; this command starts a container",
            next=[(f"{command.argv[0]} run --user …", "is the container's own option")] if order.user else [],
        )
    engine = probe(command.client)
    own = (str(paths.state), str(paths.runtime))
    _refuse_weakened(order, rewrite(command, engine=engine, insertion=(), own_folders=own).notices)
    image = image_of(command, engine=engine)
    image_env = image_environment(engine.client, image) if image else None
    gpus = by_uuid(snapshot)

    def start(lease: Lease) -> Started:
        edits = edits_inside(paths, lease, gpus, driver_of(paths, lease, gpus))
        insertion = _insertion(paths, lease, edits, command, engine, order.inject)
        rewritten = rewrite(command, engine=engine, insertion=insertion, image_env=image_env, own_folders=own)
        for notice in rewritten.notices:
            tell(notice)
        return Started(fork_waiting(rewritten.argv, os.environ))

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

"""``aliquot verify``: a program of ours in the place of a tenant's, trying to get more than its share."""

import contextlib
import os
import time
from collections.abc import Mapping

from aliquot.enforcement import PROGRAM, live_slots, program_arguments, program_folder, read_attempts
from aliquot.injection import Client, copy_into, execute_inside
from aliquot.lease import Book, describe
from aliquot.model import (
    AliquotError,
    Ask,
    ContainerHolder,
    Gpu,
    GpuUuid,
    Lease,
    LeaseState,
    PlacementPolicy,
    Reason,
    Snapshot,
    Verification,
)
from aliquot.node.libraries import ensure_copied
from aliquot.node.looking import by_uuid
from aliquot.node.paths import Paths
from aliquot.node.releasing import release_lease
from aliquot.node.running import Order, process_plan
from aliquot.node.share_folder import ledger_file
from aliquot.node.taking import Terms, prepare, reserve
from aliquot.node.using import container_ids

_PATIENCE = 1800.0
"""Seconds for all attempts in a container: a card's driver needs seconds for each start."""


def verify_size(
    paths: Paths, book: Book, snapshot: Snapshot, ask: Ask, placement: PlacementPolicy
) -> Verification:
    """Take a share of ``ask`` for as long as the attempts last. Raises AliquotError with the refusal."""
    terms = Terms(ask=ask, holder=describe(os.getpid()), placement=placement, command="aliquot verify")

    def hold(lease: Lease) -> Lease:
        return book.advance(lease.id, LeaseState.HELD, at=time.time_ns())

    gpus = by_uuid(snapshot)
    lease = prepare(paths, book, reserve(book, snapshot, terms), gpus, then=hold)
    try:
        return _in_a_process(paths, snapshot, lease, gpus)
    finally:
        release_lease(paths, book, lease, why="verified")


def verify_lease(paths: Paths, snapshot: Snapshot, lease: Lease, *, force: bool) -> Verification:
    """In the share of ``lease``, or in its container.

    Raises AliquotError: LEASE_ENDED; LEASE_BUSY where its own programs are on the GPU, which would
    be refused memory meanwhile, without ``force``.
    """
    if lease.state is not LeaseState.HELD:
        raise AliquotError(
            Reason.LEASE_ENDED,
            f"lease {lease.id} is {lease.state.value}: there is nothing to try",
            next=[(f"aliquot verify {lease.ask}", "takes a share of the same size for it")],
        )
    using = live_slots(ledger_file(paths, lease.id))
    if using and not force:
        raise AliquotError(
            Reason.LEASE_BUSY,
            f"{using} {'process' if using == 1 else 'processes'} of lease {lease.id} would be refused memory "
            "while the attempts last",
            next=[
                (f"aliquot verify --force {lease.id}", "tries it all the same"),
                (f"aliquot verify {lease.ask}", "tries another share of the same size"),
            ],
        )
    gpus = by_uuid(snapshot)
    if isinstance(lease.holder, ContainerHolder):
        return _in_a_container(paths, lease, lease.holder, gpus)
    return _in_a_process(paths, snapshot, lease, gpus)


def _in_a_process(
    paths: Paths, snapshot: Snapshot, lease: Lease, gpus: Mapping[GpuUuid, Gpu]
) -> Verification:
    """Started as ``aliquot run`` starts a tenant's program."""
    arguments = program_arguments(lease, gpus)
    program = ensure_copied(program_folder(), paths.libraries) / PROGRAM
    listen, tell = os.pipe()
    os.set_inheritable(tell, True)
    try:
        order = _order(lease, (str(program), f"--report={tell}", *arguments))
        process_plan(paths, snapshot, order).start(lease).go()
    finally:
        os.close(tell)
        with os.fdopen(listen, "rb") as report:  # all it said fits into a pipe
            said = report.read().decode(errors="replace")
    return Verification(lease.id, "process", read_attempts(said, isolation=lease.isolation))


def _order(lease: Lease, command: tuple[str, ...]) -> Order:
    return Order(
        command=command,
        ask=None,
        lease=lease,
        name=None,
        placement=PlacementPolicy.PACK,
        release_on_stop=False,
        inject="auto",
        announce=None,
    )


def _in_a_container(
    paths: Paths, lease: Lease, holder: ContainerHolder, gpus: Mapping[GpuUuid, Gpu]
) -> Verification:
    arguments = program_arguments(lease, gpus)
    folder = ensure_copied(program_folder(), paths.libraries)
    client = Client.of(holder.engine, holder.endpoint)
    containers = container_ids(lease)
    if not containers:
        raise AliquotError(
            Reason.NOT_FOUND,
            f"{holder.engine} knows no container of lease {lease.id}",
            next=[(f"aliquot show {lease.id}", "shows its story")],
        )
    container = containers[0]
    inside = copy_into(client, container, sorted(folder.iterdir()))
    try:
        status, said, complaint = execute_inside(
            client, container, [f"/{PROGRAM}", *arguments], timeout=_PATIENCE
        )
    finally:
        with contextlib.suppress(AliquotError):
            execute_inside(client, container, [inside[0], "--remove"], user="0", timeout=60)
    if status not in (0, Reason.CHECK_FAILED.exit_code):
        raise AliquotError(
            Reason.FAILED,
            f"{PROGRAM} does not run in container {container[:12]}: {(complaint or said).strip()[-200:]}",
            next=[(f"{holder.engine} start {container[:12]}", "where it does not run")],
        )
    # Its isolation is a container's whatever the lease was taken as: it runs in one.
    return Verification(lease.id, container[:12], read_attempts(said, isolation=lease.isolation))

"""``aliquot verify``: a program of ours in the place of a tenant's, trying to get more than its share."""

import contextlib
import os
from dataclasses import replace
from typing import Self

from aliquot.enforcement import (
    PROGRAM,
    live_slots,
    nothing_to_try,
    program_arguments,
    program_folder,
    read_attempts,
)
from aliquot.injection import Client, copy_into, execute_inside
from aliquot.lease import Book
from aliquot.model import (
    AliquotError,
    Ask,
    Attempt,
    ContainerHolder,
    Lease,
    LeaseState,
    Outcome,
    PlacementPolicy,
    Policy,
    Reason,
    Snapshot,
    Verification,
)
from aliquot.node.libraries import ensure_copied
from aliquot.node.looking import by_uuid
from aliquot.node.orders import Order
from aliquot.node.paths import Paths
from aliquot.node.process_plans import process_plan
from aliquot.node.running import run_order
from aliquot.node.share_folder import ledger_file
from aliquot.node.trying import as_a_cap, refuse_while_tried
from aliquot.node.using import container_ids

_RAN_TO_ITS_END = (0, Reason.CHECK_FAILED.exit_code)
_PATIENCE = 1800.0
"""Seconds for all attempts in a container: a card's driver needs seconds for each start."""


def verify_size(
    paths: Paths, book: Book, snapshot: Snapshot, ask: Ask, placement: PlacementPolicy
) -> Verification:
    """Take a share of ``ask`` for as long as the attempts last.

    As a cap: alone on its card no other share holds its time. Raises AliquotError with the refusal.
    """
    if any(alternative.amount.whole for alternative in ask.alternatives):
        raise nothing_to_try(str(ask))
    capped = replace(ask, policy=Policy.CAP)
    return _in_a_process(paths, book, snapshot, ask=capped, lease=None, placement=placement)


def verify_lease(paths: Paths, book: Book, snapshot: Snapshot, lease: Lease, *, force: bool) -> Verification:
    """In the share of ``lease``, or in its container. It is a cap meanwhile, and its story says so: alone on
    its card any other share may have all of the time.

    Raises AliquotError: LEASE_ENDED; BAD_USAGE where it is paused; LEASE_BUSY where its own programs are on
    the GPU, which would be refused memory meanwhile, without ``force``.
    """
    if lease.state is not LeaseState.HELD:
        raise AliquotError(
            Reason.LEASE_ENDED,
            f"lease {lease.id} is {lease.state.value}: there is nothing to try",
            next=[(f"aliquot verify {lease.ask}", "takes a share of the same size for it")],
        )
    if lease.paused_at is not None:
        raise AliquotError(
            Reason.BAD_USAGE,
            f"lease {lease.id} is paused: whatever is launched in it waits, so nothing can be tried",
            next=[
                (f"aliquot resume {lease.id}", "lets it go on"),
                (f"aliquot verify {lease.ask}", "tries another share of the same size"),
            ],
        )
    refuse_while_tried(paths, lease)
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
    program_arguments(lease, by_uuid(snapshot))  # refuses what has no limit before anything is changed
    with as_a_cap(paths, book, snapshot, lease) as tried:
        if isinstance(tried.holder, ContainerHolder):
            return _in_a_container(paths, tried, tried.holder, program_arguments(tried, by_uuid(snapshot)))
        return _in_a_process(paths, book, snapshot, ask=None, lease=tried, placement=PlacementPolicy.PACK)


def _in_a_process(
    paths: Paths,
    book: Book,
    snapshot: Snapshot,
    *,
    ask: Ask | None,
    lease: Lease | None,
    placement: PlacementPolicy,
) -> Verification:
    """Just as ``aliquot run`` starts a tenant's program. What its share is it is told once there is one."""
    program = ensure_copied(program_folder(), paths.libraries) / PROGRAM
    with _Pipe(theirs="listen") as told, _Pipe(theirs="tell") as report:

        def tell(given: Lease, seen: Snapshot) -> None:
            told.write("\n".join(program_arguments(given, by_uuid(seen))))

        order = Order(
            command=(str(program), f"--arguments={told.listen}", f"--report={report.tell}"),
            ask=ask,
            lease=lease,
            name=None,
            placement=placement,
            release_on_stop=False,
            inject="auto",
            user=None,
            announce=tell,
        )
        held, code = run_order(paths, book, snapshot, order, process_plan(paths, snapshot, order))
        said = report.read()
    if code not in _RAN_TO_ITS_END:
        raise _broke_off(str(ask or held.id), code, read_attempts(said, isolation=held.isolation))
    return Verification(held.id, "process", read_attempts(said, isolation=held.isolation))


def _broke_off(what: str, code: int, attempts: tuple[Attempt, ...]) -> AliquotError:
    how = f"by signal {code - 128}" if code > 128 else f"with exit code {code}"
    tried = [one for one in attempts if one.outcome not in (Outcome.KNOWN, Outcome.UNTRIED)]
    return AliquotError(
        Reason.FAILED,
        f"the program that tries the share was ended {how} after {len(tried)} ways; nothing is proved",
        facts=[f"{one.outcome.value}  {one.name}" for one in tried if one.outcome.failed],
        next=[(f"aliquot verify {what}", "tries it again")],
    )


class _Pipe:
    """One end is open in what is started as well; all that is written fits into it."""

    def __init__(self, *, theirs: str) -> None:
        self.listen, self.tell = os.pipe()
        os.set_inheritable(self.listen if theirs == "listen" else self.tell, True)
        self._open = {self.listen, self.tell}

    def write(self, text: str) -> None:
        os.write(self.tell, text.encode())
        self._close(self.tell)

    def read(self) -> str:
        self._close(self.tell)
        with os.fdopen(self.listen, "rb", closefd=False) as file:
            return file.read().decode(errors="replace")

    def _close(self, end: int) -> None:
        os.close(end)
        self._open.discard(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in tuple(self._open):
            self._close(end)


def _in_a_container(
    paths: Paths, lease: Lease, holder: ContainerHolder, arguments: tuple[str, ...]
) -> Verification:
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
    if status not in _RAN_TO_ITS_END:
        raise AliquotError(
            Reason.FAILED,
            f"{PROGRAM} does not run in container {container[:12]}: {(complaint or said).strip()[-200:]}",
            facts=["it needs a C library of glibc in the image, whose lack an engine calls `no such file`"],
            next=[(f"{holder.engine} start {container[:12]}", "where the container does not run")],
        )
    # Its isolation is a container's whatever the lease was taken as: it runs in one.
    return Verification(lease.id, container[:12], read_attempts(said, isolation=lease.isolation))

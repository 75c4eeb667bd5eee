"""Finish what is over, and what a kill left half done: the first act of every command.

There is no daemon that must live for the book to be right: whoever opens it looks. What was
looked at may change before it is acted on, so each step names the lease as it was seen, and
the book refuses where it is another by now; then the next command looks again.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aliquot import injection
from aliquot.lease import Action, Book, Due, StaleDecisionError, due
from aliquot.model import (
    AliquotError,
    ContainerHolder,
    DriverFiles,
    Gpu,
    GpuUuid,
    Lease,
    LeaseId,
    LeaseState,
    Notice,
    Severity,
)
from aliquot.node.cdi import USUAL_FOLDERS, edits_inside, remove_stale_specs, write_spec
from aliquot.node.changing import limits_differ, make_agree
from aliquot.node.libraries import prune_governors
from aliquot.node.looking import boot_id, by_uuid, look_here
from aliquot.node.paths import Paths
from aliquot.node.releasing import release_lease, stop_new_work
from aliquot.node.share_folder import (
    folders_present,
    make_share_folder,
    missing_files,
    remove_share_folder,
)
from aliquot.node.taking import driver_of
from aliquot.node.trying import give_back
from aliquot.node.using import Users, gather, users_of

Tell = Callable[[Notice], None]


@dataclass(frozen=True, slots=True)
class _Reaper:
    paths: Paths
    book: Book
    tell: Tell


def reap(paths: Paths, book: Book, *, tell: Tell, only: LeaseId | None = None) -> None:
    """Release what nobody uses, finish what was begun, remake what a reboot took.

    ``only``: that one lease, after its program's end. What cannot be known is told and kept.
    """
    reaper = _Reaper(paths, book, tell)
    # The folders before the leases: a folder is made after its lease is committed, so one that
    # is seen here and has no lease below was left behind.
    folders = folders_present(paths) if only is None else ()
    live = [lease for lease in book.leases(live=True) if only in (None, lease.id)]
    over = due(live, gather(paths, live), time.time_ns()) if live else ()
    for found in over:
        _perform(reaper, found)
    if over:
        live = [lease for lease in book.leases(live=True) if only in (None, lease.id)]
    if any(limits_differ(paths, lease) for lease in live):  # a change that was killed midway
        make_agree(paths, book, live, _gpus(paths))
    give_back(paths, book, live, lambda: look_here(paths))
    if only is None:
        _remove_orphans(reaper, folders, live)
        _remake(reaper, [lease for lease in live if lease.id not in folders or missing_files(paths, lease)])
        prune_governors(paths.libraries, paths.shares)


def _perform(reaper: _Reaper, found: Due) -> None:
    lease = found.lease
    if found.action is Action.KEEP_UNKNOWN:
        text = f"lease {lease.id} is kept, perhaps over: {found.why}"
        reaper.tell(Notice("lease-unknown", Severity.WARNING, text, "aliquot doctor"))
        return
    with contextlib.suppress(StaleDecisionError):  # then the next command looks again
        users = users_of(reaper.paths, lease) if found.why == "expired" else None
        if users:
            _expire(reaper, lease, users)
        else:
            release_lease(reaper.paths, reaper.book, lease, why=found.why, seen=lease)


def _expire(reaper: _Reaper, lease: Lease, users: Users) -> None:
    """Its time is over and its programs run on: they keep what they have and get no more.

    It ends when they do; the next command judges it again.
    """
    stop_new_work(reaper.paths, lease, _gpus(reaper.paths))
    reaper.book.advance(lease.id, LeaseState.RELEASING, at=time.time_ns(), why="expired", seen=lease)
    text = f"lease {lease.id} has expired and gives no more memory; in use by {users}"
    reaper.tell(Notice("lease-expired", Severity.WARNING, text, f"aliquot release --force {lease.id}"))


def _remove_orphans(reaper: _Reaper, folders: tuple[LeaseId, ...], live: list[Lease]) -> None:
    """Share folders and CDI specifications without a live lease."""
    kept = {lease.id for lease in live}
    for name in folders:
        if name not in kept:
            with contextlib.suppress(OSError):
                remove_share_folder(reaper.paths, name)
    remove_stale_specs(reaper.paths, kept)


def _remake(reaper: _Reaper, leases: list[Lease]) -> None:
    """The files of leases that outlived a reboot: /run is empty then, the book is not.

    Until this has run, a container of such a lease does not start: its mounts' sources are
    missing. deploy/aliquot-recover.service runs it before the engines start containers.
    """
    now = boot_id()
    for lease in leases:
        if lease.state is not LeaseState.HELD or now is None:
            continue
        # In the same boot (a cleaner of /tmp, a logout) only where nobody runs in it: who does
        # counts in the old ledger, and beside a new one the share could be exceeded.
        if lease.boot_id == now and not _is_idle(reaper.paths, lease):
            text = f"files of lease {lease.id} are gone while it is in use: it takes no new work"
            reaper.tell(Notice("share-files", Severity.ERROR, text, f"aliquot release --force {lease.id}"))
            continue
        gpus = _gpus(reaper.paths)
        try:
            driver = driver_of(reaper.paths, lease, gpus)
            make_share_folder(reaper.paths, lease, gpus=gpus, driver=driver)
            if isinstance(lease.holder, ContainerHolder):
                _remake_spec(reaper.paths, lease, gpus, driver)
            reaper.book.set_boot(lease.id, now, at=time.time_ns())
            _keep(reaper, lease)
        except AliquotError as error:
            text = f"the files of lease {lease.id} could not be made again: {error.message}"
            reaper.tell(Notice("lease-not-remade", Severity.WARNING, text, f"aliquot release {lease.id}"))


def _keep(reaper: _Reaper, lease: Lease) -> None:
    from aliquot.node.keepers import start_keeper  # nearly no command gets here

    start_keeper(reaper.paths, lease)


def _is_idle(paths: Paths, lease: Lease) -> bool:
    users = users_of(paths, lease)
    return not (users.pids or users.elsewhere)


def _remake_spec(paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu], driver: DriverFiles | None) -> None:
    """The container's CDI specification, whether or not it was started by one: it does no harm.

    An engine that does not answer, as at boot, reads the usual folders.
    """
    folders: tuple[str, ...] = USUAL_FOLDERS
    if isinstance(lease.holder, ContainerHolder):
        with contextlib.suppress(AliquotError):
            client = injection.Client.of(lease.holder.engine, lease.holder.endpoint)
            folders = injection.probe(client.command).cdi_folders
    folder = injection.writable_cdi_folder(folders)
    if folder is not None:
        write_spec(paths, lease.id, edits_inside(paths, lease, gpus, driver), folder)


def _gpus(paths: Paths) -> dict[GpuUuid, Gpu]:
    return by_uuid(look_here(paths))

"""The keeper of a living share: the rim of ``keeper_core``, with the clock, the files and the looks.

It runs in a thread of ``aliquot run`` for as long as its command does, and as ``aliquot keeper ID`` for every
other share. Killed, it harms nobody: the governors hold the last limits, every policy as a cap, until
one looks again. What one look cannot see now is left to the next.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from aliquot.enforcement import (
    Beats,
    Nonsense,
    Sitter,
    lease_number,
    live_slots,
    nonsense_of,
    process_numbers,
    read_ledger,
    read_page,
    repair,
    strangers_on,
    tell_outside,
)
from aliquot.lease import Book, open_book
from aliquot.model import AliquotError, Bytes, GpuUuid, Lease, LeaseId, Share
from aliquot.node.attesting import watch_attestation
from aliquot.node.held_files import hold, is_held
from aliquot.node.intruders import intruders_of
from aliquot.node.keeper_core import (
    TICK,
    Beat,
    Command,
    End,
    Event,
    Flag,
    LookAtLease,
    LookAtPages,
    LookAtProcesses,
    Reap,
    Repair,
    SawLease,
    SawPage,
    SawProcesses,
    Tell,
    Woke,
    begin,
    step,
)
from aliquot.node.looking import by_uuid, look_here
from aliquot.node.outer_pids import outer_pids
from aliquot.node.paths import Paths
from aliquot.node.share_folder import keeper_file, ledger_file, limits_file, page_file
from aliquot.node.using import container_ids

_CONTAINERS_EVERY = 60.0
"""Seconds."""
_MISSED = (OSError, AliquotError)
"""What a look may meet: the share is being made, changed or removed, the book is locked, the driver gone."""


class AlreadyKeptError(Exception):
    """``pid`` keeps the share; None where it has not said so yet."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"process {pid}" if pid is not None else "another process")
        self.pid = pid


def keep(paths: Paths, lease: LeaseId, *, wait: Callable[[float], bool]) -> None:
    """Keep ``lease`` until it ends, or until ``wait`` (which sleeps so many seconds) gives True.

    Raises AlreadyKeptError; OSError where the share is not there.
    """
    with contextlib.ExitStack() as stack:
        _be_the_only_one(keeper_file(paths, lease), stack)
        rim = _Rim(paths, lease, stack.enter_context(Beats(limits_file(paths, lease))))
        stack.callback(rim.close)
        try:
            rim.run(wait)
        except Exception as error:
            rim.flag("keeper-failed", f"{type(error).__name__}: {error}")
            raise


def keeper_pid(paths: Paths, lease: LeaseId) -> int | None:
    """Who keeps it now; None where nobody does."""
    try:
        descriptor = os.open(keeper_file(paths, lease), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _pid_in(descriptor) if is_held(descriptor) else None
    finally:
        os.close(descriptor)


def _be_the_only_one(path: Path, stack: contextlib.ExitStack) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    stack.callback(os.close, descriptor)
    if not hold(descriptor):
        raise AlreadyKeptError(_pid_in(descriptor))
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


class _Rim:
    def __init__(self, paths: Paths, lease: LeaseId, beats: Beats) -> None:
        self._paths, self._id, self._beats = paths, lease, beats
        self._keeper = begin(time.monotonic_ns())
        self._book: Book | None = None
        self._lease: Lease | None = None
        self._neighbours: tuple[Lease, ...] = ()
        """Live leases, ours among them, that have a share of a GPU of ours."""
        self._outer: dict[tuple[int, int], int] = {}
        self._containers: tuple[str, ...] = ()
        self._containers_due = 0.0
        self._since = time.time()
        self._ended = False

    def close(self) -> None:
        if self._book is not None:
            self._book.close()

    def run(self, wait: Callable[[float], bool]) -> None:
        while not (self._ended or self._beats.removed):
            self._handle(Woke(time.monotonic_ns()))
            if not self._ended and wait(TICK):
                return

    def flag(self, what: str, detail: str) -> None:
        """In the story of the lease, where the book takes it."""
        with contextlib.suppress(*_MISSED):
            self._open_book().flag(self._id, what, detail, at=time.time_ns())

    def _handle(self, event: Event) -> None:
        self._keeper, commands = step(self._keeper, event)
        for command in commands:
            with contextlib.suppress(*_MISSED):
                self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case Beat(at):
                self._beats.beat(at, began=self._keeper.began)
            case LookAtLease():
                self._look_at_lease()
            case LookAtPages():
                for index, share in enumerate(self._shares()):
                    self._look_at_page(index, share)
            case LookAtProcesses():
                self._look_at_processes()
            case Repair(gpu, nonsense):
                self._repair(gpu, nonsense)
            case Flag(lease, what, detail):
                self._open_book().flag(lease or self._id, what, detail, at=time.time_ns())
            case Tell(said):
                tell_outside(ledger_file(self._paths, self._id), said)
            case Reap():
                self._reap()
            case End():
                self._ended = True

    # ---- the lease ----

    def _open_book(self) -> Book:
        if self._book is None:
            self._book = open_book(self._paths.book)
        return self._book

    def _shares(self) -> tuple[Share, ...]:
        return self._lease.shares if self._lease is not None else ()

    def _look_at_lease(self) -> None:
        live = self._open_book().leases(live=True)
        self._lease = next((lease for lease in live if lease.id == self._id), None)
        ours = {share.gpu for share in self._shares()}
        self._neighbours = tuple(lease for lease in live if ours & {share.gpu for share in lease.shares})
        ends = self._lease.expires_at if self._lease is not None else None
        over = ends is not None and ends <= time.time_ns()
        self._handle(SawLease(live=self._lease is not None, over=over))

    def _reap(self) -> None:
        from aliquot.node.reaping import reap

        reap(self._paths, self._open_book(), tell=lambda notice: None, only=self._id)  # noqa: ARG005

    # ---- its pages ----

    def _look_at_page(self, index: int, share: Share) -> None:
        page = page_file(self._paths, self._id, index)
        before = {(one.at, one.what) for one in self._nonsense(page, share.gpu)}
        if before:
            self._look_at_lease()  # a lease may be newer than our last look
        again: tuple[Nonsense, ...] = ()
        if before:
            again = tuple(one for one in self._nonsense(page, share.gpu) if (one.at, one.what) in before)
        if self._ended:
            return
        on = self._on(share.gpu)
        sitting = [lease.id for lease in on if live_slots(ledger_file(self._paths, lease.id)) != 0]
        intruders = intruders_of(self._paths, on, page) if again else ()
        strangers = bool(again) and self._strangers(page, share.gpu)
        self._handle(SawPage(share.gpu, again, intruders, frozenset(sitting), strangers))

    def _nonsense(self, page: Path, gpu: GpuUuid) -> tuple[Nonsense, ...]:
        content = read_page(page)
        now = None if self._is_virtual(gpu) else time.monotonic_ns()
        if content is None:
            return ()
        return nonsense_of(content, self._sitters(gpu), now=now, newer=self._are_newer())

    def _strangers(self, page: Path, gpu: GpuUuid) -> bool:
        content = read_page(page)
        now = None if self._is_virtual(gpu) else time.monotonic_ns()
        return content is None or strangers_on(content, self._sitters(gpu), now=now)

    def _are_newer(self) -> bool:
        """Whether a governor was installed since we began: it may use what is spare on our layout."""
        folders = self._paths.libraries.glob("*/governor")
        return any(folder.stat().st_mtime > self._since for folder in folders)

    def _sitters(self, gpu: GpuUuid) -> dict[int, Sitter]:
        return {
            lease_number(lease.id): Sitter(
                lease.id,
                process_numbers(
                    ledger_file(self._paths, lease.id),
                    device=[share.gpu for share in lease.shares].index(gpu),
                ),
            )
            for lease in self._on(gpu)
        }

    def _on(self, gpu: GpuUuid) -> tuple[Lease, ...]:
        return tuple(lease for lease in self._neighbours if any(share.gpu == gpu for share in lease.shares))

    def _is_virtual(self, gpu: GpuUuid) -> bool:
        """Whether the device has a clock of its own, that is not ours."""
        try:
            lines = (self._paths.softgpu / gpu / "device").read_text().splitlines()
        except OSError:
            return False
        return "time virtual" in (line.strip() for line in lines)

    def _repair(self, gpu: GpuUuid, nonsense: Nonsense) -> None:
        for index, share in enumerate(self._shares()):
            if share.gpu == gpu:
                repair(page_file(self._paths, self._id, index), nonsense)

    # ---- its processes ----

    def _look_at_processes(self) -> None:
        lease, path = self._lease, ledger_file(self._paths, self._id)
        ledger = read_ledger(path, devices=len(self._shares())) if lease is not None else None
        if lease is None or ledger is None:
            return
        slots = tuple(slot for slot in ledger.slots if slot.alive)
        if not slots and not self._outer:
            return  # nobody is there whom a driver could list for us
        self._outer = outer_pids(slots, path, known=self._outer)
        gpus = by_uuid(look_here(self._paths))
        listed = {
            index: gpus[share.gpu].processes or ()
            for index, share in enumerate(lease.shares)
            if share.gpu in gpus
        }
        memory: dict[tuple[int, int], Bytes] = {
            (process.pid, index): process.memory
            for index, processes in listed.items()
            for process in processes
            if process.memory is not None
        }
        outer = {index: pid for (index, _), pid in self._outer.items()}
        limits = tuple(share.memory for share in lease.shares)
        self._handle(SawProcesses(slots, outer, memory, limits, exports=ledger.exports != 0))
        watch_attestation(
            self._paths,
            self._open_book(),
            lease,
            ledger,
            gpus,
            at=time.time_ns(),
            containers=self._containers_of(lease),
        )

    def _containers_of(self, lease: Lease) -> tuple[str, ...]:
        """Its engine is a program to start, and a container is not made anew every second."""
        if time.monotonic() >= self._containers_due:
            self._containers, self._containers_due = (
                container_ids(lease),
                time.monotonic() + _CONTAINERS_EVERY,
            )
        return self._containers

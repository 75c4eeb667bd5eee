"""The face of one machine: every verb of the command line is a method here."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aliquot import enforcement, injection, metering
from aliquot.enforcement import TAKEN_AHEAD, read_ledger
from aliquot.injection import process_edits
from aliquot.lease import Book, LeaseEvent, open_book, processes_carrying
from aliquot.metering import settle
from aliquot.model import (
    AliquotError,
    Ask,
    Bytes,
    Gpu,
    GpuUuid,
    Lease,
    LeaseId,
    LeaseState,
    Ledger,
    NobodyHolder,
    Notice,
    Placed,
    PlacementPolicy,
    Policy,
    Reason,
    Refused,
    Severity,
    Snapshot,
    Usage,
    Vendor,
)
from aliquot.node import changing
from aliquot.node.cdi import edits_inside
from aliquot.node.looking import by_uuid, look_here, pid_namespace, pids_inside, with_book
from aliquot.node.orders import Announce, Order
from aliquot.node.paths import Paths, paths_of
from aliquot.node.reaping import reap
from aliquot.node.running import refuse_inside_a_share, run_order
from aliquot.node.share_folder import folder_of, ledger_file
from aliquot.node.software import (
    chose_software_gpus,
    finish_software_gpus,
    remove_software_gpus,
    select_software_gpus,
)
from aliquot.node.taking import Terms, achievable, driver_of, other_books, prepare, reserve
from aliquot.node.trying import refuse_while_tried
from aliquot.placement import place

if TYPE_CHECKING:
    from aliquot.model import Verification
    from aliquot.node.attesting import Ungoverned
    from aliquot.node.checking import Check
    from aliquot.node.explaining import Explanation
    from aliquot.softgpu.busy import Busy
    from aliquot.softgpu.failing import Failure


@dataclass(frozen=True, slots=True)
class Forms:
    """How to use a lease, as text to paste."""

    environment: str
    docker: str
    podman: str
    compose: str


@dataclass(frozen=True, slots=True)
class UsageReport:
    rows: "tuple[metering.UsageRow, ...]"
    coverage: "tuple[metering.Coverage, ...]"
    since: int
    until: int


def open_machine(environ: Mapping[str, str] | None = None) -> "Machine":
    """This user's machine. Cheap: nothing is opened before it is needed."""
    return Machine(paths_of(os.environ if environ is None else environ, uid=os.geteuid()))


@dataclass(slots=True)
class Machine:
    paths: Paths
    notices: list[Notice] = field(default_factory=list)
    """What happened on the way that the user should hear of; the face shows and clears them."""
    _book: Book | None = None

    @property
    def book(self) -> Book:
        if self._book is None:
            self._book = open_book(self.paths.book)
        return self._book

    def close(self) -> None:
        if self._book is not None:
            self._book.close()
            self._book = None

    # ---- look ----

    def look(self, *, own: LeaseId | None = None) -> Snapshot:
        """GPUs with cordons and the memory of programs outside the book. Writes nothing."""
        snapshot = look_here(self.paths)
        try:
            book = self._book or open_book(self.paths.book, read_only=True)
            live, cordons = book.leases(live=True), book.cordons()
        except AliquotError as error:
            # The cards are there all the same; whoever leases opens the book and is refused.
            notice = Notice("book", Severity.ERROR, error.message, error.next[0][0] if error.next else None)
            return replace(snapshot, notices=(*snapshot.notices, notice))
        inside = pids_inside(live, processes_carrying([lease.id for lease in live]), self._slots(live))
        return with_book(
            snapshot,
            cordoned=cordons,
            inside=inside,
            over=self._over([lease for lease in live if lease.id != own]),
        )

    def leases(self, *, ended: bool = False, since: int | None = None) -> tuple[Lease, ...]:
        self.reap()
        from aliquot.node.keepers import keeper_gone

        found = self.book.leases(live=None if ended else True, since=since)
        for lease in found:
            if self.keeping(lease) is enforcement.Keeping.GONE:
                self.notices.append(keeper_gone(self.paths, lease))
        return found

    def find_lease(self, text: str) -> Lease:
        """Raises AliquotError: NOT_FOUND, AMBIGUOUS."""
        return self.book.find(text)

    def find_gpu(self, text: str) -> Gpu:
        """By index, UUID or a unique prefix of it, or PCI id. Raises NOT_FOUND, AMBIGUOUS."""
        gpus = self.look().gpus
        wanted = text.casefold()
        exact = [gpu for gpu in gpus if wanted in (str(gpu.index), gpu.uuid.casefold(), gpu.pci_id)]
        found = exact or [gpu for gpu in gpus if _begins(gpu.uuid, wanted)]
        if len(found) == 1:
            return found[0]
        raise AliquotError(
            Reason.AMBIGUOUS if found else Reason.NOT_FOUND,
            f"`{text}` is the start of several GPUs' UUIDs" if found else f"no GPU here is `{text}`",
            facts=[f"{gpu.index}  {gpu.uuid}  {gpu.name}" for gpu in found or gpus],
            next=[("aliquot gpus", "lists them")],
        )

    def ledger(self, lease: Lease) -> Ledger | None:
        return read_ledger(ledger_file(self.paths, lease.id), devices=len(lease.shares))

    def ungoverned(self, lease: Lease) -> "tuple[Ungoverned, ...] | None":
        """Processes that use the lease's GPUs without its governor, also written into its story.

        None where it cannot be known.
        """
        from aliquot.node.attesting import watch_attestation

        if not lease.state.live:
            return ()
        gpus = by_uuid(self.look())
        return watch_attestation(self.paths, self.book, lease, self.ledger(lease), gpus, at=time.time_ns())

    def keeping(self, lease: Lease) -> "enforcement.Keeping | None":
        """Whether its keeper is at work; None of a lease that has none."""
        from aliquot.node.keepers import keeping_of

        return keeping_of(self.paths, lease, now=time.monotonic_ns())

    def keeper_pid(self, lease: Lease) -> int | None:
        from aliquot.node.keeping import keeper_pid

        return keeper_pid(self.paths, lease.id)

    def keep(self, lease: Lease, *, wait: Callable[[float], bool]) -> int | None:
        """Keep ``lease`` until it ends or ``wait`` gives True: ``keeping``.

        The pid of its keeper where it has one already (0: not known).
        Raises AliquotError: LEASE_ENDED, BAD_USAGE, FILES_UNWRITABLE.
        """
        from aliquot.node.keepers import keep_by_hand

        return keep_by_hand(self.paths, lease, wait)

    def story(self, lease: Lease) -> tuple[LeaseEvent, ...]:
        return self.book.events(lease.id)

    # ---- ask ----

    def plan(self, ask: Ask, *, placement: PlacementPolicy, container: bool = False) -> Placed | Refused:
        self.reap()
        held = [share for lease in self.book.leases(live=True) for share in lease.shares]
        snapshot = self.look()
        strongest = achievable(ask, snapshot, container=container)
        return place(ask, snapshot, held, policy=placement, achievable=strongest)

    def why(self, ask: Ask) -> "Explanation":
        from aliquot.node.explaining import explain_ask

        self.reap()
        live = self.book.leases(live=True)
        # A container's isolation: `why` tells whether it fits, not how the user will start it.
        snapshot = self.look()
        return explain_ask(ask, snapshot, live, achievable=achievable(ask, snapshot, container=True))

    def checks(self) -> "tuple[Check, ...]":
        from aliquot.node.checking import check_machine

        return check_machine(self.paths, self.look())

    # ---- use ----

    def lease(
        self,
        ask: Ask,
        *,
        name: str | None,
        expires_at: int | None,
        placement: PlacementPolicy,
        command: str | None = None,
    ) -> Lease:
        """A lease that nobody holds, until released or expired. Raises AliquotError with the refusal."""
        snapshot = self._ready()
        terms = Terms(
            ask=ask,
            holder=NobodyHolder(),
            placement=placement,
            name=name,
            command=command,
            expires_at=expires_at,
            isolation_why=TAKEN_AHEAD,
        )

        def hold(lease: Lease) -> Lease:
            return self.book.advance(lease.id, LeaseState.HELD, at=time.time_ns())

        lease = reserve(self.book, snapshot, terms)
        self._warn(other_books(lease, snapshot))
        held = prepare(self.paths, self.book, lease, by_uuid(snapshot), then=hold)
        from aliquot.node.keepers import start_keeper

        start_keeper(self.paths, held)
        return held

    def forms(self, lease: Lease) -> Forms:
        gpus = by_uuid(self.look())
        driver = driver_of(self.paths, lease, gpus)
        text = injection.forms(
            lease.id,
            process=process_edits(lease, folder=folder_of(self.paths, lease.id), driver=driver),
            container=edits_inside(self.paths, lease, gpus, driver),
            cdi=False,
        )
        return Forms(environment=text.shell, docker=text.docker, podman=text.podman, compose=text.compose)

    def run(
        self,
        command: Sequence[str],
        *,
        ask: Ask | None,
        lease: Lease | None,
        name: str | None,
        placement: PlacementPolicy,
        release_on_stop: bool = False,
        inject: str = "auto",
        user: str | None = None,
        announce: Announce | None = None,
    ) -> int:
        """Run ``command`` in a share; the exit code is the command's own."""
        container = injection.container_command(command)
        if lease is not None and lease.state is not LeaseState.HELD:
            raise AliquotError(
                Reason.LEASE_ENDED,
                f"lease {lease.id} is {lease.state.value}: it takes no new work",
                next=[(f"aliquot lease --gpu {lease.ask}", "takes a new one of the same size")],
            )

        def announced(given: Lease, seen: Snapshot) -> None:
            self._warn(other_books(given, seen))
            if announce is not None:
                announce(given, seen)

        order = Order(
            command=tuple(command),
            ask=ask,
            lease=lease,
            name=name,
            placement=placement,
            release_on_stop=release_on_stop,
            inject=inject,
            user=user,
            announce=announced,
        )
        snapshot = self._ready(new=lease is None)
        if container is not None:
            from aliquot.node.container_plans import container_plan

            plan = container_plan(self.paths, snapshot, order, container, self.notices.append)
        else:
            from aliquot.node.process_plans import process_plan

            plan = process_plan(self.paths, snapshot, order)
        lease, code = run_order(self.paths, self.book, snapshot, order, plan)
        self.reap(only=lease.id)
        return code

    def release(self, lease: Lease, *, force: bool = False) -> tuple[Usage, ...]:
        """Raises AliquotError: LEASE_ENDED, LEASE_BUSY (without ``force``)."""
        self.reap()
        from aliquot.node.ending import end_by_hand

        return end_by_hand(self.paths, self.book, self.book.find(lease.id), by_uuid(self.look()), force=force)

    # ---- prove ----

    def verify(self, lease: Lease, *, force: bool = False) -> "Verification":
        """Try to break the share of ``lease``. Raises AliquotError: LEASE_ENDED, LEASE_BUSY."""
        from aliquot.node.verifying import verify_lease

        return verify_lease(self.paths, self.book, self._ready(new=False), lease, force=force)

    def verify_size(self, ask: Ask, *, placement: PlacementPolicy) -> "Verification":
        """Try to break a share of ``ask`` that is taken for it. Raises AliquotError with the refusal."""
        from aliquot.node.verifying import verify_size

        done = verify_size(self.paths, self.book, self._ready(), ask, placement)
        self.reap(only=done.lease)
        return done

    # ---- change ----

    def resize(self, lease: Lease, ask: Ask | None, policy: Policy | None) -> Lease:
        """Its size or its policy, while its programs run. Raises AliquotError with the refusal."""
        refuse_while_tried(self.paths, lease)
        return changing.resize(
            self.paths, self.book, self._ready(new=False, own=lease.id), lease, ask, policy
        )

    def pause(self, lease: Lease) -> Lease:
        refuse_while_tried(self.paths, lease)
        return changing.pause(self.paths, self.book, self._ready(new=False), lease)

    def resume(self, lease: Lease) -> Lease:
        return changing.resume(self.paths, self.book, self._ready(new=False), lease)

    def extend(self, lease: Lease, expires_at: int) -> Lease:
        self.reap()
        return self.book.set_expiry(lease.id, expires_at, at=time.time_ns())

    # ---- measure ----

    def usage_of(self, lease: Lease) -> tuple[Usage, ...]:
        if not lease.state.live:
            return self.book.usages(lease=lease.id)
        past = self.book.stretches(lease.id).get(lease.id, ())
        return settle(lease, self.ledger(lease), at=time.time_ns(), past=past)

    def usage(self, *, by: str, since: int | None, until: int | None) -> UsageReport:
        self.reap()
        self.book.note_gpus(self.look().gpus, at=time.time_ns())
        end = time.time_ns() if until is None else until
        known = self.book.known_gpus()
        begin = min((gpu.first_seen for gpu in known), default=end) if since is None else since
        leases = self.book.leases(live=None)
        pairs = [(lease, usage) for lease in leases for usage in self.usage_of(lease)]
        return UsageReport(
            rows=metering.tally(pairs, by=by, since=begin, until=end),
            coverage=metering.coverage(known, leases, since=begin, until=end, past=self.book.stretches()),
            since=begin,
            until=end,
        )

    # ---- software GPUs ----

    def softgpu_create(
        self,
        wanted: Sequence[tuple[int, str]],
        *,
        name: str | None = None,
        memory: Bytes | None = None,
        time_mode: str | None = None,
        time_slice: str | None = None,
    ) -> tuple[Gpu, ...]:
        """How many of which profile, all or none; ``name`` is that of the set."""
        from uuid import uuid4

        from aliquot.softgpu import create_set
        from aliquot.softgpu.timing import parse_timing

        made = create_set(
            self.paths.softgpu,
            wanted,
            name=name,
            memory=memory,
            at=time.time_ns(),
            entropy=lambda: uuid4().int,
            taken_pci_ids=[gpu.pci_id for gpu in self.look().gpus],
            timing=parse_timing(time_mode, time_slice),
        )
        ours = {device.uuid for device in made}
        gpus = self.look().gpus
        self.book.note_gpus(gpus, at=time.time_ns())
        return tuple(gpu for gpu in gpus if gpu.uuid in ours)

    def softgpu_list(self) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.look().gpus if gpu.vendor is Vendor.SOFTWARE)

    def softgpu_select(self, selectors: Sequence[str]) -> tuple[Gpu, ...]:
        """By the name of a set, an index, a UUID or its beginning, a PCI id, ``all``.

        Raises AliquotError: NOT_FOUND, AMBIGUOUS.
        """
        return select_software_gpus(self.look(), selectors)

    def softgpu_remove(self, selectors: Sequence[str]) -> tuple[Gpu, ...]:
        """All or none. Raises AliquotError: NOT_FOUND, AMBIGUOUS, SOFTGPU_BUSY, FILES_UNWRITABLE."""
        self.reap()
        return remove_software_gpus(self.paths, self.book, self.look(), selectors)

    def softgpu_fail(
        self, selector: str, text: str | None, *, clear: bool = False
    ) -> "tuple[Gpu, tuple[Failure, ...]]":
        """What a device is told to do wrong from now on: ``softgpu.failing``."""
        from aliquot.node.software_failures import fail_software_gpu

        (gpu,) = self._one_software_gpu(selector)
        return gpu, fail_software_gpu(self.paths, gpu.uuid, text, clear=clear)

    def softgpu_log(self, selectors: Sequence[str]) -> "tuple[tuple[Gpu, tuple[str, ...]], ...]":
        """Each device with the lines of its log: ``software_failures.software_gpu_log``."""
        from aliquot.node.software_failures import software_gpu_log

        gpus = self.softgpu_select(selectors or ["all"])
        return tuple((gpu, software_gpu_log(self.paths, gpu.uuid)) for gpu in gpus)

    def softgpu_failures(self) -> dict[GpuUuid, tuple[str, ...]]:
        """What every software GPU is told, as ``softgpu_fail`` takes it."""
        from aliquot.node.software_failures import failures_of_all

        return failures_of_all(self.paths)

    def softgpu_times(self) -> dict[GpuUuid, tuple[str | None, str | None]]:
        """``--time`` and ``--slice`` of every software GPU."""
        from aliquot.node.software_failures import times_of_all

        return times_of_all(self.paths)

    def softgpu_busy(self, selector: str) -> "tuple[Gpu, Busy]":
        from aliquot.node.software_failures import software_gpu_busy

        (gpu,) = self._one_software_gpu(selector)
        return gpu, software_gpu_busy(self.paths, gpu.uuid)

    def _one_software_gpu(self, selector: str) -> tuple[Gpu, ...]:
        found = self.softgpu_select([selector])
        if len(found) != 1:
            raise AliquotError(
                Reason.AMBIGUOUS,
                f"{selector!r} are {len(found)} software GPUs: name one",
                facts=[f"{gpu.uuid}  {gpu.name}" for gpu in found],
            )
        return found

    def softgpu_environment(self, selectors: Sequence[str] = ()) -> dict[str, str | None]:
        """Variables for a program without a lease; ``None`` is one to unset.

        selectors: devices that the program shall see, all where there are none. Raises AliquotError:
        NOT_FOUND, AMBIGUOUS, FAILED.
        """
        from aliquot.node.libraries import ensure_copied
        from aliquot.softgpu import environment, library_folder

        inherited = os.environ.get("LD_LIBRARY_PATH", "")
        folder = ensure_copied(library_folder(), self.paths.libraries)
        variables: dict[str, str | None] = {**environment(folder, inherited=inherited)}
        if selectors:
            chosen = self.softgpu_select(selectors)
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpu.uuid for gpu in chosen)
        elif chose_software_gpus(os.environ.get("CUDA_VISIBLE_DEVICES", ""), self.look()):
            variables["CUDA_VISIBLE_DEVICES"] = None
        return variables

    # ---- keeping the book true ----

    def reap(self, only: LeaseId | None = None) -> None:
        """Finish what is over or was killed: every command that reads the book does this first."""
        reap(self.paths, self.book, only=only, tell=self.notices.append)
        finish_software_gpus(self.paths)

    def _warn(self, notice: Notice | None) -> None:
        if notice is not None:
            self.notices.append(notice)

    def _ready(self, *, new: bool = True, own: LeaseId | None = None) -> Snapshot:
        """``own``: a lease to which what it uses beyond its share is not lost."""
        self.reap()
        if new:
            refuse_inside_a_share(os.environ, [lease.id for lease in self.book.leases(live=True)])
        snapshot = self.look(own=own)
        self.book.note_gpus(snapshot.gpus, at=time.time_ns())
        return snapshot

    def _over(self, leases: Sequence[Lease]) -> dict[GpuUuid, int]:
        """By GPU, what leases use beyond what they have: shrunk below its use, a lease keeps the
        bytes until its programs free them, and until then nobody else can have them."""
        over: dict[GpuUuid, int] = {}
        for lease in leases:
            ledger = self.ledger(lease) if lease.governed else None
            for share, device in zip(lease.shares, ledger.devices if ledger else (), strict=False):
                if device.used is not None and share.memory is not None:
                    over[share.gpu] = over.get(share.gpu, 0) + max(0, device.used - share.memory)
        return over

    def _slots(self, leases: Sequence[Lease]) -> dict[LeaseId, tuple[int, ...]]:
        """Pids in the ledgers of ``leases`` that mean something in our pid namespace."""
        here = pid_namespace()
        found: dict[LeaseId, tuple[int, ...]] = {}
        for lease in leases:
            ledger = self.ledger(lease)
            if ledger is not None:
                found[lease.id] = tuple(
                    slot.pid for slot in ledger.slots if slot.alive and slot.pid_namespace == here
                )
        return found


def _begins(uuid: GpuUuid, text: str) -> bool:
    bare = uuid.casefold()
    return len(text) >= 2 and (bare.startswith(text) or bare.partition("-")[2].startswith(text))

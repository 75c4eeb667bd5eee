"""Random histories of a book against a plain model of it."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from aliquot.lease import LeaseDraft, describe, open_book
from aliquot.model import (
    AliquotError,
    Bytes,
    Gpu,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Placed,
    Policy,
    Reason,
    Refused,
    Share,
    Thousandths,
    Usage,
    Vendor,
)

CAPACITY = 1_000
GPUS = [GpuUuid(f"GPU-{letter}") for letter in "abc"]
CARDS = [
    Gpu(uuid, index, Vendor.SOFTWARE, "card", f"0000:0{index}:00.0", memory=Bytes(CAPACITY))
    for index, uuid in enumerate(GPUS)
]
SHARES = st.lists(
    st.builds(
        Share,
        gpu=st.sampled_from(GPUS),
        memory=st.integers(1, CAPACITY).map(Bytes),
        compute=st.integers(1, 1000).map(Thousandths),
        whole=st.booleans(),
    ).map(
        lambda share: (
            replace(share, memory=Bytes(CAPACITY), compute=Thousandths(1000)) if share.whole else share
        )
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda share: share.gpu,
)
NAMES = st.none() | st.sampled_from(["train", "serve", "a", "b"])


def fits(live: tuple[Lease, ...], wanted: list[Share]) -> bool:
    """Brute force, apart from the book's own check and from placement's."""
    for card in GPUS:
        held = [share for lease in live for share in lease.shares if share.gpu == card]
        held += [share for share in wanted if share.gpu == card]
        if sum(share.memory or 0 for share in held) > CAPACITY or sum(share.compute for share in held) > 1000:
            return False
        if len(held) > 1 and any(share.whole for share in held):
            return False
    return True


ILLEGAL = (Reason.FAILED, Reason.LEASE_ENDED)


def attempt(what: Callable[[], Lease | Refused]) -> Lease | Refused | Reason:
    try:
        return what()
    except AliquotError as error:
        return error.reason


class Histories(RuleBasedStateMachine):
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="aliquot-histories-"))
        self.path = self.folder / "book.sqlite"
        self.book = open_book(self.path)
        self.book.note_gpus(CARDS, at=0)
        self.model: dict[LeaseId, Lease] = {}
        self.usages: list[Usage] = []
        self.clock = 0

    def teardown(self) -> None:
        self.book.close()
        shutil.rmtree(self.folder)

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def draft(self, name: str | None) -> LeaseDraft:
        return LeaseDraft(
            ask="1/4",
            policy=Policy.FAIR,
            isolation=Isolation.SOFT,
            holder=NobodyHolder(),
            user="ann",
            command=None,
            created_at=self.now(),
            name=name,
        )

    @rule(target=leases, shares=SHARES, name=NAMES, draws=st.lists(st.integers(0, 6), min_size=3, max_size=3))
    def reserve(self, shares: list[Share], name: str | None, draws: list[int]) -> object:
        """Ids are drawn from seven only, so that they collide with live and with ended ones."""
        live = tuple(lease for lease in self.model.values() if lease.state.live)
        entropy = iter([*draws, *range(1000, 2000)])

        def decide(seen: tuple[Lease, ...]) -> Placed | Refused:
            assert seen == live
            return Placed(tuple(shares), 0, ()) if fits(seen, shares) else Refused(Reason.NO_ROOM, (), True)

        taken = name is not None and name in {*(lease.name for lease in live), *self.model}
        found = attempt(lambda: self.book.reserve(self.draft(name), decide, entropy=lambda: next(entropy)))
        assert (found is Reason.NAME_TAKEN) == taken
        if taken:
            return multiple()
        if isinstance(found, Refused):
            assert not fits(live, shares)
            return multiple()
        assert isinstance(found, Lease)
        assert fits(live, shares)
        assert found.id not in self.model, "an id was given out twice"
        assert found.shares == tuple(shares)
        self.model[found.id] = found
        return found.id

    @rule(shares=SHARES)
    def reserve_without_looking(self, shares: list[Share]) -> None:
        """A policy that hands out whatever is asked: the book itself must refuse what does not fit."""
        live = tuple(lease for lease in self.model.values() if lease.state.live)
        if fits(live, shares):
            return
        blind = Placed(tuple(shares), 0, ())
        assert attempt(lambda: self.book.reserve(self.draft(None), lambda _: blind)) is Reason.FAILED

    @rule()
    def be_killed_while_deciding(self) -> None:
        """A process that dies inside the transaction leaves no trace and no lock."""

        def decide(_: tuple[Lease, ...]) -> Placed:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        child = os.fork()
        if child == 0:
            try:
                open_book(self.path).reserve(self.draft(None), decide)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    @rule(lease=leases)
    def hold(self, lease: LeaseId) -> None:
        before, at = self.model[lease], self.now()
        if before.state is LeaseState.PREPARING:
            after = self.book.advance(lease, LeaseState.HELD, at=at)
            self.model[lease] = replace(before, state=LeaseState.HELD, held_at=at, worker=None)
            assert after == self.model[lease]
        else:
            assert attempt(lambda: self.book.advance(lease, LeaseState.HELD, at=at)) in ILLEGAL

    @rule(lease=leases)
    def begin_release(self, lease: LeaseId) -> None:
        before, at = self.model[lease], self.now()
        if before.state.live:
            self.book.advance(lease, LeaseState.RELEASING, at=at, why="expired")
            me = describe(os.getpid())
            self.model[lease] = replace(before, state=LeaseState.RELEASING, worker=me, end_why="expired")
        else:
            assert attempt(lambda: self.book.advance(lease, LeaseState.RELEASING, at=at)) in ILLEGAL

    @rule(lease=leases)
    def end(self, lease: LeaseId) -> None:
        before, at = self.model[lease], self.now()
        usages = [Usage(lease, share.gpu, at, share.memory, share.compute) for share in before.shares]
        if before.state.live:  # also at once from PREPARING and HELD
            self.book.end(lease, at=at, why="released", usages=usages)
            ended = replace(before, state=LeaseState.ENDED, ended_at=at, end_why="released", worker=None)
            self.model[lease] = ended
            self.usages += usages
        else:
            assert attempt(lambda: self.book.end(lease, at=at, why="released", usages=usages)) in ILLEGAL

    @rule(lease=leases)
    def release_at_once(self, lease: LeaseId) -> None:
        if self.model[lease].state.live:
            self.begin_release(lease)
            self.end(lease)

    @rule(lease=consumes(leases))
    def forget_in_this_test(self, lease: LeaseId) -> None:
        """Leaves the lease as it is, so that later rules work on others."""
        assert self.book.find(lease) == self.model[lease]

    @rule()
    def reopen(self) -> None:
        self.book.close()
        self.book = open_book(self.path)

    @invariant()
    def the_book_is_the_model(self) -> None:
        everything = tuple(self.model.values())
        with open_book(self.path, read_only=True) as other:
            assert other.leases(live=None) == everything
            assert other.leases(live=True) == tuple(lease for lease in everything if lease.state.live)
            by_lease = {lease.id: other.usages(lease=lease.id) for lease in everything}
        assert sorted(map(repr, self.usages)) == sorted(repr(u) for found in by_lease.values() for u in found)

    @invariant()
    def no_card_is_handed_out_twice(self) -> None:
        assert fits(self.book.leases(), [])

    @invariant()
    def each_story_ends_in_the_state(self) -> None:
        for lease in self.model.values():
            assert self.book.events(lease.id)[-1].what == lease.state.value


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

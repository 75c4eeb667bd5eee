"""Which leases are over: decided from evidence alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.lease import Action, ContainerState, Due, Evidence, due, judge
from aliquot.model import (
    Bytes,
    ContainerHolder,
    GpuUuid,
    Holder,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Policy,
    ProcessHolder,
    Share,
    Thousandths,
)

CHILD = ProcessHolder(pid=8, start_time=80, pid_namespace=1)
WORKER = ProcessHolder(pid=7, start_time=70, pid_namespace=1)
ID = LeaseId("kx7f2")

HELD = Lease(
    id=ID,
    state=LeaseState.HELD,
    ask="1/4",
    shares=(Share(GpuUuid("GPU-a"), Bytes(10), Thousandths(250)),),
    policy=Policy.FAIR,
    isolation=Isolation.SOFT,
    holder=CHILD,
    user="ann",
    command=None,
    created_at=1,
    held_at=2,
    boot_id="this",
)
QUIET = Evidence(
    boot_id="this", alive={CHILD: False, WORKER: False}, carrying={}, slots={ID: 0}, containers={}
)
BUSY = replace(QUIET, alive={CHILD: True, WORKER: True})


def decision(lease: Lease, evidence: Evidence, now: int = 5) -> tuple[Action, str] | None:
    found = judge(lease, evidence, now)
    return None if found is None else (found.action, found.why)


def container(*, client: ProcessHolder | None = None, release_on_stop: bool = False) -> Lease:
    return replace(HELD, holder=ContainerHolder("podman", client, release_on_stop))


def with_container(state: ContainerState | None) -> Evidence:
    return replace(QUIET, containers={ID: state})


def test_a_lease_whose_holder_is_gone_and_whom_nobody_uses_is_released() -> None:
    assert decision(HELD, QUIET) == (Action.RELEASE, "holder gone")


@pytest.mark.parametrize(
    "evidence",
    [
        BUSY,
        replace(QUIET, alive={}),
        replace(QUIET, carrying={ID: (9,)}),
        replace(QUIET, slots={ID: 1}),
    ],
    ids=["holder lives", "holder not looked for", "a child runs", "a slot is locked"],
)
def test_a_lease_that_somebody_uses_is_kept(evidence: Evidence) -> None:
    assert decision(HELD, evidence) is None


@pytest.mark.parametrize("slots", [{}, {ID: None}])
def test_an_unreadable_ledger_keeps_the_lease_and_says_so(slots: dict[LeaseId, int | None]) -> None:
    evidence = replace(QUIET, slots=slots)
    assert decision(HELD, evidence) == (Action.KEEP_UNKNOWN, "its ledger cannot be read")


def test_a_whole_card_has_no_ledger_to_wait_for() -> None:
    whole = replace(HELD, shares=(Share(GpuUuid("GPU-a"), None, Thousandths(1000), whole=True),))
    assert decision(whole, replace(QUIET, slots={})) == (Action.RELEASE, "holder gone")


def test_a_lease_without_holder_lasts_until_its_time_and_over_a_reboot() -> None:
    lease = replace(HELD, holder=NobodyHolder(), expires_at=100)
    assert decision(lease, QUIET, now=99) is None
    assert decision(lease, replace(QUIET, boot_id="next"), now=99) is None
    assert decision(lease, QUIET, now=100) == (Action.RELEASE, "expired")


def test_an_expired_lease_stops_at_once_but_ends_only_when_its_programs_have() -> None:
    expired = replace(HELD, expires_at=3)
    assert decision(expired, BUSY) == (Action.RELEASE, "expired")
    releasing = replace(expired, state=LeaseState.RELEASING, worker=WORKER, end_why="expired")
    evidence = replace(BUSY, alive={CHILD: True, WORKER: False})
    assert decision(releasing, evidence) is None
    assert decision(releasing, replace(QUIET, carrying={ID: (9,)})) is None
    assert decision(releasing, QUIET) == (Action.FINISH, "expired")


def test_after_a_reboot_a_process_is_gone_even_if_another_has_its_pid_and_start_time() -> None:
    evidence = replace(BUSY, boot_id="next", slots={})
    assert decision(HELD, evidence) == (Action.RELEASE, "machine restarted")


def test_a_boot_that_is_not_known_proves_nothing() -> None:
    for boot in ("this", None):
        assert decision(replace(HELD, boot_id=boot), replace(BUSY, boot_id=None)) is None


def test_a_lease_in_preparation_belongs_to_who_prepares_it() -> None:
    preparing = replace(HELD, state=LeaseState.PREPARING, held_at=None, worker=WORKER)
    assert decision(preparing, BUSY) is None
    assert decision(preparing, QUIET) == (Action.RELEASE, "killed while preparing")
    nobody = replace(preparing, holder=NobodyHolder(), expires_at=3)
    assert decision(nobody, BUSY) is None, "still being made, though already expired"
    assert decision(nobody, QUIET) == (Action.RELEASE, "killed while preparing")


def test_a_release_whose_releaser_died_is_finished_and_one_that_goes_on_is_left() -> None:
    releasing = replace(HELD, state=LeaseState.RELEASING, worker=WORKER, end_why="holder gone")
    assert decision(releasing, replace(QUIET, alive={CHILD: False, WORKER: True})) is None
    assert decision(releasing, QUIET) == (Action.FINISH, "holder gone")
    nobody = replace(releasing, holder=NobodyHolder(), end_why=None)
    assert decision(nobody, QUIET) == (Action.FINISH, "released")


@pytest.mark.parametrize(
    ("state", "release_on_stop", "expected"),
    [
        (ContainerState.RUNNING, True, None),
        (ContainerState.STOPPED, False, None),
        (ContainerState.STOPPED, True, (Action.RELEASE, "container stopped")),
        (ContainerState.ABSENT, False, (Action.RELEASE, "container removed")),
        (None, True, (Action.KEEP_UNKNOWN, "podman does not answer")),
    ],
)
def test_a_container_keeps_its_lease_until_it_is_removed(
    state: ContainerState | None, release_on_stop: bool, expected: tuple[Action, str] | None
) -> None:
    lease = container(release_on_stop=release_on_stop)
    assert decision(lease, with_container(state)) == expected
    assert decision(lease, replace(with_container(state), boot_id="next")) == expected


def test_a_client_that_may_still_create_the_container_keeps_the_lease() -> None:
    absent = with_container(ContainerState.ABSENT)
    assert decision(container(client=CHILD), replace(absent, alive={CHILD: True})) is None
    assert decision(container(client=CHILD), absent) == (Action.RELEASE, "container removed")
    assert decision(container(client=CHILD), replace(absent, alive={CHILD: True}, boot_id="next")) == (
        Action.RELEASE,
        "container removed",
    ), "no client outlives a boot"


def test_a_release_waits_for_a_running_container_only() -> None:
    releasing = replace(container(), state=LeaseState.RELEASING, worker=WORKER, end_why="expired")
    assert decision(releasing, with_container(ContainerState.RUNNING)) is None
    assert decision(releasing, with_container(ContainerState.STOPPED)) == (Action.FINISH, "expired")
    assert decision(releasing, with_container(None)) == (Action.KEEP_UNKNOWN, "podman does not answer")


PROCESSES = st.sampled_from([CHILD, WORKER])
HOLDERS: st.SearchStrategy[Holder] = (
    PROCESSES
    | st.just(NobodyHolder())
    | st.builds(
        ContainerHolder,
        engine=st.sampled_from(["podman", "docker"]),
        client=st.none() | PROCESSES,
        release_on_stop=st.booleans(),
    )
)
LEASES = st.builds(
    lambda state, holder, worker, boot, expires, whole: replace(
        HELD,
        state=state,
        holder=holder,
        worker=worker,
        boot_id=boot,
        expires_at=expires,
        shares=(Share(GpuUuid("GPU-a"), Bytes(1), Thousandths(1), whole),),
    ),
    state=st.sampled_from(LeaseState),
    holder=HOLDERS,
    worker=st.none() | PROCESSES,
    boot=st.sampled_from([None, "this", "before"]),
    expires=st.none() | st.integers(0, 10),
    whole=st.booleans(),
)
EVIDENCE = st.builds(
    Evidence,
    boot_id=st.sampled_from([None, "this"]),
    alive=st.dictionaries(PROCESSES, st.booleans()),
    carrying=st.dictionaries(st.just(ID), st.just((9,))),
    slots=st.dictionaries(st.just(ID), st.none() | st.integers(0, 2)),
    containers=st.dictionaries(st.just(ID), st.none() | st.sampled_from(ContainerState)),
)


@given(LEASES, EVIDENCE, st.integers(0, 10))
def test_a_share_is_never_given_back_while_a_process_of_it_is_seen(
    lease: Lease, evidence: Evidence, now: int
) -> None:
    found = judge(lease, evidence, now)
    if found is None or found.action is Action.KEEP_UNKNOWN or found.why == "expired":
        return
    assert not evidence.carrying.get(ID)
    rebooted = lease.boot_id == "before" and evidence.boot_id == "this"
    if lease.governed and not rebooted:
        assert evidence.slots[ID] == 0
    if isinstance(lease.holder, ProcessHolder) and lease.state is not LeaseState.PREPARING and not rebooted:
        assert evidence.alive[lease.holder] is False
    if isinstance(lease.holder, ContainerHolder) and lease.state is not LeaseState.PREPARING:
        assert evidence.containers[ID] in (ContainerState.ABSENT, ContainerState.STOPPED)


@given(LEASES, EVIDENCE, st.integers(0, 10))
def test_an_expired_lease_is_finished_only_when_nobody_uses_it(
    lease: Lease, evidence: Evidence, now: int
) -> None:
    found = judge(lease, evidence, now)
    if found is not None and found.action is Action.FINISH:
        assert lease.state is LeaseState.RELEASING
        assert not evidence.carrying.get(ID)


@given(LEASES, EVIDENCE, st.integers(0, 10))
def test_learning_that_something_lives_never_releases_more(
    lease: Lease, evidence: Evidence, now: int
) -> None:
    livelier = replace(evidence, alive={CHILD: True, WORKER: True}, carrying={ID: (9,)})
    found, later = judge(lease, evidence, now), judge(lease, livelier, now)
    if later is not None and later.action in (Action.RELEASE, Action.FINISH):
        assert later.why == "expired"
        assert found is not None


@given(st.lists(LEASES, max_size=4), EVIDENCE, st.integers(0, 10))
def test_due_judges_each_lease_by_itself_and_in_order(
    leases: list[Lease], evidence: Evidence, now: int
) -> None:
    one_by_one = [judge(lease, evidence, now) for lease in leases]
    assert due(leases, evidence, now) == tuple(found for found in one_by_one if found is not None)
    assert all(isinstance(found, Due) for found in due(leases, evidence, now))
    assert not [found for found in due(leases, evidence, now) if not found.lease.state.live]

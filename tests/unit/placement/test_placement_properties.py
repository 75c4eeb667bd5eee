"""Placement against brute force, and over random histories of leasing and releasing."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from aliquot.ask import parse
from aliquot.model import (
    Alternative,
    Amount,
    Ask,
    Bytes,
    Fraction,
    Gpu,
    GpuUuid,
    Health,
    HealthState,
    Isolation,
    Mig,
    Node,
    Placed,
    PlacementPolicy,
    Reason,
    Refused,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)
from aliquot.placement import nearest, place, refit

# Small numbers, so that shares meet the edges of cards: a card has 1 to 24 "bytes".
CONTEXT = 2
MODELS = {"Alpha": Vendor.NVIDIA, "Beta": Vendor.NVIDIA, "Gamma": Vendor.SOFTWARE, "Delta": Vendor.AMD}


@st.composite
def gpus(draw: st.DrawFn, index: int) -> Gpu:
    name = draw(st.sampled_from(sorted(MODELS)))
    outside = draw(st.sampled_from([0, 0, 0, 1, 5]))
    return Gpu(
        uuid=GpuUuid(f"GPU-{index}"),
        index=index,
        vendor=MODELS[name],
        name=name,
        pci_id=f"0000:{index:02x}:00.0",
        memory=Bytes(draw(st.integers(1, 24))),
        memory_used=Bytes(outside),
        outside_memory=draw(st.sampled_from([Bytes(outside), Bytes(outside), None])),
        context_bytes=Bytes(CONTEXT),
        mig=draw(st.sampled_from([None, Mig.DISABLED, Mig.DISABLED, Mig.ENABLED])),
        health=Health(draw(st.sampled_from([HealthState.HEALTHY, HealthState.HEALTHY, *HealthState]))),
        cordoned=draw(st.sampled_from([False, False, False, True])),
    )


snapshots = st.integers(0, 4).flatmap(
    lambda number: st.tuples(*(gpus(index) for index in range(number))).map(
        lambda made: Snapshot(Node("a"), made)
    )
)
parts = st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 3), (1, 8), (1, 10), (1, 1000)]).map(
    lambda pair: Fraction(*pair)
)
amounts = st.one_of(
    st.builds(Amount, bytes=st.integers(1, 26).map(Bytes), compute=st.none() | parts),
    st.builds(Amount, part=parts, compute=st.none() | parts),
)
alternatives = st.builds(
    Alternative,
    amounts,
    st.integers(1, 5),
    st.none() | st.sampled_from(["alpha", "Beta", "Gamma", "Delta", "Omega"]),
)
asks = st.builds(Ask, st.lists(alternatives, min_size=1, max_size=3).map(tuple))
policies = st.sampled_from(PlacementPolicy)
coins: st.SearchStrategy[bool] = st.booleans()


@st.composite
def histories(draw: st.DrawFn, snapshot: Snapshot) -> list[Share]:
    """Live shares as placing and releasing leave them, and one of a card that is gone."""
    leases: list[tuple[Share, ...]] = []
    for ask in draw(st.lists(asks, max_size=6)):
        result = place(ask, snapshot, [share for lease in leases for share in lease])
        if isinstance(result, Placed):
            leases.append(result.shares)
        if draw(coins) and leases:
            leases.pop(draw(st.integers(0, len(leases) - 1)))
    gone = [Share(GpuUuid("GPU-gone"), Bytes(9), Thousandths(900))] if draw(coins) else []
    return [share for lease in leases for share in lease] + gone


machines = snapshots.flatmap(lambda snapshot: st.tuples(st.just(snapshot), histories(snapshot)))


# The oracle: the rules once more, GPU by GPU and set by set, with nothing shared with the code under test.


def satisfies(gpu: Gpu, alternative: Alternative, held: list[Share]) -> bool:
    on_it = [share for share in held if share.gpu == gpu.uuid]
    outside = gpu.memory_used if gpu.outside_memory is None else gpu.outside_memory
    assert gpu.memory is not None
    assert outside is not None
    amount = alternative.amount
    open_ = (
        not gpu.cordoned and gpu.health.state.value in ("healthy", "unknown") and gpu.mig is not Mig.ENABLED
    )
    if not open_ or not kind_is_right(gpu, alternative) or any(share.whole for share in on_it):
        return False
    if amount.whole:
        return not on_it and (outside < CONTEXT or gpu.vendor is Vendor.AMD)
    if amount.bytes is not None:
        memory = int(amount.bytes)
        compute = memory * 1000 // gpu.memory
    else:
        assert amount.part is not None
        memory = gpu.memory * amount.part.numerator // amount.part.denominator
        compute = 1000 * amount.part.numerator // amount.part.denominator
    if amount.compute is not None:
        compute = 1000 * amount.compute.numerator // amount.compute.denominator
    return (
        memory >= CONTEXT
        and memory + outside + sum(share.memory or 0 for share in on_it) <= gpu.memory
        and max(1, compute) + sum(share.compute for share in on_it) <= 1000
    )


def kind_is_right(gpu: Gpu, alternative: Alternative) -> bool:
    if alternative.model is not None and alternative.model.lower() != gpu.name.lower():
        return False
    return gpu.vendor is not Vendor.AMD or (alternative.model is not None and alternative.amount.whole)


def ways(alternative: Alternative, snapshot: Snapshot, held: list[Share]) -> Iterator[tuple[Gpu, ...]]:
    for chosen in combinations(snapshot.gpus, alternative.count):
        if len({gpu.vendor for gpu in chosen}) == 1 and all(
            satisfies(gpu, alternative, held) for gpu in chosen
        ):
            yield chosen


def first_that_fits(ask: Ask, snapshot: Snapshot, held: list[Share]) -> int | None:
    for position, alternative in enumerate(ask.alternatives):
        if next(ways(alternative, snapshot, held), None) is not None:
            return position
    return None


def mended(snapshot: Snapshot) -> Snapshot:
    """The same machine, empty, healthy and open."""
    return replace(
        snapshot,
        gpus=tuple(
            replace(
                gpu,
                memory_used=Bytes(0),
                outside_memory=Bytes(0),
                cordoned=False,
                mig=None,
                health=Health(HealthState.HEALTHY),
            )
            for gpu in snapshot.gpus
        ),
    )


@given(machines, asks, policies)
def test_an_ask_is_placed_where_brute_force_finds_a_way_and_refused_where_not(
    machine: tuple[Snapshot, list[Share]], ask: Ask, policy: PlacementPolicy
) -> None:
    snapshot, held = machine
    result = place(ask, snapshot, held, policy=policy)
    expected = first_that_fits(ask, snapshot, held)
    if expected is None:
        assert isinstance(result, Refused)
        return
    assert isinstance(result, Placed)
    assert result.alternative == expected
    taken = tuple(gpu for gpu in snapshot.gpus if gpu.uuid in {share.gpu for share in result.shares})
    assert taken in list(ways(ask.alternatives[expected], snapshot, held))
    assert [share.gpu for share in result.shares] == [gpu.uuid for gpu in taken]


@given(machines, asks)
def test_a_refusal_knows_exactly_whether_it_could_ever_fit(
    machine: tuple[Snapshot, list[Share]], ask: Ask
) -> None:
    snapshot, held = machine
    result = place(ask, snapshot, held)
    if isinstance(result, Refused):
        assert result.could_ever_fit is (first_that_fits(ask, mended(snapshot), []) is not None)
        if result.reason is Reason.NO_ROOM:
            assert result.could_ever_fit


@given(machines, asks)
def test_no_room_is_said_exactly_where_leases_and_programs_that_end_would_make_room(
    machine: tuple[Snapshot, list[Share]], ask: Ask
) -> None:
    snapshot, held = machine
    emptied = replace(
        snapshot,
        gpus=tuple(replace(gpu, memory_used=Bytes(0), outside_memory=Bytes(0)) for gpu in snapshot.gpus),
    )
    result = place(ask, snapshot, held)
    if isinstance(result, Refused):
        later = first_that_fits(ask, emptied, []) is not None
        assert (result.reason is Reason.NO_ROOM) == later
        assert (result.reason.exit_code == 4) == later


@given(machines, asks)
def test_every_gpu_is_considered_by_every_alternative_of_a_refusal(
    machine: tuple[Snapshot, list[Share]], ask: Ask
) -> None:
    snapshot, held = machine
    result = place(ask, snapshot, held)
    if isinstance(result, Refused):
        seen = [(one.alternative, one.index) for one in result.considered]
        assert seen == [(a, gpu.index) for a in range(len(ask.alternatives)) for gpu in snapshot.gpus]
    for one in result.considered:
        assert one.free_memory is None or one.free_memory >= 0
        assert one.free_compute is None or 0 <= one.free_compute <= 1000
        if one.wanted and one.wanted.memory is not None and one.free_memory is not None:
            assert one.short_memory == max(0, one.wanted.memory - one.free_memory)


@given(snapshots, st.data())
def test_no_history_of_leasing_and_releasing_goes_over_a_card(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    leases: list[tuple[Share, ...]] = []
    for ask, policy in data.draw(st.lists(st.tuples(asks, policies), max_size=12)):
        held = [share for lease in leases for share in lease]
        result = place(ask, snapshot, held, policy=policy)
        if isinstance(result, Placed):
            assert len({share.gpu for share in result.shares}) == len(result.shares)
            leases.append(result.shares)
        if data.draw(coins) and leases:
            leases.pop(data.draw(st.integers(0, len(leases) - 1)))
        never_over(snapshot, [share for lease in leases for share in lease])


def never_over(snapshot: Snapshot, held: list[Share]) -> None:
    for gpu in snapshot.gpus:
        on_it = [share for share in held if share.gpu == gpu.uuid]
        whole = [share for share in on_it if share.whole]
        assert not whole or len(on_it) == 1
        outside = 0 if whole else (gpu.memory_used or 0)
        assert gpu.memory is not None
        assert not on_it or sum(share.memory or 0 for share in on_it) + outside <= gpu.memory
        assert sum(share.compute for share in on_it) <= 1000
        assert all(share.compute >= 1 for share in on_it)


@given(machines, asks, policies, st.randoms(use_true_random=False))
def test_the_answer_depends_on_what_is_held_and_not_on_its_order(
    machine: tuple[Snapshot, list[Share]], ask: Ask, policy: PlacementPolicy, random: Random
) -> None:
    snapshot, held = machine
    shuffled = list(held)
    random.shuffle(shuffled)
    backwards = replace(snapshot, gpus=snapshot.gpus[::-1])
    assert place(ask, snapshot, held, policy=policy) == place(ask, backwards, shuffled, policy=policy)


@given(machines, asks, st.data())
def test_releasing_never_turns_a_placement_into_a_refusal(
    machine: tuple[Snapshot, list[Share]], ask: Ask, data: st.DataObject
) -> None:
    snapshot, held = machine
    if isinstance(place(ask, snapshot, held), Placed):
        fewer = [share for share in held if data.draw(coins)]
        assert isinstance(place(ask, snapshot, fewer), Placed)


@given(machines, alternatives, st.integers(CONTEXT, 26), st.integers(0, 24))
def test_what_is_smaller_fits_wherever_what_is_larger_does(
    machine: tuple[Snapshot, list[Share]], alternative: Alternative, size: int, more: int
) -> None:
    snapshot, held = machine
    larger = replace(alternative, amount=Amount(bytes=Bytes(size + more)))
    if isinstance(place(Ask((larger,)), snapshot, held), Placed):
        smaller = replace(larger, amount=Amount(bytes=Bytes(size)), count=max(1, larger.count - 1))
        assert isinstance(place(Ask((smaller,)), snapshot, held), Placed)


@given(machines, alternatives, st.integers(1, 3))
def test_a_lease_is_refitted_exactly_where_each_of_its_gpus_has_room_beside_the_others(
    machine: tuple[Snapshot, list[Share]], alternative: Alternative, size: int
) -> None:
    snapshot, held = machine
    by_uuid = {gpu.uuid: gpu for gpu in snapshot.gpus}
    ours: dict[GpuUuid, Share] = {}
    for share in held:
        if len(ours) < size and share.gpu in by_uuid and not share.whole:
            ours.setdefault(share.gpu, share)
    have = list(ours.values())
    if not have or alternative.amount.whole:
        return
    others = list(held)
    for share in have:
        others.remove(share)
    wanted = replace(alternative, count=len(have))
    result = refit(Ask((wanted,)), have, snapshot, others, achievable=Isolation.ADVISORY)
    fits = all(satisfies(by_uuid[share.gpu], wanted, others) for share in have)
    assert isinstance(result, Placed) is fits
    if isinstance(result, Placed):
        assert [share.gpu for share in result.shares] == [share.gpu for share in have]
        never_over(
            replace(snapshot, gpus=tuple(by_uuid[share.gpu] for share in have)),
            [*others, *result.shares],
        )


@given(st.integers(1, 8), st.sampled_from(["50%", "1/3", "12.5%", "60%"]), policies)
def test_many_asks_at_once_fill_every_card_alike_whatever_comes_first(
    cards: int, spec: str, policy: PlacementPolicy
) -> None:
    """One by one, each beside those before it: the book does the same for asks that arrive at once."""
    made = tuple(
        Gpu(
            GpuUuid(f"G{i}"),
            i,
            Vendor.NVIDIA,
            "Alpha",
            f"0000:{i:02x}:00.0",
            Bytes(1000),
            memory_used=Bytes(0),
        )
        for i in range(cards)
    )
    snapshot, held = Snapshot(Node("a"), made), list[Share]()
    each = {"50%": 2, "1/3": 3, "12.5%": 8, "60%": 1}[spec]
    for _ in range(cards * each):
        result = place(parse(spec), snapshot, held, policy=policy)
        assert isinstance(result, Placed)
        held += result.shares
    assert isinstance(place(parse(spec), snapshot, held, policy=policy), Refused)
    assert {sum(share.gpu == gpu.uuid for share in held) for gpu in made} == {each}


@given(machines, asks)
def test_the_nearest_spec_fits_now(machine: tuple[Snapshot, list[Share]], ask: Ask) -> None:
    snapshot, held = machine
    near = nearest(ask, snapshot, held)
    if near is not None:
        assert isinstance(place(parse(near), snapshot, held), Placed)


@given(machines, st.integers(CONTEXT, 26))
def test_the_nearest_size_is_the_largest_that_fits(machine: tuple[Snapshot, list[Share]], size: int) -> None:
    """For one GPU and compute that is never short: brute force over every size below."""
    snapshot, held = machine
    compute = Fraction(1, 1000)

    def ask_for(count: int) -> Ask:
        return Ask((Alternative(Amount(bytes=Bytes(count), compute=compute)),))

    fitting = [
        count for count in range(1, size + 1) if isinstance(place(ask_for(count), snapshot, held), Placed)
    ]
    assert nearest(ask_for(size), snapshot, held) == (str(ask_for(fitting[-1])) if fitting else None)

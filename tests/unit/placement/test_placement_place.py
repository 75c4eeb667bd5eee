"""Placing: each rule of the package's law, one test a rule."""

from collections.abc import Callable

import pytest

from aliquot.ask import parse
from aliquot.model import (
    GIB,
    MIB,
    Ask,
    Bytes,
    Considered,
    Fit,
    Gpu,
    Health,
    HealthState,
    Isolation,
    Mig,
    Placed,
    PlacementPolicy,
    Reason,
    Refused,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)
from aliquot.placement import IDLE_MEMORY, place

Card = Callable[..., Gpu]
Machine = Callable[..., Snapshot]
Cut = Callable[..., Share]


def placed(
    ask: Ask,
    snapshot: Snapshot,
    held: list[Share] | None = None,
    *,
    policy: PlacementPolicy = PlacementPolicy.PACK,
) -> list[int]:
    """The indices of the GPUs that were taken."""
    result = place(ask, snapshot, held or [], policy=policy)
    assert isinstance(result, Placed), result
    index = {gpu.uuid: gpu.index for gpu in snapshot.gpus}
    return [index[share.gpu] for share in result.shares]


def refused(
    ask: Ask,
    snapshot: Snapshot,
    held: list[Share] | None = None,
    *,
    achievable: Isolation = Isolation.ADVISORY,
) -> Refused:
    result = place(ask, snapshot, held or [], achievable=achievable)
    assert isinstance(result, Refused), result
    return result


def fits(result: Refused) -> list[Fit]:
    return [one.fit for one in result.considered]


# What is taken


def test_a_share_has_the_numbers_of_its_card(card: Card, machine: Machine) -> None:
    result = place(parse("1/4"), machine(card(0)), [])
    assert isinstance(result, Placed)
    assert result.shares == (Share(card(0).uuid, Bytes(20 * GIB), Thousandths(250)),)


def test_a_whole_gpu_is_all_that_can_be_leased_of_it(card: Card, machine: Machine) -> None:
    gpu = card(0, memory_reserved=Bytes(GIB))
    result = place(parse("100%"), machine(gpu), [])
    assert isinstance(result, Placed)
    assert result.shares == (Share(gpu.uuid, Bytes(79 * GIB), Thousandths(1000), whole=True),)


def test_all_memory_with_less_compute_is_a_share_and_no_whole_gpu(card: Card, machine: Machine) -> None:
    result = place(parse("100%@25%"), machine(card(0)), [])
    assert isinstance(result, Placed)
    assert not result.shares[0].whole


@pytest.mark.parametrize(
    ("spec", "number"), [("1/3", 3), ("12.5%", 8), ("10%", 10), ("1/7", 7), ("33.3%", 3)]
)
@pytest.mark.parametrize("capacity", [80 * GIB, 80 * GIB + 1, 15_844_835_328])
def test_a_card_takes_all_its_parts_and_not_one_more(
    spec: str, number: int, capacity: int, card: Card, machine: Machine
) -> None:
    snapshot = machine(card(0, memory=Bytes(capacity)))
    held: list[Share] = []
    for _ in range(number):
        result = place(parse(spec), snapshot, held)
        assert isinstance(result, Placed)
        held += result.shares
    assert refused(parse(spec), snapshot, held).reason is Reason.NO_ROOM


# Which GPU


def test_pack_takes_the_gpu_with_the_least_memory_left(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0), card(1), card(2, "RTX-4090"))
    held = [share(1, memory=70, compute=100)]
    assert placed(parse("8GiB"), snapshot, held) == [1]
    assert placed(parse("20GiB"), snapshot, held) == [2]
    assert placed(parse("40GiB"), snapshot, held) == [0]


def test_pack_breaks_ties_by_compute_then_index(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0), card(1), card(2))
    held = [share(0, memory=40, compute=500), share(1, memory=40, compute=700)]
    assert placed(parse("10GiB@10%"), snapshot, held) == [1]
    assert placed(parse("10GiB@10%"), machine(card(0), card(1))) == [0]


def test_pack_gives_the_smallest_card_for_a_whole_gpu(card: Card, machine: Machine) -> None:
    assert placed(parse("100%"), machine(card(0), card(1, "T4"), card(2, "RTX-4090"))) == [1]


def test_spread_takes_the_emptiest_gpu(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0), card(1, "T4"))
    held = [share(0, memory=10, compute=100)]
    assert placed(parse("1GiB"), snapshot, held, policy=PlacementPolicy.SPREAD) == [1]
    assert placed(parse("1GiB"), snapshot, policy=PlacementPolicy.SPREAD) == [0]


def test_a_count_takes_distinct_gpus_in_order_of_index(card: Card, machine: Machine, share: Cut) -> None:
    held = [share(2, memory=60, compute=500)]
    assert placed(parse("2x10GiB"), machine(card(0), card(1), card(2)), held) == [0, 2]


def test_a_count_takes_gpus_of_one_name_where_it_can(card: Card, machine: Machine) -> None:
    assert placed(parse("2x10GiB"), machine(card(0, "RTX-4090"), card(1), card(2, "A100"), card(3))) == [1, 3]


def test_a_count_mixes_models_only_where_none_is_named_and_no_other_way_is_left(
    card: Card, machine: Machine
) -> None:
    snapshot = machine(card(0), card(1, "RTX-4090"))
    assert placed(parse("2x10GiB"), snapshot) == [0, 1]
    assert refused(parse("2xH100:10GiB"), snapshot).reason is Reason.NEVER_FITS


def test_a_count_never_spans_two_vendors(card: Card, machine: Machine) -> None:
    snapshot = machine(card(0), card(1, vendor=Vendor.SOFTWARE))
    result = refused(parse("2x10GiB"), snapshot)
    assert (result.reason, result.could_ever_fit) == (Reason.NEVER_FITS, False)


def test_real_gpus_go_before_software_ones(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0, "T4", vendor=Vendor.SOFTWARE), card(1))
    assert placed(parse("1GiB"), snapshot) == [1]
    assert placed(parse("1GiB"), snapshot, [share(1, memory=80, compute=1000, whole=True)]) == [0]


def test_fallbacks_are_tried_in_order_and_the_first_that_fits_is_taken(
    card: Card, machine: Machine, share: Cut
) -> None:
    snapshot = machine(card(0), card(1, "T4"))
    result = place(parse("B200,H100:20GiB,T4:1GiB"), snapshot, [])
    assert isinstance(result, Placed)
    assert result.alternative == 1
    assert {one.alternative for one in result.considered} == {0, 1}
    assert placed(parse("H100:20GiB,T4:1GiB"), snapshot, [share(0, memory=80, compute=1000)]) == [1]


# Whole against shared


def test_a_gpu_held_whole_admits_nobody(card: Card, machine: Machine, share: Cut) -> None:
    held = [share(0, memory=80, compute=1000, whole=True)]
    for spec in ("100%", "1GiB", "1/100@0.1%"):
        result = refused(parse(spec), machine(card(0)), held)
        assert (result.reason, fits(result)) == (Reason.NO_ROOM, [Fit.HELD_WHOLE])


def test_a_whole_gpu_has_no_other_share_on_it(card: Card, machine: Machine, share: Cut) -> None:
    result = refused(parse("H100"), machine(card(0)), [share(0, memory=1, compute=10)])
    assert (result.reason, fits(result)) == (Reason.NO_ROOM, [Fit.NOT_EMPTY])


def test_a_whole_gpu_bears_what_a_display_server_holds_and_no_program(card: Card, machine: Machine) -> None:
    assert placed(parse("100%"), machine(card(0, outside_memory=IDLE_MEMORY))) == [0]
    busy = machine(card(0, outside_memory=Bytes(IDLE_MEMORY + 1)))
    assert fits(refused(parse("100%"), busy)) == [Fit.NOT_EMPTY]


def test_a_whole_gpu_bears_less_than_one_context_where_contexts_are_small(
    card: Card, machine: Machine
) -> None:
    small = {"context_bytes": Bytes(8 * MIB)}
    assert placed(parse("100%"), machine(card(0, outside_memory=Bytes(8 * MIB - 1), **small))) == [0]
    assert fits(refused(parse("100%"), machine(card(0, outside_memory=Bytes(8 * MIB), **small)))) == [
        Fit.NOT_EMPTY
    ]


# What others hold


def test_memory_that_programs_outside_every_lease_hold_is_not_leased(card: Card, machine: Machine) -> None:
    snapshot = machine(card(0, outside_memory=Bytes(70 * GIB)))
    assert placed(parse("10GiB"), snapshot) == [0]
    (one,) = refused(parse("11GiB"), snapshot).considered
    assert (one.free_memory, one.short_memory, one.outside_memory) == (10 * GIB, GIB, 70 * GIB)


def test_where_it_is_unknown_whose_memory_is_in_use_all_of_it_counts_as_others(
    card: Card, machine: Machine, share: Cut
) -> None:
    snapshot = machine(card(0, outside_memory=None, memory_used=Bytes(30 * GIB)))
    assert placed(parse("20GiB"), snapshot, [share(0, memory=30, compute=100)]) == [0]
    (one,) = refused(parse("21GiB"), snapshot, [share(0, memory=30, compute=100)]).considered
    assert one.free_memory == 20 * GIB


def test_where_use_is_unknown_altogether_nothing_is_leased(card: Card, machine: Machine) -> None:
    snapshot = machine(card(0, outside_memory=None, memory_used=None))
    for spec in ("1GiB", "100%"):
        (one,) = refused(parse(spec), snapshot).considered
        assert (one.fit, one.free_memory) == (Fit.UNHEALTHY, None)
        assert one.detail == "its driver does not tell how much memory is in use"


def test_free_memory_is_never_negative(card: Card, machine: Machine, share: Cut) -> None:
    held = [share(0, memory=70, compute=900), share(0, memory=70, compute=900)]
    (one,) = refused(parse("1GiB"), machine(card(0, outside_memory=Bytes(70 * GIB))), held).considered
    assert (one.free_memory, one.free_compute) == (0, 0)


def test_shares_of_cards_that_are_gone_weigh_on_none_that_is_here(
    card: Card, machine: Machine, share: Cut
) -> None:
    assert placed(parse("80GiB@100%"), machine(card(0)), [share(7, memory=80, compute=1000)]) == [0]


# What is closed


@pytest.mark.parametrize(
    ("state", "fit", "detail"),
    [
        ({"cordoned": True}, Fit.CORDONED, None),
        ({"cordoned": True, "health": Health(HealthState.HEALTHY, "XID 63")}, Fit.CORDONED, "XID 63"),
        ({"health": Health(HealthState.UNHEALTHY, "XID 79")}, Fit.UNHEALTHY, "unhealthy: XID 79"),
        ({"health": Health(HealthState.LOST)}, Fit.UNHEALTHY, "lost"),
        ({"mig": Mig.ENABLED}, Fit.MIG, "to open it: nvidia-smi -i 0000:00:00.0 -mig 0"),
    ],
)
@pytest.mark.parametrize("spec", ["10GiB", "100%"])
def test_closed_gpus_are_not_leased(
    spec: str, state: dict[str, object], fit: Fit, detail: str | None, card: Card, machine: Machine
) -> None:
    result = refused(parse(spec), machine(card(0, **state)))
    assert (result.reason, result.could_ever_fit) == (Reason.ALL_UNHEALTHY, True)
    assert (result.considered[0].fit, result.considered[0].detail) == (fit, detail)


@pytest.mark.parametrize("mig", [None, Mig.DISABLED, Mig.UNSUPPORTED])
def test_unknown_health_and_other_mig_modes_close_nothing(
    mig: Mig | None, card: Card, machine: Machine
) -> None:
    assert placed(parse("1GiB"), machine(card(0, health=Health(HealthState.UNKNOWN), mig=mig))) == [0]


def test_a_lost_card_that_does_not_tell_its_memory_is_lost_and_not_another_kind(
    card: Card, machine: Machine
) -> None:
    gone = card(
        0, memory=None, memory_used=None, outside_memory=None, health=Health(HealthState.LOST, "XID 79")
    )
    result = refused(parse("10GiB"), machine(gone))
    assert (result.reason, fits(result)) == (Reason.ALL_UNHEALTHY, [Fit.UNHEALTHY])


# Other vendors


def test_another_vendors_card_is_leased_whole_and_by_name(card: Card, machine: Machine) -> None:
    quiet = card(0, "MI300X", outside_memory=None, memory_used=Bytes(300 * MIB))
    assert placed(parse("MI300X"), machine(quiet)) == [0]
    assert fits(refused(parse("MI300X:10GiB"), machine(quiet))) == [Fit.WHOLE_ONLY]
    for spec in ("100%", "10GiB"):
        result = refused(parse(spec), machine(quiet))
        assert (result.reason, fits(result)) == (Reason.NO_GPU, [Fit.WHOLE_ONLY])


def test_a_card_that_does_not_tell_its_memory_is_leased_whole(card: Card, machine: Machine) -> None:
    silent = card(0, memory=None, memory_used=None, outside_memory=None)
    result = place(parse("100%"), machine(silent), [])
    assert isinstance(result, Placed)
    assert result.shares == (Share(silent.uuid, None, Thousandths(1000), whole=True),)
    assert fits(refused(parse("100%"), machine(silent), list(result.shares))) == [Fit.HELD_WHOLE]
    assert fits(refused(parse("1GiB"), machine(silent))) == [Fit.WHOLE_ONLY]


def test_a_share_of_unknown_memory_holds_all_of_its_card(card: Card, machine: Machine, share: Cut) -> None:
    """It was taken while the card did not tell; now it does, and the lease still lives."""
    result = refused(parse("1GiB@1%"), machine(card(0)), [share(0, memory=None, compute=10)])
    assert fits(result) == [Fit.HELD_WHOLE]


# Why not


@pytest.mark.parametrize(
    ("spec", "reason", "ever"),
    [
        ("500GiB", Reason.NEVER_FITS, False),
        ("4x1GiB", Reason.NEVER_FITS, False),
        ("2xRTX-4090", Reason.NEVER_FITS, False),
        ("B200:1GiB", Reason.NO_SUCH_MODEL, False),
        ("10MiB", Reason.BELOW_CONTEXT, False),
        ("1/1000000000000", Reason.BELOW_CONTEXT, False),
        ("80GiB", Reason.NO_ROOM, True),
        ("B200,500GiB,80GiB", Reason.NO_ROOM, True),
        ("B200,500GiB", Reason.NEVER_FITS, False),
        ("H100!:60GiB", Reason.NO_ROOM, True),
    ],
)
def test_the_reason_is_that_of_the_alternative_that_came_nearest(
    spec: str, reason: Reason, ever: bool, card: Card, machine: Machine, share: Cut
) -> None:
    snapshot = machine(card(0), card(1), card(2, "RTX-4090"))
    held = [share(0, memory=40, compute=500), share(1, memory=40, compute=500)]
    result = refused(parse(spec), snapshot, held)
    assert (result.reason, result.could_ever_fit) == (reason, ever)
    assert len(result.considered) == 3 * len(parse(spec).alternatives)


@pytest.mark.parametrize("spec", ["1GiB", "100%", "B200", "2x500GiB"])
def test_without_a_gpu_the_reason_is_that_there_is_none(spec: str, machine: Machine) -> None:
    result = refused(parse(spec), machine())
    assert (result.reason, result.could_ever_fit, result.considered) == (Reason.NO_GPU, False, ())


def test_a_share_of_exactly_the_context_cost_is_not_below_it(card: Card, machine: Machine) -> None:
    assert placed(parse("500MiB"), machine(card(0))) == [0]
    (one,) = refused(parse("499MiB"), machine(card(0))).considered
    assert one.detail == "one context takes 500MiB by itself"


def test_isolation_that_cannot_be_had_is_refused(card: Card, machine: Machine) -> None:
    firm = Ask(parse("1GiB").alternatives, isolation=Isolation.FIRM)
    result = refused(firm, machine(card(0)), achievable=Isolation.SOFT)
    assert (result.reason, result.could_ever_fit) == (Reason.NOT_ENFORCEABLE, False)
    assert result.considered[0].detail == "firm isolation is asked, soft can be had"
    for enough in (Isolation.FIRM, Isolation.HARD):
        assert isinstance(place(firm, machine(card(0)), [], achievable=enough), Placed)


def test_every_gpu_tells_what_was_free_wanted_and_short(card: Card, machine: Machine, share: Cut) -> None:
    (one,) = refused(parse("20GiB@50%"), machine(card(0)), [share(0, memory=68, compute=600)]).considered
    assert isinstance(one, Considered)
    assert one.wanted is not None
    assert (one.wanted.memory, one.wanted.compute) == (20 * GIB, 500)
    assert (one.capacity, one.free_memory, one.free_compute) == (80 * GIB, 12 * GIB, 400)
    assert (one.short_memory, one.short_compute) == (8 * GIB, 100)


def test_gpus_are_told_in_order_of_index_however_the_snapshot_lists_them(
    card: Card, machine: Machine
) -> None:
    result = refused(parse("500GiB"), machine(card(2), card(0), card(1)))
    assert [one.index for one in result.considered] == [0, 1, 2]

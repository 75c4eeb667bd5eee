"""What people read: golden lines at 80 columns, less the two of the indentation."""

from collections.abc import Callable
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.ask import parse
from aliquot.model import (
    GIB,
    Ask,
    Bytes,
    Gpu,
    GpuUuid,
    Health,
    HealthState,
    Isolation,
    Mig,
    Node,
    Refused,
    Share,
    Snapshot,
    Thousandths,
    Vendor,
)
from aliquot.placement import explain, headline, nearest, place

Card = Callable[..., Gpu]
Machine = Callable[..., Snapshot]
Cut = Callable[..., Share]

WIDTH = 78


@pytest.fixture
def busy(card: Card, machine: Machine) -> Snapshot:
    """One of everything."""
    return machine(
        card(0),
        card(1, health=Health(HealthState.UNHEALTHY, "XID 79, 12 min ago")),
        card(2, "RTX-4090", outside_memory=Bytes(20 * GIB)),
        card(3, "MI300X"),
        card(4, "A100", mig=Mig.ENABLED),
        card(5, cordoned=True),
        card(6),
    )


@pytest.fixture
def held(share: Cut) -> list[Share]:
    return [share(0, memory=68, compute=600), share(6, memory=80, compute=1000, whole=True)]


def told(spec: str, snapshot: Snapshot, held: list[Share]) -> str:
    ask = parse(spec)
    lines = explain(place(ask, snapshot, held), ask)
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.isascii() for line in lines)
    return "\n".join(lines)


def same(text: str) -> str:
    return dedent(text).strip("\n")


def test_no_room_tells_every_gpu(busy: Snapshot, held: list[Share]) -> None:
    assert told("20GiB@50%", busy, held) == same("""
        gpu0  H100      free 12GiB of 80GiB   compute free 40%    short 8GiB, 10%
        gpu1  H100      unhealthy: XID 79, 12 min ago
        gpu2  RTX-4090  free 4GiB of 24GiB    compute free 100%   short 16GiB;
                        programs in no lease or beyond theirs hold 20GiB
        gpu3  MI300X    has no CUDA and is leased only by name: MI300X
        gpu4  A100      in MIG mode (to open it: nvidia-smi -i 0000:04:00.0 -mig 0)
        gpu5  H100      cordoned
        gpu6  H100      held whole by another lease
    """)


def test_only_compute_short(busy: Snapshot, held: list[Share]) -> None:
    assert told("H100:10GiB@41%", busy, held).splitlines()[0] == (
        "gpu0  H100      free 12GiB of 80GiB   compute free 40%   short 1% compute"
    )


def test_whole_gpus_that_are_not_empty(busy: Snapshot, held: list[Share]) -> None:
    lines = told("100%", busy, held).splitlines()
    assert lines[0] == "gpu0  H100      not empty: a share holds 68GiB"
    assert lines[2] == "gpu2  RTX-4090  not empty: other programs hold 20GiB"


def test_never_fits_tells_how_large_each_card_is(busy: Snapshot, held: list[Share]) -> None:
    assert told("500GiB", busy, held).splitlines()[0] == "gpu0  H100      has 80GiB in all, 500GiB is wanted"


def test_below_the_context_cost_tells_it(busy: Snapshot, held: list[Share]) -> None:
    assert told("10MiB", busy, held).splitlines()[0] == (
        "gpu0  H100      10MiB is too little: one context takes 500MiB by itself"
    )


def test_isolation_that_cannot_be_had_tells_both(card: Card, machine: Machine) -> None:
    ask = Ask(parse("1GiB").alternatives, isolation=Isolation.HARD)
    result = place(ask, machine(card(0)), [], achievable=Isolation.SOFT)
    assert explain(result, ask) == ("gpu0  H100  hard isolation is asked, soft can be had",)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("20GiB@50%", "No room for 20GiB@50% on a now"),
        ("500GiB", "500GiB would not fit on a were every GPU empty"),
        ("B200:1GiB,B300:1GiB", "No B200 or B300 on a for B200:1GiB,B300:1GiB"),
        ("10MiB", "10MiB is less than one CUDA context takes on a"),
        ("A100", "No healthy, open GPU on a would fit A100"),
    ],
)
def test_the_sentence_of_a_refusal(spec: str, sentence: str, busy: Snapshot, held: list[Share]) -> None:
    result = place(parse(spec), busy, held)
    assert isinstance(result, Refused)
    assert headline(result, parse(spec), node="a") == sentence


def test_the_sentence_of_a_refusal_without_a_gpu_or_isolation(card: Card, machine: Machine) -> None:
    result = place(parse("1GiB"), machine(), [])
    assert isinstance(result, Refused)
    assert headline(result, parse("1GiB"), node="a") == "No GPU on a of which 1GiB could be leased"
    firm = Ask(parse("1GiB").alternatives, isolation=Isolation.FIRM)
    result = place(firm, machine(card(0)), [])
    assert isinstance(result, Refused)
    assert headline(result, firm, node="a") == "1GiB with firm isolation cannot be had on a"


def test_fallbacks_are_told_below_one_heading_each(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0), card(1, "RTX-4090"))
    held = [share(0, memory=68, compute=600), share(1, memory=20, compute=500)]
    assert told("H100:20GiB,RTX-4090:10GiB", snapshot, held) == same("""
        H100:20GiB:
        gpu0  H100      free 12GiB of 80GiB   compute free 40%   short 8GiB
        gpu1  RTX-4090  is another model
        RTX-4090:10GiB:
        gpu0  H100      is another model
        gpu1  RTX-4090  free 4GiB of 24GiB    compute free 50%   short 6GiB
    """)


def test_a_count_tells_how_many_would_do(card: Card, machine: Machine, share: Cut) -> None:
    snapshot = machine(card(0), card(1))
    assert told("2x10GiB", snapshot, [share(0, memory=75, compute=500)]) == same("""
        gpu0  H100  free 5GiB of 80GiB    compute free 50%    short 5GiB
        gpu1  H100  free 80GiB of 80GiB   compute free 100%   fits
        2 GPUs are wanted at once; 1 of 2 would do now
    """)


def test_a_count_across_two_drivers_tells_that(card: Card, machine: Machine) -> None:
    lines = told("2x10GiB", machine(card(0), card(1, vendor=Vendor.SOFTWARE)), []).splitlines()
    assert lines[-1] == "2 GPUs of one vendor are wanted: a program loads one driver only"


def test_a_placement_tells_what_is_taken_and_what_else_would_fit(card: Card, machine: Machine) -> None:
    assert told("10GiB", machine(card(0), card(1)), []) == same("""
        gpu0  H100  free 80GiB of 80GiB   compute free 100%   taken
        gpu1  H100  free 80GiB of 80GiB   compute free 100%   fits
    """)


def test_what_is_short_is_rounded_up_so_that_freeing_it_is_enough(card: Card, machine: Machine) -> None:
    snapshot = machine(card(0, outside_memory=Bytes(70 * GIB + 1)))
    assert "free 9.9GiB of 80GiB" in told("10GiB", snapshot, [])
    assert "short 1B" in told("10GiB", snapshot, [])
    assert "short 8.1GiB" in told("18GiB", snapshot, [])


def test_a_card_of_unknown_memory_is_told_without_numbers(card: Card, machine: Machine) -> None:
    silent = card(0, memory=None, memory_used=None, outside_memory=None)
    assert told("100%", machine(silent), []) == "gpu0  H100  taken"


def test_without_a_gpu_there_is_nothing_to_tell(machine: Machine) -> None:
    assert told("10GiB", machine(), []) == ""


def test_names_and_reasons_of_any_length_keep_to_the_width(card: Card, machine: Machine) -> None:
    long = card(0, name="NVIDIA " + "Extraordinary " * 8, health=Health(HealthState.LOST, "no answer " * 20))
    lines = told("10GiB", machine(long), []).splitlines()
    assert lines[0].startswith("gpu0  Extraordinary-Ext...  lost: no answer")
    assert all(line.startswith(" " * 28) for line in lines[1:])


@given(
    st.integers(0, 11),
    st.integers(0, 80),
    st.integers(0, 1000),
    st.sampled_from(["1/3", "10GiB@1/3", "100%", "2x79.9GiB"]),
)
def test_every_line_keeps_to_the_width(index: int, memory: int, compute: int, spec: str) -> None:
    gpu = Gpu(
        GpuUuid("GPU-a"),
        index,
        Vendor.NVIDIA,
        "NVIDIA RTX 6000 Ada Generation",
        "0000:01:00.0",
        memory=Bytes(80 * GIB - 1),
        memory_used=Bytes(0),
    )
    told(spec, Snapshot(Node("a"), (gpu,)), [Share(gpu.uuid, Bytes(memory * GIB), Thousandths(compute))])


# The nearest SPEC that fits


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        ("20GiB@50%", "12GiB@40%"),
        ("20GiB", "12GiB"),
        ("10GiB@41%", "10GiB@40%"),
        ("20GiB@1/3", "12GiB@1/3"),
        ("60%", "16.6%"),
        ("H100:60%", "H100:15%"),
        ("H100", "H100:15%"),
        ("H100:100%@50%", "H100:15%@40%"),
        ("500GiB", "12GiB"),
        ("RTX-4090:5GiB", "RTX-4090:4GiB"),
        ("2x10GiB", "2x4GiB"),
        ("2xH100:10GiB", "H100:10GiB"),
        ("4x1GiB@10%", "2x1GiB@10%"),
        ("2xMI300X", "MI300X"),
        ("B200:20GiB", "12GiB"),
        ("B200!:20GiB", None),
        ("A100:20GiB", "12GiB"),
        ("10MiB", None),
        ("RTX-4090:20GiB,H100:13GiB", "H100:12GiB"),
    ],
)
def test_the_nearest_spec(spec: str, near: str | None, busy: Snapshot, held: list[Share]) -> None:
    assert nearest(parse(spec), busy, held) == near


def test_the_nearest_size_is_rounded_down_to_be_typed(card: Card, machine: Machine) -> None:
    snapshot = machine(card(0, outside_memory=Bytes(67 * GIB + 1234567)))
    assert nearest(parse("20GiB"), snapshot, []) == "12.9GiB"


def test_the_nearest_size_keeps_exactly_what_is_not_short(card: Card, machine: Machine, share: Cut) -> None:
    held = [share(0, memory=1, compute=900)]
    assert nearest(parse("20GiB"), machine(card(0)), held) == "20GiB@10%"
    assert nearest(parse("12595MiB@90%"), machine(card(0)), held) == "12595MiB@10%"
    assert nearest(parse("1/3@90%"), machine(card(0)), held) == "1/3@10%"


def test_nothing_is_near_where_nothing_is_free_or_isolation_lacks(
    card: Card, machine: Machine, share: Cut
) -> None:
    full = [share(0, memory=80, compute=1000, whole=True)]
    assert nearest(parse("1GiB"), machine(card(0)), full) is None
    assert nearest(parse("1GiB"), machine(card(0, cordoned=True)), []) is None
    assert nearest(parse("1GiB"), machine(), []) is None
    firm = Ask(parse("1GiB").alternatives, isolation=Isolation.FIRM)
    assert nearest(firm, machine(card(0)), [], achievable=Isolation.ADVISORY) is None
    assert nearest(firm, machine(card(0)), [], achievable=Isolation.FIRM) == "1GiB"


def test_a_sliver_below_the_context_cost_is_not_offered(card: Card, machine: Machine) -> None:
    assert nearest(parse("1GiB"), machine(card(0, outside_memory=Bytes(80 * GIB - GIB // 4))), []) is None

"""Amounts: parts never exceed the whole, and what each form reserves."""

from math import gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.model import GIB, Alternative, Amount, Ask, Bytes, Fraction, Isolation

CAPACITY = 80 * GIB


def part(numerator: int, denominator: int, compute: Fraction | None = None) -> Amount:
    common = gcd(numerator, denominator)
    return Amount(part=Fraction(numerator // common, denominator // common), compute=compute)


def of_bytes(count: int, compute: Fraction | None = None) -> Amount:
    return Amount(bytes=Bytes(count), compute=compute)


def test_a_part_reserves_that_part_of_memory_and_of_compute() -> None:
    quarter = part(1, 4)
    assert (quarter.memory_of(CAPACITY), quarter.compute_of(CAPACITY)) == (20 * GIB, 250)


def test_bytes_reserve_compute_equal_to_their_part_of_the_memory() -> None:
    amount = of_bytes(20 * GIB)
    assert (amount.memory_of(CAPACITY), amount.compute_of(CAPACITY)) == (20 * GIB, 250)


def test_compute_said_apart_replaces_what_memory_implies() -> None:
    assert of_bytes(20 * GIB, Fraction(3, 10)).compute_of(CAPACITY) == 300
    assert part(1, 4, Fraction(3, 10)).compute_of(CAPACITY) == 300


def test_a_small_share_still_reserves_a_thousandth_of_compute() -> None:
    assert of_bytes(1).compute_of(CAPACITY) == 1
    assert part(1, 5000).compute_of(CAPACITY) == 1


def test_bytes_beyond_the_card_reserve_no_more_compute_than_it_has() -> None:
    assert of_bytes(500 * GIB).compute_of(CAPACITY) == 1000


def test_an_empty_card_divides_nothing_by_zero() -> None:
    assert of_bytes(GIB).compute_of(0) == 1


@pytest.mark.parametrize("denominator", [2, 3, 6, 7, 8, 10, 11, 1000])
@given(capacity=st.integers(1, 2**40))
def test_all_parts_of_a_card_together_never_exceed_it(denominator: int, capacity: int) -> None:
    each = part(1, denominator)
    assert denominator * each.memory_of(capacity) <= capacity
    assert denominator * each.compute_of(capacity) <= 1000


@given(st.integers(1, 1000), st.integers(1, 2**40))
def test_a_part_and_the_rest_of_it_never_exceed_the_card(thousandths: int, capacity: int) -> None:
    one, rest = part(thousandths, 1000), part(max(1, 1000 - thousandths), 1000)
    if thousandths < 1000:
        assert one.memory_of(capacity) + rest.memory_of(capacity) <= capacity
        assert one.compute_of(capacity) + rest.compute_of(capacity) == 1000


def test_only_a_part_of_one_without_compute_is_the_whole_gpu() -> None:
    assert part(1, 1).whole
    assert not part(1, 1, Fraction(1, 1)).whole
    assert not part(1, 2).whole
    assert not of_bytes(CAPACITY).whole


def test_an_amount_of_nothing_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="bytes or a part"):
        Amount().memory_of(CAPACITY)


@pytest.mark.parametrize(
    ("alternative", "text"),
    [
        (Alternative(of_bytes(10 * GIB)), "10GiB"),
        (Alternative(part(1, 4)), "25%"),
        (Alternative(part(1, 8)), "12.5%"),
        (Alternative(part(1, 3)), "1/3"),
        (Alternative(part(1, 1), 2), "2x100%"),
        (Alternative(part(1, 1), 2, "H100"), "2xH100"),
        (Alternative(part(1, 1), 1, "H100", exact=True), "H100!"),
        (Alternative(part(1, 1, Fraction(1, 4)), 1, "H100"), "H100:100%@25%"),
        (Alternative(of_bytes(20 * GIB, Fraction(1, 4)), 2, "H100"), "2xH100:20GiB@25%"),
        (Alternative(of_bytes(10 * GIB), 1, "RTX-4090", exact=True), "RTX-4090!:10GiB"),
    ],
)
def test_the_normal_form_of_an_alternative(alternative: Alternative, text: str) -> None:
    assert str(alternative) == text


def test_the_normal_form_of_an_ask_joins_its_fallbacks_by_commas() -> None:
    assert str(Ask((Alternative(of_bytes(2 * GIB)), Alternative(of_bytes(GIB))))) == "2GiB,1GiB"


def test_isolation_ranks_from_hard_down_to_advisory() -> None:
    assert [isolation.rank for isolation in Isolation] == [3, 2, 1, 0]
    assert Isolation.HARD.rank > Isolation.FIRM.rank > Isolation.SOFT.rank > Isolation.ADVISORY.rank

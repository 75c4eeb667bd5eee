"""Identities: short, typed without doubt, never taken for a number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.model import is_lease_id, is_lease_name, lease_id

FIRST = 21
OTHERS = 29
DISTINCT = FIRST * OTHERS**4


def test_small_entropies_give_unique_ids() -> None:
    ids = {lease_id(entropy) for entropy in range(50_000)}
    assert len(ids) == 50_000


@given(st.integers(0, DISTINCT - 1), st.integers(0, DISTINCT - 1))
def test_ids_are_equal_only_where_entropies_are_until_all_are_used(one: int, other: int) -> None:
    assert (lease_id(one) == lease_id(other)) == (one == other)


@given(st.integers(0, 2**128))
def test_every_entropy_gives_an_id_that_is_recognised_and_no_number(entropy: int) -> None:
    text = lease_id(entropy)
    assert is_lease_id(text)
    assert len(text) == 5
    assert text[0].isalpha()
    assert not set(text) & set("01ilouv")
    with pytest.raises(ValueError, match="could not convert"):
        float(text)


@given(st.integers(0, 2**128))
def test_every_lease_id_could_also_be_a_name_so_commands_look_up_both(entropy: int) -> None:
    assert is_lease_name(lease_id(entropy))


@pytest.mark.parametrize("text", ["", "abcd", "abcdef", "2abcd", "ABCDE", "abcdo", "ab1de", "abcde\n"])
def test_other_texts_are_no_lease_ids(text: str) -> None:
    assert not is_lease_id(text)


@pytest.mark.parametrize("text", ["a", "train-7", "A.b_c", "a" * 63])
def test_names_of_leases(text: str) -> None:
    assert is_lease_name(text)


@pytest.mark.parametrize("text", ["", "7train", "-a", "a b", "a/b", "a" * 64, "ä", "a\n"])
def test_other_texts_are_no_names_of_leases(text: str) -> None:
    assert not is_lease_name(text)

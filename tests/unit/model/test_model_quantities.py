"""Quantities: what is printed can be typed back, and never promises more than there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.model import GIB, MIB, format_bytes, format_bytes_exactly, format_compute

SIZES = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": MIB, "GB": 10**9, "GiB": GIB}
SIZES |= {"TB": 10**12, "TiB": 2**40}


def read(text: str) -> int:
    """The bytes that a printed size says, rounded down; written apart from the parser on purpose."""
    unit = text.lstrip("0123456789.")
    whole, _, decimals = text.removesuffix(unit).partition(".")
    return int(int(whole + decimals) * SIZES[unit] // 10 ** len(decimals))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0B"),
        (1, "1B"),
        (1023, "1023B"),
        (1024, "1KiB"),
        (GIB - 1, "1023.9MiB"),
        (GIB, "1GiB"),
        (GIB * 3 // 2, "1.5GiB"),
        (80 * GIB - 1, "79.9GiB"),
        (10**10, "9.3GiB"),
        (101 * GIB // 10, "10.1GiB"),
    ],
)
def test_a_size_is_printed_for_people(count: int | None, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (1, "1B"),
        (10 * GIB, "10GiB"),
        (10**10, "10GB"),
        (GIB * 3 // 2, "1.5GiB"),
        (1100 * 10**6, "1.1GB"),
        (1000 * MIB, "1000MiB"),
        (101 * GIB // 10, "10.1GiB"),
        (GIB + 1, "1073741825B"),
    ],
)
def test_the_normal_form_of_a_size_is_the_largest_unit_that_is_exact(count: int, text: str) -> None:
    assert format_bytes_exactly(count) == text


@given(st.integers(0, 2**63))
def test_the_normal_form_of_a_size_reads_back_as_the_same_bytes(count: int) -> None:
    assert read(format_bytes_exactly(count)) == count


@given(st.integers(10, 10**6), st.sampled_from(sorted(SIZES)))
def test_a_size_in_tenths_of_a_unit_stays_readable(tenths: int, unit: str) -> None:
    count = tenths * SIZES[unit] // 10
    text = format_bytes_exactly(count)
    assert read(text) == count
    assert len(text) <= len(f"{tenths / 10}{unit}") + 1  # 4.3kB happens to be 4.2KiB exactly


@given(st.integers(0, 2**63))
def test_a_size_typed_back_from_a_table_always_fits_and_is_near(count: int) -> None:
    shown = read(format_bytes(count))
    assert shown <= count
    assert count - shown <= count / 10


@pytest.mark.parametrize(
    ("thousandths", "text"),
    [(None, "—"), (0, "0%"), (1, "0.1%"), (125, "12.5%"), (250, "25%"), (1000, "100%")],
)
def test_compute_is_printed_in_percent_of_a_gpu(thousandths: int | None, text: str) -> None:
    assert format_compute(thousandths) == text

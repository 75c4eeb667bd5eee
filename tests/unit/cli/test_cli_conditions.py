import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.cli.output.conditions import parse_condition
from aliquot.cli.views.gpus import GPUS, GpuRow
from aliquot.cli.views.leases import LEASES, LeaseRow
from aliquot.model import AliquotError, Reason


def _indices(rows: list[GpuRow], text: str, now: int) -> list[int]:
    condition = parse_condition(text, GPUS)
    return [row.gpu.index for row in rows if condition(row, now) is True]


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("index=0", [0]),
        ("index >= 1", [1, 2]),
        ("free>60GiB", [0]),
        ("free>60GB and free<80GB", [0]),
        ("used<10%", [0, 1]),
        ("leased=12.5%", []),
        ("leased<50%", [0]),
        ("compute=25%", [0]),
        ("compute<=25%", [0, 2]),
        ("util=12%", [0, 1]),
        ("name~h100", [0, 1]),
        ("name='NVIDIA H100 80GB HBM3'", [0, 1]),
        ('health="healthy" or vendor=amd', [0, 2]),
        ("not cordoned=yes", [0, 2]),
        ("index=0 or index=1 and health=healthy", [0]),
        ("(index=0 or index=1) and health=cordoned", [1]),
        ("memory=unknown", [2]),
        ("memory!=unknown", [0, 1]),
        ("freeMemoryBytes>60GiB", [0]),
        ("INDEX=1 OR INDEX=0", [0, 1]),
        ("GPU=1", [1]),
        ("free>60gib and memory>70GI and free<80gB", [0]),
    ],
)
def test_a_condition_chooses_the_rows_it_states(
    gpus: list[GpuRow], now: int, text: str, indices: list[int]
) -> None:
    assert _indices(gpus, text, now) == indices


def test_what_is_unknown_is_neither_below_nor_not_below(gpus: list[GpuRow], now: int) -> None:
    assert _indices(gpus, "used<10%", now) == [0, 1]
    assert _indices(gpus, "not used<10%", now) == []
    assert _indices(gpus, "used<10% or vendor=amd", now) == [0, 1, 2]


def test_ages_and_remaining_time_compare_as_spans(lease_list: list[LeaseRow], now: int) -> None:
    old = parse_condition("age>10m and expires<3h", LEASES)
    assert [row.lease.id for row in lease_list if old(row, now)] == ["k3m9x"]


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("usd<10%", "no column 'usd'", 0),
        ("free<", "expected a value", 5),
        ("free", "expected a comparison", 4),
        ("free<10", "'10' is no size; write 10GiB or 10GB", 5),
        ("free<10G", "'10G' is no size; write 10GiB or 10GB", 5),
        ("util<10", "'10' is no percentage; write 10%", 5),
        ("index=0 index=1", "expected `and`, `or` or the end", 8),
        ("(index=0", "expected `)`", 8),
        ("index=0 and", "expected a column's name", 11),
        ("index and 3", "expected one of", 6),
        ("index=!", "cannot be read from here on", 6),
        ("memory<unknown", "unknown is compared with = or != only", 6),
        ("", "expected a column's name", 0),
        ("'index'=0", "expected a column's name", 0),
    ],
)
def test_a_condition_that_cannot_be_read_points_where(text: str, message: str, column: int) -> None:
    with pytest.raises(AliquotError) as caught:
        parse_condition(text, GPUS)
    error = caught.value
    assert error.reason is Reason.BAD_USAGE
    assert message in error.message
    assert error.facts[0] == text
    assert error.facts[1].index("^") == column


def test_an_unknown_column_lists_the_columns() -> None:
    with pytest.raises(AliquotError) as caught:
        parse_condition("usd<10%", GPUS)
    assert any("index, uuid, name, memory, free" in fact for fact in caught.value.facts)
    assert max(map(len, caught.value.facts)) <= 78
    assert caught.value.next == (
        ("--where 'used<10%'", "did you mean this?"),
        ("--where 'free>=10GiB and health=healthy'", "an example"),
    )


def test_deep_nesting_is_refused_and_not_a_recursion_error() -> None:
    for text in ("(" * 5000 + "index=0", "not " * 5000 + "index=0"):
        with pytest.raises(AliquotError, match="nested more than"):
            parse_condition(text, GPUS)


_WORDS = st.sampled_from(
    [
        "index",
        "free",
        "name",
        "health",
        "<",
        ">=",
        "=",
        "~",
        "(",
        ")",
        "and",
        "or",
        "not",
        "10GiB",
        "25%",
        "'x'",
        "—",
    ]
)


@given(st.one_of(st.text(max_size=40), st.lists(_WORDS, max_size=12).map(" ".join)))
def test_any_text_is_a_condition_or_a_refusal(text: str) -> None:
    with contextlib.suppress(AliquotError):
        parse_condition(text, GPUS)

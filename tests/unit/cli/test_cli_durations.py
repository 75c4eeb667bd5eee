import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aliquot.cli.output.durations import format_duration, format_time, parse_duration

_SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("2h", 7200),
        ("1h30m", 5400),
        ("7d", 604800),
        ("1w", 604800),
        ("45s", 45),
        ("1.5h", 5400),
        (" 2 h ", 7200),
        ("2H", 7200),
        ("0s", 0),
    ],
)
def test_a_span_reads_as_its_units_say(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds * _SECOND


@pytest.mark.parametrize("text", ["", "h", "2", "2x", "-2h", "2h-", "h2", "1e3h", "2hh", "٣h٣", "nanh"])
def test_what_is_no_span_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"what\? write|is no span of time"):
        parse_duration(text)


def test_a_bare_number_is_asked_for_its_unit() -> None:
    with pytest.raises(ValueError, match=r"^90 what\? write 90m, 90h or 90d$"):
        parse_duration("90")


def test_a_span_longer_than_any_machine_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 100 years"):
        parse_duration("999999999999w")


@given(st.text(max_size=20))
def test_any_text_is_a_span_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_duration(text) >= 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (48 * 3600, "2d"), (-5, "0s")],
)
def test_a_span_shows_short_and_rounded_down(seconds: int, text: str) -> None:
    assert format_duration(seconds * _SECOND) == text


def test_times_are_utc_to_the_millisecond() -> None:
    assert format_time(1_796_036_069_120_999_999) == "2026-11-30T10:54:29.120Z"

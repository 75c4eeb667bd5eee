"""The words for a device's time, and the keys of the device file that they become."""

import pytest

from aliquot.model import AliquotError
from aliquot.softgpu.timing import parse_timing


@pytest.mark.parametrize(
    ("time", "time_slice", "pairs"),
    [
        (None, None, {}),
        ("virtual", None, {"time": "virtual"}),
        ("real", "500us", {"time": "real", "time_slice_ns": 500_000}),
        ("scaled", None, {"time": "scaled", "time_scale_ppm": 1_000_000}),
        ("scaled=0.1", "2ms", {"time": "scaled", "time_scale_ppm": 100_000, "time_slice_ns": 2_000_000}),
    ],
)
def test_words_become_keys(time: str | None, time_slice: str | None, pairs: dict[str, object]) -> None:
    assert dict(parse_timing(time, time_slice).pairs) == pairs


@pytest.mark.parametrize(
    ("time", "time_slice"),
    [("fast", None), ("scaled=0", None), ("scaled=9999", None), (None, "2"), (None, "1us"), (None, "2s")],
)
def test_other_words_are_refused(time: str | None, time_slice: str | None) -> None:
    with pytest.raises(AliquotError):
        parse_timing(time, time_slice)

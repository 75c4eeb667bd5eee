"""Arrays with layers, faces and levels."""

from __future__ import annotations

import pytest
from tests.native.softgpu.machine import Box

INVALID_VALUE, INVALID_HANDLE, ILLEGAL_ADDRESS = 1, 400, 700
PITCH = 512


@pytest.mark.usefixtures("device")
def test_arrays_of_layers_and_levels(box: Box) -> None:
    seen = box.run("layers.py")
    assert seen["stored"] == [True] * 5
    assert seen["refused"] == [INVALID_VALUE] * 6
    assert seen["leaked"] == 0

    levels = {
        "flat": [[20, 6, 0], [10, 3, 0], [5, 1, 0], [2, 1, 0], [1, 1, 0]],
        "solid": [[8, 4, 2], [4, 2, 1]],
        "layered": [[8, 8, 3], [4, 4, 3], [2, 2, 3]],
        "line": [[5, 0, 0]],
    }
    for name, shapes in levels.items():
        one = seen[name]
        assert (one["shapes"], one["kept"]) == (shapes, True), name
        assert one["bytes"] == sum(PITCH * max(height, 1) * max(depth, 1) for _, height, depth in shapes)
        assert one["refused"] == [INVALID_VALUE, INVALID_HANDLE]  # no such level; a level is not destroyed
        assert one["destroyed"] == [0, INVALID_HANDLE, INVALID_HANDLE]

    for layer, rows in seen["fetched"].items():
        used = min(int(layer), 2)
        assert rows == [[used * 4 + x, used * 8 + 4 + x, 3] for x in range(4)], layer
    assert seen["counted"] == [i + (12 <= i < 16) for i in range(24)]
    assert (seen["beyond"], seen["mismatched"]) == (ILLEGAL_ADDRESS, ILLEGAL_ADDRESS)

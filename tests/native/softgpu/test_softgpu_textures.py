"""Textures and surfaces against a reference in numpy, written from the programming guide's formulas."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.native.softgpu.machine import Box

WRAP, CLAMP, MIRROR, BORDER = range(4)
POINT, LINEAR = range(2)
INTEGERS, NORMALIZED = 1, 2
FORMATS: dict[int, Any] = {
    1: np.uint8,
    2: np.uint16,
    3: np.uint32,
    8: np.int8,
    9: np.int16,
    10: np.int32,
    16: np.float16,
    32: np.float32,
}
BORDER_COLOUR = [0.25, 0.5, 0.75, 1.0]
F = np.float32


def to_float(data: Any, flags: int) -> Any:
    """What a texel is to a kernel: a float where it is one or is read as one, else an integer."""
    if data.dtype.kind == "f":
        return data.astype(F)
    if flags & INTEGERS or data.dtype.itemsize == 4:
        return data
    return np.maximum(data.astype(F) / F(np.iinfo(data.dtype).max), F(-1))


def brought_in(index: int, size: int, mode: int) -> int | None:
    if 0 <= index < size:
        return index
    if mode == BORDER:
        return None
    if mode == WRAP:
        return index % size
    if mode == MIRROR:
        index %= 2 * size
        return index if index < size else 2 * size - 1 - index
    return min(max(index, 0), size - 1)


def texel(texels: Any, index: list[int], modes: list[int], border: list[float]) -> Any:
    inside = [
        brought_in(at, size, mode) for at, size, mode in zip(index, texels.shape[-2::-1], modes, strict=False)
    ]
    if any(at is None for at in inside):
        return np.array(border, F) if texels.dtype.kind == "f" else np.array(border).astype(texels.dtype)
    found = np.zeros(4, texels.dtype)
    found[: texels.shape[-1]] = texels[tuple(reversed(inside))]
    return found


def expected(case: dict[str, Any], data: Any) -> Any:
    texels, sizes, fetches = to_float(data, case["flags"]), data.shape[-2::-1], []
    linear_memory = case["resource"] == "linear"
    unit = bool(case["flags"] & NORMALIZED) and not linear_memory and not case["integer"]
    repeats = bool(case["flags"] & NORMALIZED)
    modes = [CLAMP if mode in (WRAP, MIRROR) and not repeats else mode for mode in case["address"]]
    border = case["border"]
    if linear_memory:
        modes, border = [BORDER] * 3, [0.0] * 4
    for point in case["coordinates"]:
        if case["integer"]:
            fetches.append(texel(texels, list(point), modes, border))
            continue
        x = [F(value) * F(size) if unit else F(value) for value, size in zip(point, sizes, strict=False)]
        if case["filter"] == POINT:
            fetches.append(texel(texels, [int(np.floor(value)) for value in x], modes, border))
            continue
        low = [np.floor(value - F(0.5)) for value in x]
        weights = [
            np.floor((value - F(0.5) - at) * 256 + 0.5) / 256 for value, at in zip(x, low, strict=True)
        ]
        total = np.zeros(4)
        for corner in np.ndindex(*[2] * len(sizes)):
            share = np.prod([w if step else 1 - w for w, step in zip(weights, corner, strict=True)])
            index = [int(at) + step for at, step in zip(low, corner, strict=True)]
            total += share * texel(texels, index, modes, border).astype(float)
        fetches.append(total.astype(F))
    return np.array(fetches)


def coordinates(rng: Any, case: dict[str, Any], sizes: tuple[int, ...]) -> list[list[float]]:
    """Multiples of an eighth of a texel or of 1/64 of the whole: exact in float, so that no reference can
    fall on the other side of an edge."""
    if case["integer"]:
        return rng.integers(-3, np.array(sizes) + 3, (40, len(sizes))).tolist()  # type: ignore[no-any-return]
    if case["flags"] & NORMALIZED:
        return (rng.integers(-128, 192, (40, len(sizes))) / 64 + 1 / 256).tolist()  # type: ignore[no-any-return]
    return (rng.integers(-24, 8 * np.array(sizes) + 24, (40, len(sizes))) / 8).tolist()  # type: ignore[no-any-return]


def make_case(rng: Any, **wanted: Any) -> tuple[dict[str, Any], Any]:
    case: dict[str, Any] = {
        "dimensions": 2,
        "format": 32,
        "channels": 1,
        "resource": "array",
        "address": [CLAMP] * 3,
        "filter": POINT,
    }
    case |= {"flags": 0, "border": BORDER_COLOUR, "integer": False} | wanted
    sizes = (16, 8, 4)[: case["dimensions"]]
    kind = np.dtype(FORMATS[case["format"]])
    shape = (*reversed(sizes), case["channels"])
    if kind.kind == "f":
        data = rng.integers(-64, 64, shape).astype(kind) / kind.type(4)
    else:
        data = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, dtype=kind, endpoint=True)
    floats = kind.kind == "f" or (not case["flags"] & INTEGERS and kind.itemsize < 4)
    case["result"] = "f32" if floats else "u32" if kind.kind == "u" else "s32"
    case["shape"] = [*sizes, 1, 1][:3]
    case["data"] = base64.b64encode(data.tobytes()).decode()
    case["coordinates"] = coordinates(rng, case, sizes)
    return case, data


def all_cases(rng: Any) -> list[tuple[dict[str, Any], Any]]:
    cases = [
        make_case(rng, dimensions=d, integer=True, address=[a] * 3)
        for d in (1, 2, 3)
        for a in (CLAMP, BORDER)
    ]
    cases += [
        make_case(rng, dimensions=d, filter=f, address=[a] * 3, flags=flags)
        for d in (1, 2, 3)
        for f in (POINT, LINEAR)
        for a in (WRAP, CLAMP, MIRROR, BORDER)
        for flags in (0, NORMALIZED)
    ]
    cases += [
        make_case(rng, format=k, channels=c, flags=INTEGERS) for k in (1, 2, 3, 8, 9, 10) for c in (1, 2, 4)
    ]
    cases += [make_case(rng, format=k, filter=f) for k in (1, 2, 8, 9, 16) for f in (POINT, LINEAR)]
    cases += [
        make_case(rng, dimensions=1, resource="linear", integer=True, format=k, channels=4) for k in (1, 32)
    ]
    cases += [make_case(rng, resource="pitch", filter=f, address=[BORDER] * 3) for f in (POINT, LINEAR)]
    return cases


@pytest.fixture
def seen(box: Box, device: Path, tmp_path: Path) -> tuple[list[tuple[dict[str, Any], Any]], dict[str, Any]]:
    assert device.exists()
    cases = all_cases(np.random.default_rng(5))
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([case for case, _ in cases]))
    return cases, box.run("textures.py", str(path))


def test_fetches_are_those_of_the_programming_guide_and_surfaces_are_bytes_of_an_array(seen: Any) -> None:
    cases, found = seen
    for (case, data), words in zip(cases, found["fetched"], strict=True):
        wanted = expected(case, data)
        kind = {"f32": F, "u32": np.uint32, "s32": np.int32}[case["result"]]
        got = np.array(words, np.uint32).view(kind)
        told = {name: value for name, value in case.items() if name not in ("data", "coordinates")}
        used = slice(0, case["channels"])
        if case["filter"] == LINEAR:
            np.testing.assert_allclose(got[:, used], wanted[:, used], rtol=1e-6, atol=1e-5, err_msg=str(told))
        else:
            np.testing.assert_array_equal(got[:, used], wanted[:, used], err_msg=str(told))
    surfaces = found["surfaces"]
    before = np.arange(48, dtype=np.uint16).reshape(4, 12)
    assert surfaces["size"] == [6, 4]
    assert surfaces["texels"] == [6, 4]
    assert surfaces["zero"] == before.ravel().tolist()  # every row is written beyond the last one
    clamped = np.array(surfaces["clamp"]).reshape(4, 12)
    assert (clamped[:3] == before[:3]).all()
    assert (clamped[3] != before[3]).all()
    assert surfaces["trap"] == 700
    assert (surfaces["not for surfaces"], surfaces["beyond"], surfaces["filtered integers"]) == (1, 1, 1)
    assert (surfaces["sparse"], surfaces["destroy"], found["destroyed"]) == (801, [0, 400], 700)
    assert found["rows"] == {
        "array": "\0\0abcdGH",
        "device": "bcdDbHGH",
        "results": [1, 0, 1, 1],
        "failed": 1,
    }

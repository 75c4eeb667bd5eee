"""Every kernel of corpus/algorithms.cu: bit for bit what the same order of operations gives, with each fma
that the compiler made of a product and a sum; within the PTX ISA's error of approximate instructions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.native.engine.ptx_numbers import FORMATS, add, extreme, fused, multiply

F32, BF16 = FORMATS["f32"], FORMATS["bf16"]
RANDOM = np.random.default_rng(19)
TAPS = np.array([0.07, -0.3, 0.11, 0.7, 1.9, -0.77, 0.13, 0.31, -0.017], "f4")


def _bits(values: Any) -> list[int]:
    return [int(v) for v in np.ascontiguousarray(values, "f4").view("u4").ravel()]


def _spread(count: int) -> Any:
    """Single-precision numbers of several sizes and both signs, so that sums depend on their order."""
    return (RANDOM.standard_normal(count) * 10.0 ** RANDOM.integers(-1, 2, count)).astype("f4")


def test_gravity_between_bodies(engine: Any) -> None:
    count, softening = 150, np.float32(0.01)  # the third tile is not full
    bodies = RANDOM.random((count, 4)).astype("f4")
    out = engine.device.put(np.full((count + 42, 4), 7, "f4"))
    engine.corpus("nvrtc_nbody").launch(
        engine.device.put(bodies), out, count, softening, grid=3, block=64, workers=2
    )
    positions, masses = bodies[:, :3].astype("f8"), bodies[:, 3].astype("f8")
    apart = positions[None] - positions[:, None]
    pulls = (masses / ((apart**2).sum(2) + float(softening)) ** 1.5)[..., None] * apart
    got = out.array()
    # 2^-22.4 for each rsqrt.approx, 2^-24 for each of some 160 roundings: 2e-5 of what was added up.
    assert (np.abs(got[:count, :3] - pulls.sum(1)) <= 2e-5 * np.abs(pulls).sum(1)).all()
    assert (got[:count, 3] == 0).all()
    assert (got[count:] == 7).all()


@pytest.mark.parametrize("threads", [1, 16, 128])
def test_blocks_sort_in_shared_memory(engine: Any, threads: int) -> None:
    keys = RANDOM.integers(-50, 50, (3, 2 * threads)).astype("i4")  # many are equal
    keys[:, 0], keys[:, -1] = 2**31 - 1, -(2**31)
    buffer = engine.device.put(keys)
    engine.corpus("nvrtc_bitonic_sort").launch(buffer, grid=3, block=threads, shared=8 * threads)
    expected = np.sort(keys, axis=1)
    expected[1] = expected[1, ::-1]
    np.testing.assert_array_equal(buffer.array(), expected)


@pytest.mark.parametrize(("height", "width"), [(64, 32), (45, 70), (1, 33)])
def test_a_matrix_is_transposed_through_padded_tiles(engine: Any, height: int, width: int) -> None:
    matrix = RANDOM.random((height, width)).astype("f4")
    out = engine.device.put(np.full(height * width + 40, -1, "f4"))
    grid = (-(-width // 32), -(-height // 32))
    module = engine.corpus("nvrtc_transpose")
    module.launch(engine.device.put(matrix), out, width, height, grid=grid, block=(32, 8), workers=2)
    got = out.array()
    np.testing.assert_array_equal(got[: height * width].reshape(width, height), matrix.T)
    assert (got[height * width :] == -1).all()
    assert module.describe().static_shared_bytes == 32 * 33 * 4


def test_a_sparse_matrix_times_a_vector(engine: Any) -> None:
    lengths = [
        0,
        1,
        31,
        32,
        33,
        200,
        0,
        5,
        64,
        256,
        129,
        250,
    ]  # empty rows, and rows of several steps of a warp
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    columns = np.concatenate([np.sort(RANDOM.permutation(256)[:n]) for n in lengths]).astype("i4")
    values, x = _spread(len(columns)), _spread(256)
    out = engine.device.put(np.full(len(lengths) + 3, 7, "f4"))
    engine.corpus("nvrtc_sparse_matvec").launch(
        *(engine.device.put(v) for v in (starts, columns, values, x)), out, len(lengths), grid=3, block=128
    )
    expected = []
    for start, end in pairwise(starts):
        left, right = _bits(values[start:end]), _bits(x[columns[start:end]])
        lanes = [0] * 32
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            lanes[i % 32] = fused(F32, a, b, lanes[i % 32])
        for offset in (16, 8, 4, 2, 1):
            lanes = [add(F32, lanes[i], lanes[i + offset]) for i in range(offset)]
        expected.append(lanes[0])
    assert _bits(out.array()) == expected + _bits([7, 7, 7])


@pytest.mark.parametrize("workers", [1, 2])
def test_prefix_sums_over_all_blocks_in_one_launch(engine: Any, workers: int) -> None:
    count, block = 3000, 128
    blocks = -(-count // block)
    x = RANDOM.integers(-(2**31), 2**31, count).astype("i4")  # sums wrap, and are negative
    out, ticket = engine.device.put(np.zeros(count, "i4")), engine.device.put(np.zeros(1, "u4"))
    states = engine.device.put(np.zeros(blocks, "u8"))
    engine.corpus("nvrtc_scan_lookback").launch(
        engine.device.put(x), out, count, ticket, states, grid=blocks, block=block, workers=workers
    )
    sums = np.cumsum(x, dtype="i8").astype("i4")
    np.testing.assert_array_equal(out.array(), sums)
    assert ticket.array()[0] == blocks
    assert (states.array() >> np.uint64(32) == 2).all()
    np.testing.assert_array_equal(states.array().astype("u4").view("i4")[:-1], sums[block - 1 :: block])


@pytest.mark.parametrize("words", [0, 1, 6, 16])
def test_dot_products_of_bytes(engine: Any, words: int) -> None:
    rows, columns = 70, 4 * words
    a, x = (RANDOM.integers(-128, 128, shape).astype("i1") for shape in ((rows, columns), columns))
    b, y = (RANDOM.integers(0, 256, shape).astype("u1") for shape in ((rows, columns), columns))
    a[0], x[:4], b[0] = -128, -128, 255
    out, unsigned = engine.device.put(np.zeros(rows, "i4")), engine.device.put(np.zeros(rows, "u4"))
    left, right = [[engine.device.put(v) for v in pair] for pair in ((a, x), (b, y))]
    engine.corpus("nvrtc_dot_bytes").launch(left, out, right, unsigned, rows, words, grid=3, block=32)
    np.testing.assert_array_equal(out.array(), a.astype("i4") @ x.astype("i4"))
    np.testing.assert_array_equal(unsigned.array(), b.astype("u4") @ y.astype("u4"))


def test_a_convolution_with_taps_in_constant_memory(engine: Any) -> None:
    x = _spread(150)
    # What lies before and behind the input must not be taken for a part of it.
    around = engine.device.put(np.pad(x, 64, constant_values=np.nan))
    out = engine.device.put(np.full(200, 7, "f4"))
    engine.corpus("nvrtc_convolution").launch(around.address + 4 * 64, out, x.size, grid=4, block=64)
    padded, taps = _bits(np.pad(x, 4)), _bits(TAPS)
    expected = [0] * x.size
    for i in range(x.size):
        for tap, value in zip(taps, padded[i : i + 9], strict=True):
            expected[i] = fused(F32, tap, value, expected[i])
    assert _bits(out.array()) == expected + _bits(np.full(50, 7))


@pytest.mark.parametrize(("columns", "block"), [(1, 32), (100, 64), (300, 32), (1000, 256)])
def test_softmax_of_rows(engine: Any, columns: int, block: int) -> None:
    rows = 40
    x = (RANDOM.standard_normal((rows, columns)) * 4).astype("f4")
    x[1] = -7.5
    # e^90 is no number of single precision: a largest element that is missed, wherever it is, gives infinity
    for row in range(2, rows):
        x[row, RANDOM.integers(columns)] = 120 if row % 2 else 1000
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("nvrtc_softmax").launch(
        engine.device.put(x), out, columns, grid=rows, block=block, workers=2
    )
    powers = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    # expf by ex2.approx: 2 units in the last place, twice, and the sum's roundings; beneath 2^-126 absolute
    np.testing.assert_allclose(out.array(), powers / powers.sum(1, keepdims=True), rtol=2e-6, atol=2e-38)


def _bfloats(count: int) -> list[int]:
    """Of every size, with zeros, infinities, the largest and the smallest of both signs; no NaN."""
    edges = [0, 0x8000, 0x7F80, 0xFF80, 0x7F7F, 0xFF7F, 1, 0x8001, 0x3F80, 0xBF80, 0x0080, 0x007F]
    values = RANDOM.integers(0, 0x7F80, count - 12) | RANDOM.choice([0, 0x8000], count - 12)
    near_one = RANDOM.integers(0x3E00, 0x4100, count - 12)  # where sums and products cancel and round
    values = np.where(RANDOM.random(count - 12) < 0.5, values, near_one)
    return [int(v) for v in RANDOM.permutation(np.concatenate([edges, values]))]


def test_arithmetic_of_bfloat16(engine: Any) -> None:
    x, y, z = _bfloats(512), _bfloats(512), _bfloats(512)
    out, wide = engine.device.put(np.zeros((512, 8), "u2")), engine.device.put(np.zeros(512, "u4"))
    inputs = (engine.device.put(np.array(v, "u2")) for v in (x, y, z))
    engine.corpus("nvrtc_bfloat16").launch(*inputs, out, wide, block=512)
    one, minus_one, minus_zero = 0x3F80, 0xBF80, 0x8000
    for a, b, c, row in zip(x, y, z, out.array().tolist(), strict=True):
        assert row == [
            fused(BF16, a, one, b),
            fused(BF16, b, minus_one, a),
            fused(BF16, a, b, minus_zero),
            fused(BF16, a, b, c),
            extreme(BF16, a, b, largest=True),
            c | 0x8000,
            fused(BF16, a, c, b),
            fused(BF16, b, a, c),
        ], (a, b, c)
    expected = [fused(F32, a << 16, b << 16, c << 16) for a, b, c in zip(x, y, z, strict=True)]
    assert wide.array().tolist() == expected


def test_arithmetic_of_pairs_of_bfloat16_as_sm90_has_it(engine: Any) -> None:
    x, y = _bfloats(512), _bfloats(512)
    out = engine.device.put(np.zeros((256, 4, 2), "u2"))
    inputs = (engine.device.put(np.array(v, "u2")) for v in (x, y))
    engine.corpus("nvrtc_bfloat16_sm90").launch(*inputs, out, block=256)
    got = out.array()
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        assert got[i // 2, :, i % 2].tolist() == [
            add(BF16, a, b),
            add(BF16, a, b ^ 0x8000),
            multiply(BF16, a, b),
            extreme(BF16, a, b, largest=False),
        ], (a, b)


@pytest.mark.parametrize("block", [32, 96, 256])
def test_the_place_of_the_largest_element_is_the_first_of_several(engine: Any, block: int) -> None:
    columns = 500
    x = RANDOM.integers(-9, 10, (4, columns)).astype("f4")  # each value about 26 times
    x[1], x[2] = -np.inf, -5
    x[2, [499, 450, 33]] = 2.5
    where, largest = engine.device.put(np.zeros(4, "i4")), engine.device.put(np.zeros(4, "f4"))
    engine.corpus("nvrtc_argmax").launch(
        engine.device.put(x), where, largest, columns, grid=4, block=block, workers=2
    )
    np.testing.assert_array_equal(where.array(), x.argmax(1))
    np.testing.assert_array_equal(largest.array(), x.max(1))

"""Every kernel of corpus/numba_kernels.py, run by the engine and compared with numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

RANDOM = np.random.default_rng(20261130)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("numba_vector_add", "f4"), ("numba_vector_add_f64", "f8"), ("numba_vector_add_i64", "i8")],
)
@pytest.mark.parametrize("count", [1, 31, 32, 33, 1000, 4096])
def test_vector_add_is_exact_for_every_length(engine: Any, name: str, dtype: str, count: int) -> None:
    x, y = ((RANDOM.random(count) * 1000).astype(dtype) for _ in range(2))
    out = engine.device.put(np.zeros_like(x))
    blocks = -(-count // 128)
    engine.corpus(name).launch(
        engine.device.put(x).numba(), engine.device.put(y).numba(), out.numba(), grid=blocks, block=128
    )
    np.testing.assert_array_equal(out.array(), x + y)


def test_saxpy_is_one_fused_multiply_add(engine: Any) -> None:
    x, y = (RANDOM.random(5000).astype("f4") for _ in range(2))
    out = engine.device.put(np.zeros_like(x))
    module = engine.corpus("numba_saxpy")
    module.launch(
        2.5, engine.device.put(x).numba(), engine.device.put(y).numba(), out.numba(), grid=3, block=64
    )
    exact = (x.astype("f8") * 2.5 + y.astype("f8")).astype("f4")
    np.testing.assert_array_equal(out.array(), exact)


@pytest.mark.parametrize("tile", [16, 32])
@pytest.mark.parametrize("shape", [(64, 64, 64), (33, 70, 45)])
def test_tiled_matrix_product(engine: Any, tile: int, shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    a, b = RANDOM.random((rows, inner)).astype("f4"), RANDOM.random((inner, columns)).astype("f4")
    out = engine.device.put(np.zeros((rows, columns), "f4"))
    grid = (-(-columns // tile), -(-rows // tile))
    engine.corpus(f"numba_matmul_{tile}").launch(
        engine.device.put(a).numba(), engine.device.put(b).numba(), out.numba(), grid=grid, block=(tile, tile)
    )
    np.testing.assert_allclose(out.array(), a.astype("f8") @ b.astype("f8"), rtol=1e-5)


@pytest.mark.parametrize("workers", [1, 3])
def test_reduction_with_shuffles_and_an_atomic(engine: Any, workers: int) -> None:
    x = RANDOM.integers(0, 100, 10000).astype("f4")  # sums are exact
    out = engine.device.put(np.zeros(1, "f4"))
    engine.corpus("numba_reduce_shuffle").launch(
        engine.device.put(x).numba(), out.numba(), grid=7, block=256, workers=workers
    )
    assert out.array()[0] == x.sum()


@pytest.mark.parametrize(("name", "dtype"), [("numba_atomics_int", "i4"), ("numba_atomics_long", "i8")])
def test_integer_atomics(engine: Any, name: str, dtype: str) -> None:
    x = RANDOM.integers(-(2**30), 2**30, 3000).astype(dtype)
    out = engine.device.put(np.zeros(5, dtype))
    engine.corpus(name).launch(engine.device.put(x).numba(), out.numba(), grid=12, block=256, workers=2)
    got = out.array()
    assert got[0] == x.sum(dtype=dtype)
    assert (got[1], got[2]) == (x.min(), x.max())
    if dtype == "i4":
        assert got[3] == np.bitwise_xor.reduce(x)
        assert got[4] in x


@pytest.mark.parametrize(("name", "dtype"), [("numba_atomics_f32", "f4"), ("numba_atomics_f64", "f8")])
def test_floating_point_atomics(engine: Any, name: str, dtype: str) -> None:
    x = RANDOM.integers(-1000, 1000, 3000).astype(dtype)
    out = engine.device.put(np.zeros(3, dtype))
    engine.corpus(name).launch(engine.device.put(x).numba(), out.numba(), grid=12, block=256, workers=2)
    np.testing.assert_array_equal(out.array(), np.array([x.sum(), x.max(), x.min()], dtype))


def test_histogram_with_shared_and_global_atomics(engine: Any) -> None:
    values = RANDOM.integers(0, 256, 20000).astype("u1")
    counts = engine.device.put(np.zeros(256, "i4"))
    engine.corpus("numba_histogram").launch(
        engine.device.put(values).numba(), counts.numba(), grid=5, block=192, workers=2
    )
    np.testing.assert_array_equal(counts.array(), np.bincount(values, minlength=256))


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"), [("numba_math_f32", "f4", 5e-6), ("numba_math_f64", "f8", 4e-15)]
)
def test_the_mathematics_of_libdevice(engine: Any, name: str, dtype: str, tolerance: float) -> None:
    x = np.concatenate([RANDOM.random(300) * 20 + 1e-3, np.geomspace(1e-6, 1e5, 300)]).astype(dtype)
    out = engine.device.put(np.zeros((16, x.size), dtype))
    engine.corpus(name).launch(engine.device.put(x).numba(), out.numba(), grid=20, block=32)
    v = x.astype("f8")
    with np.errstate(over="ignore"):
        expected = [
            np.sin(v), np.cos(v), np.exp(v), np.log(v), np.sqrt(v), v**1.25, np.tanh(v), np.arctan2(v, 2.0),
            np.floor(v), np.ceil(v), np.abs(v), 1 / v, np.array([math.erf(e) for e in v]), np.log1p(v),
            np.hypot(v, 3.0), np.fmod(v, float(np.array(0.7, dtype))),
        ]  # fmt: skip
        for row, want in zip(out.array(), expected, strict=True):
            np.testing.assert_allclose(row, want.astype(dtype), rtol=tolerance, atol=tolerance)


def test_fast_mathematics_uses_the_approximate_instructions(engine: Any) -> None:
    x = (RANDOM.random(200) * 3 + 0.1).astype("f4")
    out = engine.device.put(np.zeros((7, x.size), "f4"))
    engine.corpus("numba_fast_math_f32").launch(engine.device.put(x).numba(), out.numba(), grid=7, block=32)
    v = x.astype("f8")
    expected = [np.sin(v), np.cos(v), np.exp(v), np.log(v), np.sqrt(v), 1 / v, v**1.25]
    for row, want in zip(out.array(), expected, strict=True):
        np.testing.assert_allclose(row, want, rtol=3e-6, atol=3e-7)


@pytest.mark.parametrize(("name", "dtype"), [("numba_divide_i32", "i4"), ("numba_divide_i64", "i8")])
def test_integer_division_rounds_down_as_python_does(engine: Any, name: str, dtype: str) -> None:
    a = RANDOM.integers(-(10**8), 10**8, 500).astype(dtype)
    b = RANDOM.integers(1, 1000, 500).astype(dtype) * RANDOM.choice([-1, 1], 500).astype(dtype)
    quotient, remainder = (engine.device.put(np.zeros_like(a)) for _ in range(2))
    engine.corpus(name).launch(
        engine.device.put(a).numba(), engine.device.put(b).numba(), quotient.numba(), remainder.numba(),
        grid=4, block=128,
    )  # fmt: skip
    np.testing.assert_array_equal(quotient.array(), a // b)
    np.testing.assert_array_equal(remainder.array(), a % b)


def test_a_device_function_of_the_same_text(engine: Any) -> None:
    x = RANDOM.random(100)
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("numba_device_function").launch(engine.device.put(x).numba(), out.numba(), grid=4, block=32)
    a, b = x.copy(), x + 1
    for lane in range(x.size):
        for _ in range(lane % 5):
            a[lane], b[lane] = -b[lane], a[lane]
    np.testing.assert_array_equal(out.array(), a - 2 * b)


def test_a_device_function_of_another_text_is_linked(engine: Any) -> None:
    texts = [
        (engine.texts / f"{name}.ptx").read_bytes() for name in ("numba_device_call", "nvrtc_numba_helper")
    ]
    x = RANDOM.random(70)
    for order in (texts, texts[::-1]):
        out = engine.device.put(np.zeros_like(x))
        module = engine.module(engine.link(*order))
        module.launch(engine.device.put(x).numba(), out.numba(), grid=3, block=32)
        expected = [sum((k + 1) * v ** (i % 7 - 1 - k) for k in range(i % 7)) for i, v in enumerate(x)]
        np.testing.assert_allclose(out.array(), expected, rtol=1e-14)


def test_loops_of_different_lengths_in_one_warp(engine: Any) -> None:
    start = np.arange(1, 200, dtype="i4")
    for name in ("numba_collatz", "numba_debug"):
        steps = engine.device.put(np.zeros_like(start))
        engine.corpus(name).launch(engine.device.put(start).numba(), steps.numba(), grid=7, block=32)

        def length(n: int) -> int:
            count = 0
            while n != 1:
                n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
            return count

        assert steps.array().tolist() == [length(int(n)) for n in start]


def test_a_stencil_on_a_two_dimensional_grid(engine: Any) -> None:
    a = RANDOM.random((37, 53))
    out = engine.device.put(np.zeros_like(a))
    engine.corpus("numba_stencil").launch(
        engine.device.put(a).numba(), out.numba(), grid=(4, 5), block=(16, 8)
    )
    expected = np.zeros_like(a)
    expected[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    np.testing.assert_allclose(out.array(), expected, rtol=1e-15)


def test_images_of_bytes(engine: Any) -> None:
    image = RANDOM.integers(0, 256, (45, 67)).astype("u1")
    for name in ("numba_invert", "numba_blur"):
        out = engine.device.put(np.zeros_like(image))
        engine.corpus(name).launch(engine.device.put(image).numba(), out.numba(), grid=(5, 6), block=(16, 8))
        if name == "numba_invert":
            expected = 255 - image
        else:
            ones, wide = np.pad(np.ones_like(image, "i8"), 1), np.pad(image.astype("i8"), 1)
            windows = [(slice(dy, dy + 45), slice(dx, dx + 67)) for dy in range(3) for dx in range(3)]
            total, count = np.sum([wide[w] for w in windows], 0), np.sum([ones[w] for w in windows], 0)
            expected = (total // count).astype("u1")
        np.testing.assert_array_equal(out.array(), expected)


def test_mandelbrot_counts_are_exact(engine: Any) -> None:
    out = engine.device.put(np.zeros((24, 40), "i4"))
    engine.corpus("numba_mandelbrot").launch(out.numba(), np.int32(200), grid=(5, 3), block=(8, 8))
    counts = out.array()
    assert counts.max() == 200
    assert counts.min() == 1 or counts.min() == 0
    row, column = 12, 20  # c = -0.5: in the set
    assert counts[row, column] == 200
    assert counts[0, 0] <= 2


def test_softmax_of_rows(engine: Any) -> None:
    a = (RANDOM.random((9, 300)) * 10).astype("f4")
    out = engine.device.put(np.zeros_like(a))
    engine.corpus("numba_softmax").launch(engine.device.put(a).numba(), out.numba(), grid=9, block=128)
    wide = np.exp(a.astype("f8") - a.max(1, keepdims=True))
    np.testing.assert_allclose(out.array(), wide / wide.sum(1, keepdims=True), rtol=2e-6)


def test_bits_of_long_integers(engine: Any) -> None:
    x = RANDOM.integers(-(2**62), 2**62, 64)
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("numba_long_mix").launch(engine.device.put(x).numba(), out.numba(), grid=2, block=32)

    def mixed(value: int) -> int:
        v = np.int64(value)
        v = v ^ (v << np.int64(13))
        v ^= v >> np.int64(7)
        v ^= v << np.int64(17)
        bits = f"{int(v) % 2**64:064b}"  # numba takes brev of the low 32
        return bits.count("1") + (64 - len(bits.lstrip("0"))) * 100 + (int(bits[:31:-1], 2) & 0xFF) * 10000

    assert out.array().tolist() == [mixed(int(v)) for v in x]


def test_local_arrays_with_variable_indices(engine: Any) -> None:
    x = RANDOM.random(100).astype("f4")
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("numba_local_array").launch(engine.device.put(x).numba(), out.numba(), grid=4, block=32)
    expected = [sorted(x[(i + k * 3) % 100] for k in range(8))[i % 8] for i in range(100)]
    np.testing.assert_array_equal(out.array(), np.array(expected, "f4"))


def test_votes_and_matches(engine: Any) -> None:
    x = RANDOM.integers(-4, 9, 64).astype("i4")
    out = engine.device.put(np.zeros((5, 64), "i4"))
    engine.corpus("numba_votes").launch(engine.device.put(x).numba(), out.numba(), grid=2, block=32)
    got = out.array().view("u4")
    for lanes in (slice(0, 32), slice(32, 64)):
        warp = x[lanes]
        assert set(got[0, lanes]) == {sum(1 << i for i in range(32) if warp[i] > 0)}
        assert set(got[1, lanes].astype(bool)) == {bool((warp == 7).any())}
        assert set(got[2, lanes].astype(bool)) == {True}
        assert got[3, lanes].tolist() == [sum(1 << k for k in range(32) if warp[k] == v) for v in warp]
        assert set(got[4, lanes]) == {0xFFFFFFFF}


def test_dynamic_shared_memory_has_the_size_of_the_launch(engine: Any) -> None:
    x = RANDOM.random(128).astype("f4")
    out = engine.device.put(np.zeros_like(x))
    module = engine.corpus("numba_dynamic_shared")
    arguments = (engine.device.put(x).numba(), out.numba())
    module.launch(*arguments, grid=2, block=64, shared=256)
    np.testing.assert_array_equal(out.array(), x.reshape(2, 64)[:, ::-1].ravel())
    short = module.run(*arguments, grid=2, block=64, shared=128)
    assert short.status == engine.ILLEGAL_ADDRESS


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_grid_wide_barrier_of_a_cooperative_launch(engine: Any, workers: int) -> None:
    x = RANDOM.integers(0, 1000, 256).astype("i4")
    out = engine.device.put(np.zeros((2, 256), "i4"))
    module = engine.corpus("numba_grid_sync")
    arguments = (engine.device.put(x).numba(), out.numba())
    module.launch(*arguments, grid=8, block=32, workers=workers, cooperative=True)
    got = out.array()
    np.testing.assert_array_equal(got[1], np.roll(x, -3) + 3)
    np.testing.assert_array_equal(got[0], np.roll(x, -2) + 2)
    alone = module.run(*arguments, grid=8, block=32)
    assert alone.status == engine.TRAP
    assert "not cooperative" in alone.message


def test_print_writes_a_line_for_each_thread(engine: Any) -> None:
    x = np.array([11, -22, 33], "i4")
    engine.corpus("numba_print").launch(engine.device.put(x).numba(), grid=1, block=32)
    assert engine.device.printed() == "thread 0 holds 11\nthread 1 holds -22\n"


def test_lanes_of_one_warp_that_spin_for_a_lock_all_get_it(engine: Any) -> None:
    lock, total = engine.device.put(np.zeros(1, "i4")), engine.device.put(np.zeros(1, "i4"))
    engine.corpus("numba_spin_lock").launch(lock.numba(), total.numba(), grid=2, block=32)
    assert total.array()[0] == 64

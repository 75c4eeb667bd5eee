"""Every kernel of corpus/kernels.cu, run by the engine and compared with numpy or Python."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

RANDOM = np.random.default_rng(7)
WORDS = np.array([0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF, 0x12345678], "u4")


def _words(count: int) -> Any:
    return np.concatenate([WORDS, RANDOM.integers(0, 2**32, count - WORDS.size).astype("u4")])


def test_vector_add_saxpy_and_an_empty_kernel(engine: Any) -> None:
    x, y = RANDOM.random(1000).astype("f4"), RANDOM.random(1000).astype("f4")
    a, b, out = (engine.device.put(v) for v in (x, y, np.zeros_like(x)))
    engine.corpus("nvrtc_vector_add").launch(a, b, out, 1000, grid=8, block=128)
    np.testing.assert_array_equal(out.array(), x + y)
    engine.corpus("nvrtc_saxpy").launch(1.5, a, b, out, 1000, grid=2, block=128)
    np.testing.assert_array_equal(out.array(), (x.astype("f8") * 1.5 + y).astype("f4"))
    assert engine.corpus("nvrtc_empty").launch(grid=10, block=64).instructions == 10 * 64


def test_tiled_matrix_product(engine: Any) -> None:
    a, b = RANDOM.random((64, 64)).astype("f4"), RANDOM.random((64, 64)).astype("f4")
    out = engine.device.put(np.zeros_like(a))
    engine.corpus("nvrtc_matmul").launch(
        engine.device.put(a), engine.device.put(b), out, 64, grid=(4, 4), block=(16, 16)
    )
    np.testing.assert_allclose(out.array(), a.astype("f8") @ b, rtol=1e-5)


@pytest.mark.parametrize("block", [32, 64, 256, 1024])
def test_reduction_in_dynamic_shared_memory(engine: Any, block: int) -> None:
    x = RANDOM.integers(-1000, 1000, 3000).astype("i4")
    out = engine.device.put(np.zeros(1, "i4"))
    engine.corpus("nvrtc_reduce").launch(
        engine.device.put(x), out, x.size, grid=-(-x.size // block), block=block, shared=4 * block, workers=2
    )
    assert out.array()[0] == x.sum()


def test_prefix_sums(engine: Any) -> None:
    x = RANDOM.integers(0, 100, 512).astype("i4")
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("nvrtc_scan").launch(engine.device.put(x), out, grid=2, block=256)
    np.testing.assert_array_equal(out.array(), np.cumsum(x.reshape(2, 256), axis=1).ravel())


def test_what_the_lanes_of_a_warp_do_together(engine: Any) -> None:
    x = RANDOM.integers(0, 12, 64).astype("i4")
    out = engine.device.put(np.zeros((64, 16), "u4"))
    engine.corpus("nvrtc_warp").launch(engine.device.put(x), out, grid=1, block=64)
    got = out.array()
    for t in range(64):
        lane, base = t % 32, t - t % 32
        warp = [int(v) for v in x[base : base + 32]]
        down, up = lane + 2, lane - 1
        expected = [
            sum((v & 1) << i for i, v in enumerate(warp)),
            int(5 in warp),
            1,
            warp[3],
            warp[lane ^ 5],
            warp[down] if down // 8 == lane // 8 else warp[lane],
            warp[up] if lane % 16 else warp[lane],
            sum(1 << i for i, v in enumerate(warp) if v & 3 == warp[lane] & 3),
            0xFFFFFFFF,
            1,
            sum(warp),
            max(warp),
            int(np.bitwise_xor.reduce(warp)),
            sum(1 << i for i in range(32) if (base + i) % 3 == 0) if t % 3 == 0 else 0,
            int((x & 1).sum()),
            int(5 in x.tolist()) * 2 + 1,
        ]
        expected[1] = bool(expected[1])
        got_row = got[t].tolist()
        got_row[1], got_row[2], got_row[9] = bool(got_row[1]), int(bool(got_row[2])), int(bool(got_row[9]))
        # __syncthreads_or and _and give any non-zero number
        assert got_row[:15] == expected[:15], (t, got_row, expected)
        assert got_row[15] > 0


def test_a_switch(engine: Any) -> None:
    x = RANDOM.integers(-2, 12, 64).astype("i4")
    y = RANDOM.integers(-1000, 1000, 64).astype("i4")
    out = engine.device.put(np.zeros_like(x))
    engine.corpus("nvrtc_switch").launch(engine.device.put(x), engine.device.put(y), out, block=64)
    cases: dict[int, Callable[[int], int]] = {
        0: lambda v: v + 11, 1: lambda v: v * 7, 2: lambda v: v ^ 0x55, 3: lambda v: v - 1000,
        4: lambda v: v << 3,
        5: lambda v: int(v / 3), 6: lambda v: -v, 7: lambda v: v | 0x1000, 8: lambda v: int(math.fmod(v, 5)),
    }  # fmt: skip
    expected = [cases[a](b) if a in cases else 123456 for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert out.array().tolist() == expected


def test_a_structure_by_value(engine: Any) -> None:
    item = struct.pack("<if3d5s3x", 42, 1.5, 0.25, -3.0, 8.0, b"\x01\x80\xff\x05\x7f")
    out, characters = engine.device.put(np.zeros(30)), engine.device.put(np.zeros(30, "i1"))
    engine.corpus("nvrtc_struct").launch(item, out, characters, block=30)
    np.testing.assert_array_equal(out.array(), [[0.25, -3.0, 8.0][i % 3] * 1.5 + 42 for i in range(30)])
    assert characters.array().tolist() == [[1, -128, -1, 5, 127][i % 5] for i in range(30)]


def test_constants_device_variables_and_pointers_to_them(engine: Any) -> None:
    table = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597]
    out, count = engine.device.put(np.zeros(32, "f4")), engine.device.put(np.zeros(1, "i4"))
    module = engine.corpus("nvrtc_constant")
    for launched in (1, 2):  # the counter lives as long as the module
        module.launch(out, count, block=32)
        assert out.array().tolist() == [table[i & 15] + [2.5, 3.5, 4.5][i % 3] for i in range(32)]
        assert count.array()[0] == 7 + 32 * launched


def test_function_pointers_and_recursion(engine: Any) -> None:
    x = RANDOM.random(64).astype("f4")
    out, fib = engine.device.put(np.zeros_like(x)), engine.device.put(np.zeros(64, "i4"))
    engine.corpus("nvrtc_functions").launch(engine.device.put(x), out, fib, block=64)
    expected = [[v * v, v * v * v, v * np.float32(0.5)][i % 3] for i, v in enumerate(x)]
    np.testing.assert_array_equal(out.array(), np.array(expected, "f4"))
    numbers = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]
    assert fib.array().tolist() == [numbers[i % 12] for i in range(64)]


def test_printf_formats_as_c_does(engine: Any) -> None:
    engine.corpus("nvrtc_print").launch(2.71828, block=32)
    line = (
        "t={} x=2.718 s=text u=4000000000 ll=1234567890123456789 c=z % [   42|7   |0abc|   abc|abc   |ab]\n"
    )
    assert engine.device.printed() == line.format(0) + line.format(1)


def test_bit_operations_of_32_bits(engine: Any) -> None:
    x, y = _words(64), _words(64)[::-1].copy()
    out = engine.device.put(np.zeros((64, 16), "u4"))
    engine.corpus("nvrtc_bits").launch(engine.device.put(x), engine.device.put(y), out, block=64)
    for a, b, row in zip(x.tolist(), y.tolist(), out.array().tolist(), strict=True):
        sa, sb = a - (a >> 31 << 32), b - (b >> 31 << 32)
        bytes_ = struct.pack("<II", a, b)
        low24 = [((v & 0xFFFFFF) ^ 0x800000) - 0x800000 for v in (a, b)]
        divisor = sb | 1
        expected = [
            bin(a).count("1"), 32 - a.bit_length(), int(f"{a:032b}"[::-1], 2), (a & -a).bit_length(),
            int.from_bytes(bytes(bytes_[s] for s in (1, 6, 4, 2)), "little"),
            ((b << 32 | a) << (b & 31)) >> 32, (b << 32 | a) >> (a & 31), (a & b) ^ (~a | 0x0F0F0F0F),
            a * b >> 32, sa * sb >> 32, low24[0] * low24[1], abs(a - b) + 100, a // (b | 1), a % (b | 1),
            abs(sa) // abs(divisor) * (1 if (sa < 0) == (divisor < 0) else -1),
            17 + sum(struct.pack("<i", sa)[k].__index__() * 0 for k in range(4)) + sum(
                struct.unpack("<4b", struct.pack("<I", a))[k] * struct.unpack("<4b", struct.pack("<I", b))[k]
                for k in range(4)
            ),
        ]  # fmt: skip
        assert row == [value % 2**32 for value in expected]


def test_arithmetic_of_64_bits(engine: Any) -> None:
    x = np.concatenate([np.array([0, 1, -1, 2**63 - 1, -(2**63)]), RANDOM.integers(-(2**62), 2**62, 27)])
    y = np.concatenate([np.array([-2, 3, -1, -(2**63), 5]), RANDOM.integers(-(2**40), 2**40, 27)])
    out = engine.device.put(np.zeros((32, 10), "i8"))
    engine.corpus("nvrtc_wide").launch(engine.device.put(x), engine.device.put(y), out, block=32)
    for a, b, row in zip(x.tolist(), y.tolist(), out.array().view("u8").tolist(), strict=True):
        ua, d = a % 2**64, b | 1
        sign = 1 if (a < 0) == (d < 0) else -1
        expected = [
            a * b, a * b >> 64, ua * (b % 2**64) >> 64, abs(a) // abs(d) * sign,
            a - d * (abs(a) // abs(d) * sign),
            ua // (d % 2**64), bin(ua).count("1"), 64 - ua.bit_length(), a >> (b & 63),
            int(f"{ua:064b}"[::-1], 2),
        ]  # fmt: skip
        assert row == [value % 2**64 for value in expected]


def test_carry_chains_of_128_bits(engine: Any) -> None:
    pairs = [(int.from_bytes(RANDOM.bytes(16)), int.from_bytes(RANDOM.bytes(16))) for _ in range(30)]
    pairs += [(2**128 - 1, 1), (2**64 - 1, 2**64 - 1)]

    def pack(values: list[int]) -> Any:
        return np.frombuffer(b"".join(v.to_bytes(16, "little") for v in values), "u8")

    out = engine.device.put(np.zeros(32 * 6, "u8"))
    arguments = [engine.device.put(pack([pair[i] for pair in pairs])) for i in range(2)]
    engine.corpus("nvrtc_carry").launch(*arguments, out, block=32)
    data = out.array().tobytes()
    got = [int.from_bytes(data[16 * i : 16 * i + 16], "little") for i in range(96)]
    assert got == [v % 2**128 for a, b in pairs for v in (a + b, a - b, a * b)]


def _round(value: float, mode: str, low: int, high: int, none: int) -> int:
    if math.isnan(value):
        return none
    if math.isinf(value):
        return low if value < 0 else high
    modes: dict[str, Callable[[float], int]] = {
        "rz": math.trunc, "rn": round, "ru": math.ceil, "rd": math.floor,
    }  # fmt: skip
    whole = modes[mode](value)
    return min(max(whole, low), high)


SINGLES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    1e10,
    -1e10,
    math.inf,
    -math.inf,
    math.nan,
    3e38,
    255.7,
    2147483520.0,
    1e-40,
]


def test_conversions_saturate_and_round(engine: Any) -> None:
    x = np.array(SINGLES + [float(v) for v in (RANDOM.random(16) - 0.5) * 1e6], "f4")
    d = np.array(
        [1 + 2.0**-24, 1 + 2.0**-25, -1 - 2.0**-24, 1e300, -1e300, 1e-310, math.nan, 2.5, -2.5, 4e9], "f8"
    )
    d = np.concatenate([d, (RANDOM.random(22) - 0.5) * 1e12])
    out, wide, reals = (
        engine.device.put(np.zeros(s, t)) for s, t in (((32, 12), "i4"), ((32, 2), "i8"), ((32, 12), "f4"))
    )
    engine.corpus("nvrtc_convert").launch(
        engine.device.put(x), engine.device.put(d), out, wide, reals, block=32
    )
    low, high = -(2**31), 2**31 - 1
    for i in range(32):
        f, g = float(x[i]), float(d[i])
        rounded = [_round(f, mode, low, high, 0) for mode in ("rz", "rn", "ru", "rd")]
        unsigned = _round(f, "rz", 0, 2**32 - 1, 0)
        row = out.array()[i].tolist()
        assert row[:4] == rounded, f
        assert row[4] % 2**32 == unsigned, f
        assert row[5:7] == [_round(g, mode, low, high, low) for mode in ("rz", "rn")], g
        assert row[7] == unsigned % 256
        short = rounded[0] % 2**16
        assert row[8] == short - (short >> 15 << 16)
        bits = struct.unpack("<q", struct.pack("<d", g))[0]
        assert (row[10] % 2**32, row[11] % 2**32) == (bits >> 32 & 0xFFFFFFFF, bits & 0xFFFFFFFF)
        assert wide.array()[i, 0] == _round(f, "rz", -(2**63), 2**63 - 1, -(2**63)), f
        assert wide.array()[i, 1] == _round(g, "rn", -(2**63), 2**63 - 1, -(2**63)), g


def _neighbours(exact: Fraction, dtype: Any) -> tuple[float, float]:
    """The largest float not above, the smallest not below."""
    near = dtype(float(exact)) if dtype is np.float64 else dtype(exact.numerator / exact.denominator)
    if Fraction(float(near)) <= exact:
        return float(near), float(near) if Fraction(float(near)) == exact else float(
            np.nextafter(near, dtype(np.inf))
        )
    return float(np.nextafter(near, dtype(-np.inf))), float(near)


def _directed(exact: Fraction, mode: str, dtype: Any) -> float:
    below, above = _neighbours(exact, dtype)
    if mode == "rd" or (mode == "rz" and exact > 0):
        return below
    if mode in ("ru", "rz"):
        return above
    middle = (Fraction(below) + Fraction(above)) / 2
    if exact == middle:
        return (
            below
            if struct.unpack("<q", struct.pack("<d", float(np.float64(dtype(below)))))[0] % 2**30 == 0
            else above
        )
    return below if exact < middle else above


def test_directed_rounding_of_f32_is_exact(engine: Any) -> None:
    x, y, z = ((RANDOM.random(32) * 10.0 ** RANDOM.integers(-6, 6, 32)).astype("f4") for _ in range(3))
    y[::2] *= -1
    out = engine.device.put(np.zeros((32, 24), "f4"))
    engine.corpus("nvrtc_rounding").launch(*(engine.device.put(v) for v in (x, y, z)), out, block=32)
    for i in range(32):
        a, b, c = (Fraction(float(v[i])) for v in (x, y, z))
        exact = [a + b] * 4 + [a * b] * 4 + [a * b + c] * 4 + [a / b] * 4
        modes = ["rn", "rz", "ru", "rd"] * 4
        row = out.array()[i]
        for k in range(16):
            if modes[k] != "rn":
                assert float(row[k]) == _directed(exact[k], modes[k], np.float32), (i, k)
            else:
                below, above = _neighbours(exact[k], np.float32)
                error = abs(Fraction(float(row[k])) - exact[k])
                assert error <= min(exact[k] - Fraction(below), Fraction(above) - exact[k]) or error == 0
        assert row[16] == np.sqrt(abs(x[i]))
        assert row[17] <= row[16]
        assert Fraction(float(row[17])) ** 2 <= a
        assert float(row[18]) == float(np.float32(1) / y[i])
        assert float(row[19]) == _directed(1 / b, "rd", np.float32)
        assert row[20] == x[i] - y[i]
        assert (row[21], row[22], row[23]) == (min(x[i], y[i]), max(x[i], y[i]), np.copysign(x[i], y[i]))


def test_directed_rounding_of_f64_is_exact(engine: Any) -> None:
    x, y, z = (RANDOM.random(32) * 10.0 ** RANDOM.integers(-6, 6, 32) for _ in range(3))
    y[::2] *= -1
    out = engine.device.put(np.zeros((32, 12)))
    engine.corpus("nvrtc_rounding_f64").launch(*(engine.device.put(v) for v in (x, y, z)), out, block=32)
    for i in range(32):
        a, b, c = (Fraction(float(v[i])) for v in (x, y, z))
        row = [float(v) for v in out.array()[i]]
        fused = a * b + c
        assert row[0] == x[i] + y[i]
        assert row[1] == _directed(a + b, "rz", np.float64)
        assert row[2] == _directed(a * b, "ru", np.float64)
        assert row[3] == _directed(a * b, "rd", np.float64)
        assert row[4] == float(fused)  # Python divides integers correctly rounded
        assert row[5] == _directed(fused, "rz", np.float64)
        assert row[6] == _directed(fused, "ru", np.float64)
        assert row[7] == x[i] / y[i]
        assert row[8] == _directed(a / b, "rd", np.float64)
        assert row[9] == np.sqrt(x[i])
        assert row[10] == 1 / y[i]
        assert row[11] == min(x[i], y[i])


def test_half_precision(engine: Any) -> None:
    x, y, z = (
        np.concatenate([RANDOM.integers(0, 0x7C00, 60).astype("u2"), np.array([0, 1, 0x7C00, 0x3FF], "u2")])
        for _ in range(3)
    )
    y = (y | RANDOM.choice(np.array([0, 0x8000], "u2"), 64)).astype("u2")
    f = np.concatenate(
        [(RANDOM.random(60) - 0.5) * 10.0 ** RANDOM.integers(-8, 6, 60), [0.0, 65519.0, 65520.0, 1e-8]]
    ).astype("f4")
    out, wide = engine.device.put(np.zeros((64, 8), "u2")), engine.device.put(np.zeros(64, "f4"))
    engine.corpus("nvrtc_half").launch(*(engine.device.put(v) for v in (x, y, z, f)), out, wide, block=64)
    a, b, c = (v.view("f2").astype("f8") for v in (x, y, z))
    got = out.array().view("f2")

    def same(column: int, want: Any) -> None:
        np.testing.assert_array_equal(np.isnan(got[:, column]), np.isnan(want))
        np.testing.assert_array_equal(got[:, column][~np.isnan(want)], want[~np.isnan(want)])

    with np.errstate(all="ignore"):
        same(0, (a + b).astype("f2"))
        same(1, (a - b).astype("f2"))
        same(2, (a * b).astype("f2"))
        same(3, (a * b + c).astype("f2"))
        same(4, f.astype("f2"))
    np.testing.assert_array_equal(wide.array(), x.view("f2").astype("f4"))
    toward_zero = got[:, 5].astype("f8")
    assert (np.abs(toward_zero) <= np.abs(f)).all()
    bits = f.view("u4").astype("u8")
    np.testing.assert_array_equal(out.array()[:, 6], ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("u2"))


def test_locks_and_flags_between_lanes_and_warps_make_progress(engine: Any) -> None:
    lock, total = engine.device.put(np.zeros(1, "u4")), engine.device.put(np.zeros(1, "i4"))
    engine.corpus("nvrtc_spin").launch(lock, total, grid=2, block=64)
    assert total.array()[0] == 128
    flag, data, out = (engine.device.put(np.zeros(32, "i4")) for _ in range(3))
    engine.corpus("nvrtc_producer").launch(flag, data, out, block=64)
    assert out.array().tolist() == [3 * i for i in range(32)]


def test_barriers_after_divergence_and_after_some_threads_left(engine: Any) -> None:
    out = engine.device.put(np.full(64, -7, "i4"))
    engine.corpus("nvrtc_divergent_barrier").launch(out, block=64)
    shared = [t * (t - 1) // 2 if t & 1 else -t for t in range(64)]
    expected = []
    for t in range(64):
        value = shared[t]
        if t < 40:
            value = shared[(t * 7 + 3) % 64]
            if t % 5 == 0:
                value *= 2
            elif t % 3 == 0:
                expected.append(-7)
                continue
        expected.append(value + shared[63 - t])
    assert out.array().tolist() == expected


def test_generic_pointers_into_every_space(engine: Any) -> None:
    memory = engine.device.put(np.arange(32, dtype="i4") * 1000)
    out = engine.device.put(np.zeros(32, "i4"))
    engine.corpus("nvrtc_generic").launch(memory, out, 3, block=32)
    kinds = [lambda t: t * 1000 + 1 + 20000, lambda t: t * 100 + 1 + 10000, lambda t: t * 3 + 1 + 40000]
    assert out.array().tolist() == [kinds[t % 3](t) for t in range(32)]


def test_an_assertion_that_fails_names_itself(engine: Any) -> None:
    module = engine.corpus("nvrtc_assertion")
    assert module.run(5).status == engine.OK
    outcome = module.run(15)
    assert outcome.status == engine.TRAP
    assert "x < 10" in outcome.message
    assert "Assertion `x < 10` failed" in engine.device.printed()


def test_atomics_of_every_kind(engine: Any) -> None:
    u = engine.device.put(np.array([0, 3, 0, 2**32 - 1, 0, 0, 0], "u4"))
    s = engine.device.put(np.array([0, 0, 0], "i4"))
    f, d = engine.device.put(np.zeros(1, "f4")), engine.device.put(np.zeros(1))
    w = engine.device.put(np.zeros(2, "u8"))
    engine.corpus("nvrtc_atomics").launch(u, s, f, d, w, block=64)
    decreased = 3
    for _ in range(64):
        decreased = 5 if decreased == 0 or decreased > 5 else decreased - 1
    assert u.array().tolist() == [64 % 21, decreased, 2**32 - 1, 0, 0, 63, 99]
    assert s.array().tolist() == [-63, 13, -sum(range(64))]
    assert (f.array()[0], d.array()[0]) == (32.0, 16.0)
    assert w.array().tolist() == [64 << 33, 5]


def test_vector_loads_and_stores(engine: Any) -> None:
    x = RANDOM.random((64, 4)).astype("f4")
    b, d = RANDOM.integers(0, 256, (64, 4)).astype("u1"), RANDOM.random((64, 2))
    out, bytes_, pairs = (engine.device.put(np.zeros_like(v)) for v in (x, b, d))
    arguments = (engine.device.put(x), out, engine.device.put(b), bytes_, engine.device.put(d), pairs)
    engine.corpus("nvrtc_vectors").launch(*arguments, grid=2, block=32)
    np.testing.assert_array_equal(out.array(), x[:, ::-1])
    np.testing.assert_array_equal(bytes_.array(), b + np.array([1, 2, 3, 4], "u1"))
    np.testing.assert_array_equal(pairs.array(), np.stack([d[:, 1], d[:, 0] * 2], 1))


def test_mandelbrot_is_exact_in_f32(engine: Any) -> None:
    out = engine.device.put(np.zeros((48, 64), "i4"))
    engine.corpus("nvrtc_mandelbrot").launch(out, 64, 48, 200, grid=(8, 6), block=(8, 8))
    single, two = np.float32, np.float32(2)
    x, y = np.meshgrid(np.arange(64, dtype="f4"), np.arange(48, dtype="f4"))
    real, imaginary = x * single(3) / single(64) - two, y * two / single(48) - single(1)
    a, b, expected = np.zeros_like(x), np.zeros_like(x), np.zeros((48, 64), "i4")
    with np.errstate(all="ignore"):  # those that have left go on to infinity here
        inside = np.ones_like(x, bool)
        for _ in range(200):
            expected += inside
            a, b = a * a - b * b + real, _fused(two * a, b, imaginary)
            inside &= a * a + b * b < 4
    np.testing.assert_array_equal(out.array(), expected)
    assert (expected.min(), expected.max()) == (1, 200)


def _fused(a: Any, b: Any, c: Any) -> Any:
    """a b + c of arrays of f32, rounded once. The product is exact in f64; the sum is rounded there to odd,
    which keeps the second rounding from seeing a tie that is none."""
    product, wide = a.astype("f8") * b, c.astype("f8")
    total = product + wide
    back = total - product
    error = (product - (total - back)) + (wide - back)
    even = total.view("i8") & 1 == 0
    odd = np.where(even & (error != 0), np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype("f4")


@pytest.mark.parametrize("name", ["nvrtc_debug", "nvrtc_lineinfo"])
def test_text_with_debug_sections(engine: Any, name: str) -> None:
    x = np.arange(40, dtype="i4")
    out = engine.device.put(np.zeros_like(x))
    engine.corpus(name).launch(engine.device.put(x), out, block=40)
    expected = np.cumsum(x * 3) if name == "nvrtc_debug" else x * 3 + 1
    np.testing.assert_array_equal(out.array(), expected)


def test_a_matrix_product_by_warps(engine: Any) -> None:
    a = RANDOM.standard_normal((64, 48)).astype("f2")
    b = RANDOM.standard_normal((48, 32)).astype("f2")
    out = engine.device.put(np.zeros((64, 32), "f4"))
    engine.corpus("nvrtc_wmma_matmul").launch(
        engine.device.put(a), engine.device.put(b.T.copy()), out, 32, 48, 0.5, grid=(2, 2), block=(32, 2)
    )
    sums = np.zeros((64, 32), "f4")
    for at in range(0, 48, 16):  # exact in double, rounded after each step
        sums = (sums + a[:, at : at + 16].astype("f8") @ b[at : at + 16].astype("f8")).astype("f4")
    np.testing.assert_array_equal(out.array(), sums * np.float32(0.5))


def test_a_matrix_product_of_bytes(engine: Any) -> None:
    a, b = RANDOM.integers(-128, 128, (32, 16)).astype("i1"), RANDOM.integers(-128, 128, (16, 8)).astype("i1")
    out = engine.device.put(np.zeros((8, 32), "i4"))
    engine.corpus("nvrtc_wmma_bytes").launch(
        engine.device.put(a.T.copy()), engine.device.put(b), out, block=32
    )
    np.testing.assert_array_equal(out.array().T, a.astype("i4") @ b.astype("i4") + 1)


def test_a_matrix_product_by_ldmatrix_and_mma(engine: Any) -> None:
    a = RANDOM.standard_normal((16, 64)).astype("f2")
    b = RANDOM.standard_normal((64, 8)).astype("f2")
    out = engine.device.put(np.zeros((16, 8), "f4"))
    engine.corpus("nvrtc_mma_matmul").launch(engine.device.put(a), engine.device.put(b), out, 64, block=32)
    sums = np.zeros((16, 8), "f4")
    for at in range(0, 64, 16):
        sums = (sums + a[:, at : at + 16].astype("f8") @ b[at : at + 16].astype("f8")).astype("f4")
    np.testing.assert_array_equal(out.array(), sums)


def test_text_for_another_architecture(engine: Any) -> None:
    x = RANDOM.random(32).astype("f4")
    out = engine.device.put(np.zeros_like(x))
    module = engine.corpus("nvrtc_sm90")
    module.launch(engine.device.put(x), out, block=32)
    np.testing.assert_array_equal(out.array(), x * 2 + np.roll(x, 16))
    assert module.describe().target == 90


def test_a_form_that_does_not_run_is_named_and_never_computed(engine: Any) -> None:
    module = engine.corpus("nvrtc_sparse_mma")
    assert "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 is not supported" in module.log
    out = engine.device.put(np.full(32, 5, "f4"))
    outcome = module.run(out, block=32)
    assert outcome.status == engine.UNSUPPORTED
    assert outcome.message.startswith("mma.sp.sync.aligned.m16n8k8")
    assert (out.array() == 5).all()

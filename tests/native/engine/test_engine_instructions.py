"""Single instructions, each on every pair of awkward values, against Python's own arithmetic."""

# ruff: noqa: ARG005, E501 -- the expectations share one signature, whether or not they need every
# operand; lines of PTX
from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

EDGES = {
    16: [0, 1, 2, 3, 7, 15, 16, 31, 255, 256, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF, 0x1234],
    32: [
        0,
        1,
        2,
        5,
        31,
        32,
        33,
        0xFFFF,
        0x10000,
        0x7FFFFFFF,
        0x80000000,
        0x80000001,
        0xFFFFFFFE,
        0xFFFFFFFF,
        0xDEADBEEF,
    ],
    64: [
        0,
        1,
        2,
        63,
        64,
        65,
        2**32 - 1,
        2**32,
        2**63 - 1,
        2**63,
        2**63 + 1,
        2**64 - 2,
        2**64 - 1,
        0x123456789ABCDEF0,
    ],
}
REGISTER = {16: "%h", 32: "%r", 64: "%d"}


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def run_ternary(engine: Any, instruction: str, a: Any, b: Any, c: Any, result: Any) -> Any:
    """`instruction` with {d} {a} {b} {c} for registers, one thread a triple; also with half the lanes off."""
    widths = [array.dtype.itemsize * 8 for array in (a, b, c, result)]
    names = [f"{REGISTER[width]}1{index}" for index, width in enumerate(widths)]
    body = (
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1; ld.param.u32 %r4, [n];\n"
    )
    body += "setp.ge.u32 %p1, %r3, %r4; @%p1 ret;\n"
    for index, width in enumerate(widths[:3]):
        body += f"ld.param.u64 %d{index + 1}, [p{index}]; mul.wide.u32 %d5, %r3, {width // 8};"
        body += f"add.u64 %d{index + 1}, %d{index + 1}, %d5; ld.global.b{width} {names[index]}, [%d{index + 1}];\n"
    body += instruction.format(a=names[0], b=names[1], c=names[2], d=names[3]) + "\n"
    body += f"ld.param.u64 %d4, [p3]; mul.wide.u32 %d5, %r3, {widths[3] // 8}; add.u64 %d4, %d4, %d5;"
    body += f"st.global.b{widths[3]} [%d4], {names[3]};"
    parameters = ", ".join(f".param .u64 p{index}" for index in range(4)) + ", .param .u32 n"
    out = engine.device.put(result)
    module = engine.body(body, parameters=parameters)
    module.launch(*(engine.device.put(v) for v in (a, b, c)), out, a.size, grid=-(-a.size // 64), block=64)
    return out.array()


def grid_of(bits_a: int, bits_b: int) -> tuple[Any, Any]:
    pairs = [(x, y) for x in EDGES[bits_a] for y in EDGES[bits_b]]
    a = np.array([pair[0] for pair in pairs], f"u{bits_a // 8}")
    return a, np.array([pair[1] for pair in pairs], f"u{bits_b // 8}")


def check(
    engine: Any,
    text: str,
    bits: int,
    expected: Callable[[int, int, int], int],
    *,
    second: int = 0,
    out: int = 0,
) -> None:
    a, b = grid_of(bits, second or bits)
    c = np.roll(a, 3)
    width = out or bits
    got = run_ternary(engine, text, a, b, c, np.zeros(a.size, f"u{width // 8}"))
    wrong = [
        (hex(x), hex(y), hex(z), hex(g), hex(e))
        for x, y, z, g in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True)
        if g != (e := expected(x, y, z) % (1 << width))
    ]
    assert not wrong, wrong[:3]


def _divide(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, z: x + y,
    "sub": lambda x, y, z: x - y,
    "mul.lo": lambda x, y, z: x * y,
    "min": lambda x, y, z: min(x, y),
    "max": lambda x, y, z: max(x, y),
    "div": lambda x, y, z: _divide(x, y) if y else -1,
    "rem": lambda x, y, z: x - y * _divide(x, y) if y else x,
    "mad.lo": lambda x, y, z: x * y + z,
    "sad": lambda x, y, z: abs(x - y) + z,
}


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", ["u", "s"])
@pytest.mark.parametrize("opcode", list(INTEGER))
def test_integer_arithmetic(engine: Any, opcode: str, sign: str, bits: int) -> None:
    third = ", {c}" if opcode in ("mad.lo", "sad") else ""
    view: Callable[[int], int] = (lambda v: signed(v, bits)) if sign == "s" else (lambda v: v)
    function = INTEGER[opcode]
    check(
        engine,
        f"{opcode}.{sign}{bits} {{d}}, {{a}}, {{b}}{third};",
        bits,
        lambda x, y, z: function(view(x), view(y), view(z)),
    )


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", ["u", "s"])
def test_the_high_half_of_products(engine: Any, sign: str, bits: int) -> None:
    view: Callable[[int], int] = (lambda v: signed(v, bits)) if sign == "s" else (lambda v: v)
    check(
        engine, f"mul.hi.{sign}{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: view(x) * view(y) >> bits
    )
    check(
        engine,
        f"mad.hi.{sign}{bits} {{d}}, {{a}}, {{b}}, {{c}};",
        bits,
        lambda x, y, z: (view(x) * view(y) >> bits) + view(z),
    )


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("sign", ["u", "s"])
def test_wide_products(engine: Any, sign: str, bits: int) -> None:
    view: Callable[[int], int] = (lambda v: signed(v, bits)) if sign == "s" else (lambda v: v)
    check(
        engine,
        f"mul.wide.{sign}{bits} {{d}}, {{a}}, {{b}};",
        bits,
        lambda x, y, z: view(x) * view(y),
        out=2 * bits,
    )


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts_clamp_their_amount(engine: Any, bits: int) -> None:
    def limit(n: int) -> int:
        return min(n, bits)

    check(engine, f"shl.b{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: x << limit(y), second=32)
    check(engine, f"shr.u{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: x >> limit(y), second=32)
    check(
        engine,
        f"shr.s{bits} {{d}}, {{a}}, {{b}};",
        bits,
        lambda x, y, z: signed(x, bits) >> limit(y),
        second=32,
    )


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(engine: Any, bits: int) -> None:
    check(engine, f"and.b{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: x & y)
    check(engine, f"or.b{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: x | y)
    check(engine, f"xor.b{bits} {{d}}, {{a}}, {{b}};", bits, lambda x, y, z: x ^ y)
    check(engine, f"not.b{bits} {{d}}, {{a}};", bits, lambda x, y, z: ~x)
    check(engine, f"cnot.b{bits} {{d}}, {{a}};", bits, lambda x, y, z: int(x == 0))
    check(engine, f"neg.s{bits} {{d}}, {{a}};", bits, lambda x, y, z: -x)
    check(engine, f"abs.s{bits} {{d}}, {{a}};", bits, lambda x, y, z: abs(signed(x, bits)))


@pytest.mark.parametrize("table", [0x00, 0x80, 0xE8, 0x96, 0xCA, 0x1B, 0xFF])
def test_lop3_is_its_truth_table(engine: Any, table: int) -> None:
    def expected(x: int, y: int, z: int) -> int:
        bits = ((x >> k & 1) << 2 | (y >> k & 1) << 1 | (z >> k & 1) for k in range(32))
        return sum((table >> index & 1) << k for k, index in enumerate(bits))

    check(engine, f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table};", 32, expected)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(
    ("position", "length"), [(0, 0), (0, 8), (5, 13), (31, 1), (31, 9), (40, 4), (0, 255), (3, 64)]
)
def test_bit_fields(engine: Any, bits: int, position: int, length: int) -> None:
    def extract(value: int, sign: bool) -> int:
        if length == 0:
            return 0
        value = signed(value, bits) if sign else value
        top = min(position + length - 1, bits - 1)
        field = (value >> position if position < bits else (-1 if sign and value < 0 else 0)) % (1 << length)
        return field - (1 << length) if sign and value >> top & 1 and field >> (length - 1) & 1 else field

    def insert(source: int, into: int) -> int:
        mask = ((1 << length) - 1) << position
        return (into & ~mask) | (source << position & mask)

    for sign in ("u", "s"):
        text = f"bfe.{sign}{bits} {{d}}, {{a}}, {position}, {length};"
        check(engine, text, bits, lambda x, y, z, sign=sign: extract(x, sign == "s"))  # type: ignore[misc]
    text = f"bfi.b{bits} {{d}}, {{a}}, {{b}}, {position}, {length};"
    check(engine, text, bits, lambda x, y, z: insert(x, y))


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_bits(engine: Any, bits: int) -> None:
    check(engine, f"popc.b{bits} {{d}}, {{a}};", bits, lambda x, y, z: x.bit_count(), out=32)
    check(engine, f"clz.b{bits} {{d}}, {{a}};", bits, lambda x, y, z: bits - x.bit_length(), out=32)
    check(engine, f"brev.b{bits} {{d}}, {{a}};", bits, lambda x, y, z: int(f"{x:0{bits}b}"[::-1], 2))
    check(engine, f"bfind.u{bits} {{d}}, {{a}};", bits, lambda x, y, z: x.bit_length() - 1, out=32)

    def flipped(x: int) -> int:
        return x if x >> (bits - 1) == 0 else ~x % (1 << bits)

    check(engine, f"bfind.s{bits} {{d}}, {{a}};", bits, lambda x, y, z: flipped(x).bit_length() - 1, out=32)
    check(
        engine,
        f"bfind.shiftamt.u{bits} {{d}}, {{a}};",
        bits,
        lambda x, y, z: bits - x.bit_length() if x else -1,
        out=32,
    )


@pytest.mark.parametrize("mode", ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_prmt_modes(engine: Any, mode: str) -> None:
    tables = {
        "f4e": ["3210", "4321", "5432", "6543"], "b4e": ["5670", "6701", "7012", "0123"],
        "rc8": ["0000", "1111", "2222", "3333"], "ecl": ["3210", "3211", "3222", "3333"],
        "ecr": ["0000", "1110", "2210", "3210"], "rc16": ["1010", "3232", "1010", "3232"],
    }  # fmt: skip

    def expected(x: int, y: int, z: int) -> int:
        source = struct.pack("<II", x, y)
        return int.from_bytes(bytes(source[int(s)] for s in reversed(tables[mode][z & 3])), "little")

    check(engine, f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}};", 32, expected)


@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"])
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", ["u", "s"])
def test_integer_comparisons(engine: Any, comparison: str, bits: int, sign: str) -> None:
    if comparison in ("lo", "ls", "hi", "hs") and sign == "s":
        pytest.skip("unsigned by name")
    view: Callable[[int], int] = (lambda v: signed(v, bits)) if sign == "s" else (lambda v: v)
    compare: dict[str, Callable[[int, int], bool]] = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
        "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y, "lo": lambda x, y: x < y, "ls": lambda x, y: x <= y,
        "hi": lambda x, y: x > y, "hs": lambda x, y: x >= y,
    }  # fmt: skip
    text = f"setp.{comparison}.{sign}{bits} %p2, {{a}}, {{b}}; selp.b32 {{d}}, 5, 9, %p2;"
    holds = compare[comparison]
    check(engine, text, bits, lambda x, y, z: 5 if holds(view(x), view(y)) else 9, out=32)


REALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1.5,
    3.0,
    1e-40,
    -1e-40,
    1.1754944e-38,
    3.4e38,
    -3.4e38,
    math.inf,
    -math.inf,
    math.nan,
    0.1,
]


def _reals(dtype: str) -> tuple[Any, Any, Any]:
    pairs = [(x, y) for x in REALS for y in REALS]
    a, b = (np.array([pair[i] for pair in pairs], dtype) for i in range(2))
    return a, b, np.roll(a, 5)


def run_real(engine: Any, text: str, dtype: str, out: str = "") -> tuple[Any, Any, Any, Any]:
    a, b, c = _reals(dtype)
    bits = f"u{a.dtype.itemsize}"
    result = np.zeros(a.size, f"u{np.dtype(out or dtype).itemsize}")
    got = run_ternary(engine, text, a.view(bits), b.view(bits), c.view(bits), result)
    return a, b, c, got.view(out or dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_real_comparisons_order_nan_as_the_name_says(engine: Any, dtype: str) -> None:
    t = "f32" if dtype == "f4" else "f64"
    ordered: dict[str, Callable[[Any, Any], Any]] = {
        "eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    }  # fmt: skip
    for name, compare in ordered.items():
        for suffix in ("", "u"):
            text = f"setp.{name}{suffix}.{t} %p2, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p2;"
            a, b, _, got = run_real(engine, text, dtype, "u4")
            unordered = np.isnan(a) | np.isnan(b)
            np.testing.assert_array_equal(got.astype(bool), compare(a, b) | (unordered if suffix else False))
    for name, want in (("ne", "ordered"), ("neu", "any"), ("num", "num"), ("nan", "nan")):
        a, b, _, got = run_real(
            engine, f"setp.{name}.{t} %p2, {{a}}, {{b}}; selp.b32 {{d}}, 1, 0, %p2;", dtype, "u4"
        )
        unordered = np.isnan(a) | np.isnan(b)
        expected = {"ordered": (a != b) & ~unordered, "any": a != b, "num": ~unordered, "nan": unordered}[
            want
        ]
        np.testing.assert_array_equal(got.astype(bool), expected)


def same_bits(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    kept = ~np.isnan(want)
    bits = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got[kept].view(bits), want.astype(got.dtype)[kept].view(bits))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "div"])
def test_ieee_arithmetic_is_exact_to_the_sign_of_zero(engine: Any, opcode: str, dtype: str) -> None:
    text = f"{opcode}.rn.{'f32' if dtype == 'f4' else 'f64'} {{d}}, {{a}}, {{b}};"
    a, b, _, got = run_real(engine, text, dtype)
    with np.errstate(all="ignore"):
        same_bits(got, {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[opcode])
    if dtype == "f4":  # the number that cards make where there is none
        assert set(got[np.isnan(got)].view("u4").tolist()) == {0x7FFFFFFF}


def test_flushing_takes_subnormal_operands_and_results_for_zero(engine: Any) -> None:
    def flush(values: Any) -> Any:
        return np.where(
            np.abs(values) < np.float32(1.1754944e-38), np.copysign(np.float32(0), values), values
        )

    a, b, _, got = run_real(engine, "mul.ftz.f32 {d}, {a}, {b};", "f4")
    with np.errstate(all="ignore"):
        same_bits(got, flush(flush(a) * flush(b)))
    a, b, _, got = run_real(engine, "add.ftz.f32 {d}, {a}, {b};", "f4")
    with np.errstate(all="ignore"):
        same_bits(got, flush(flush(a) + flush(b)))


def test_saturation_clamps_to_the_unit_interval(engine: Any) -> None:
    a, b, _, got = run_real(engine, "add.sat.f32 {d}, {a}, {b};", "f4")
    with np.errstate(all="ignore"):
        total = a + b
    np.testing.assert_array_equal(got, np.where(np.isnan(total), 0, np.clip(total, 0, 1)))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_minimum_and_maximum_prefer_numbers_and_order_zeros(engine: Any, dtype: str) -> None:
    t = "f32" if dtype == "f4" else "f64"
    for opcode, pick in (("min", np.fmin), ("max", np.fmax)):
        a, b, _, got = run_real(engine, f"{opcode}.{t} {{d}}, {{a}}, {{b}};", dtype)
        want = pick(a, b)
        zeros = (a == 0) & (b == 0)
        negative = (np.signbit(a) | np.signbit(b)) if opcode == "min" else (np.signbit(a) & np.signbit(b))
        want = np.where(zeros, np.where(negative, -0.0, 0.0), want).astype(dtype)
        same_bits(got, want)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fma_rounds_once(engine: Any, dtype: str) -> None:
    rng = np.random.default_rng(5)
    a = (1 + rng.integers(0, 2**12, 4096) * 2.0 ** (-12 if dtype == "f4" else -27)).astype(dtype)
    b = (1 + rng.integers(0, 2**12, 4096) * 2.0 ** (-12 if dtype == "f4" else -27)).astype(dtype)
    c = (-(a.astype("f8") * b.astype("f8"))).astype(dtype) * rng.choice(
        np.array([1, 2.0**-24, 0.5], dtype), 4096
    )
    bits = f"u{a.dtype.itemsize}"
    text = f"fma.rn.{'f32' if dtype == 'f4' else 'f64'} {{d}}, {{a}}, {{b}}, {{c}};"
    got = run_ternary(engine, text, a.view(bits), b.view(bits), c.view(bits), np.zeros(4096, bits)).view(
        dtype
    )
    scale = 2**300

    def exact(value: float) -> int:
        numerator, denominator = float(value).as_integer_ratio()
        return numerator * scale // denominator

    for x, y, z, g in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
        total = exact(x) * exact(y) // scale + exact(z)
        want = total / scale if dtype == "f8" else float(_single(total, scale))
        assert g == want, (x, y, z)


def _single(numerator: int, denominator: int) -> np.float32:
    """numerator / denominator rounded to f32 once: by hand, as double would round first."""
    if numerator == 0:
        return np.float32(0)
    near = np.float32(numerator / denominator)
    candidates = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]

    def distance(candidate: np.float32) -> tuple[int, int]:
        n, d = float(candidate).as_integer_ratio()
        return abs(numerator * d - n * denominator) * (denominator // d) // denominator, int(
            candidate.view("u4")
        ) & 1

    return min(candidates, key=distance)


@pytest.mark.parametrize(
    ("form", "function", "low", "high"),
    [
        ("ex2.approx.f32", np.exp2, -120, 120), ("lg2.approx.f32", np.log2, 1e-30, 1e30),
        ("rcp.approx.f32", np.reciprocal, 1e-30, 1e30), ("sqrt.approx.f32", np.sqrt, 1e-30, 1e30),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), 1e-30, 1e30), ("sin.approx.f32", np.sin, -3, 3),
        ("cos.approx.f32", np.cos, -1.5, 1.5), ("tanh.approx.f32", np.tanh, -4, 4),
    ],
)  # fmt: skip
def test_approximations_are_within_two_units_in_the_last_place(
    engine: Any, form: str, function: Callable[[Any], Any], low: float, high: float
) -> None:
    x = np.linspace(low, high, 4000).astype("f4") if low < 0 else np.geomspace(low, high, 4000).astype("f4")
    bits = x.view("u4")
    got = run_ternary(engine, f"{form} {{d}}, {{a}};", bits, bits, bits, np.zeros(x.size, "u4")).view("f4")
    want = function(x.astype("f8"))
    units = np.abs(got - want) / np.spacing(np.abs(want).astype("f4"))
    assert units.max() <= 2


@pytest.mark.parametrize("source", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("target", ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"])
def test_integer_conversions_cut_extend_and_saturate(engine: Any, source: str, target: str) -> None:
    from_bits, to_bits = int(source[1:]), int(target[1:])
    read, register = max(from_bits, 16), max(to_bits, 16)

    def view(value: int) -> int:
        value %= 1 << from_bits
        return signed(value, from_bits) if source[0] == "s" else value

    def extended(value: int) -> int:
        value %= 1 << to_bits
        return signed(value, to_bits) if target[0] == "s" else value

    check(
        engine, f"cvt.{target}.{source} {{d}}, {{a}};", read, lambda x, y, z: extended(view(x)), out=register
    )
    low = -(1 << to_bits - 1) if target[0] == "s" else 0
    high = (1 << to_bits - (target[0] == "s")) - 1
    text = f"cvt.sat.{target}.{source} {{d}}, {{a}};"
    check(engine, text, read, lambda x, y, z: min(max(view(x), low), high), out=register)


def test_packing_and_unpacking(engine: Any) -> None:
    check(
        engine, "mov.b32 {{%h1, %h2}}, {a}; mov.b32 {d}, {{%h2, %h1}};", 32, lambda x, y, z: x >> 16 | x << 16
    )
    check(
        engine,
        "mov.b64 {{%r21, %r22}}, {a}; mov.b64 {d}, {{%r22, %r21}};",
        64,
        lambda x, y, z: x >> 32 | x << 32,
    )
    check(
        engine,
        "mov.b64 {{%h1, %h2, %h3, %h4}}, {a}; mov.b64 {d}, {{%h4, %h3, %h2, %h1}};",
        64,
        lambda x, y, z: sum((x >> 16 * k & 0xFFFF) << 16 * (3 - k) for k in range(4)),
    )
    check(engine, "mov.b64 {{_, %r21}}, {a}; mov.u32 {d}, %r21;", 64, lambda x, y, z: x >> 32, out=32)


def test_special_registers(engine: Any) -> None:
    names = ["tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x",
             "nctaid.y", "nctaid.z", "laneid", "warpid", "nwarpid", "lanemask_eq", "lanemask_lt", "lanemask_le",
             "lanemask_gt", "lanemask_ge", "nsmid"]  # fmt: skip
    body = "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.z; mad.lo.u32 %r1, %r1, 2, %ctaid.y;"
    body += "mad.lo.u32 %r1, %r1, 3, %ctaid.x; mov.u32 %r2, %tid.z; mad.lo.u32 %r2, %r2, 3, %tid.y;"
    body += f"mad.lo.u32 %r2, %r2, 5, %tid.x; mad.lo.u32 %r1, %r1, 60, %r2; mul.wide.u32 %d2, %r1, {4 * len(names)};"
    body += "add.u64 %d1, %d1, %d2;\n"
    body += "".join(
        f"mov.u32 %r3, %{name}; st.global.u32 [%d1+{4 * k}], %r3;\n" for k, name in enumerate(names)
    )
    out = engine.device.put(np.zeros((12, 60, len(names)), "u4"))
    engine.body(body).launch(out, grid=(3, 2, 2), block=(5, 3, 4))
    for block in range(12):
        for thread in range(60):
            lane = thread % 32
            own = 1 << lane
            expected = [thread % 5, thread // 5 % 3, thread // 15, 5, 3, 4, block % 3, block // 3 % 2, block // 6,
                        3, 2, 2, lane, thread // 32, 2, own, own - 1, 2 * own - 1,
                        0xFFFFFFFF & ~(2 * own - 1), 0xFFFFFFFF & ~(own - 1), 4]  # fmt: skip
            assert out.array()[block, thread].tolist() == expected


def test_clocks_go_forward(engine: Any) -> None:
    out = engine.device.put(np.zeros(4, "u8"))
    body = "ld.param.u64 %d1, [out]; mov.u64 %d2, %clock64; mov.u64 %d3, %globaltimer; mov.u32 %r1, 0;\n"
    body += "L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5000; @%p1 bra L;\n"
    body += "mov.u64 %d4, %clock64; mov.u64 %d5, %globaltimer; st.global.v2.u64 [%d1], {%d2, %d3};"
    body += "st.global.v2.u64 [%d1+16], {%d4, %d5};"
    engine.body(body).launch(out)
    clock, timer, later_clock, later_timer = out.array().tolist()
    assert later_clock > clock
    assert later_timer > timer


def test_instructions_are_counted_by_lane(engine: Any) -> None:
    body = "mov.u32 %r1, 1; mov.u32 %r2, %tid.x; setp.lt.u32 %p1, %r2, 5;\n@%p1 add.u32 %r1, %r1, 1;"
    outcome = engine.body(body).launch(0, block=48)
    assert outcome.instructions == 48 * 3 + 5 + 48


@pytest.mark.parametrize("operation", ["and", "or", "xor"])
def test_comparisons_combined_with_a_predicate(engine: Any, operation: str) -> None:
    combine: dict[str, Callable[[bool, bool], bool]] = {
        "and": lambda p, q: p and q,
        "or": lambda p, q: p or q,
        "xor": lambda p, q: p != q,
    }
    text = f"setp.lt.u32 %p3, {{b}}, {{c}}; setp.lt.{operation}.u32 %p1|%p2, {{a}}, {{b}}, !%p3;"
    text += "selp.u32 %r21, 1, 0, %p1; selp.u32 %r22, 2, 0, %p2; add.u32 {d}, %r21, %r22;"
    both = combine[operation]
    check(engine, text, 32, lambda x, y, z: both(x < y, y >= z) + 2 * both(x >= y, y >= z))


@pytest.mark.parametrize("branch", ["brx.idx", "brx.idx.uni"])
def test_a_jump_table(engine: Any, branch: str) -> None:
    text = f"rem.u32 %r21, {{a}}, 3; ts: .branchtargets L0, L1, L2; {branch} %r21, ts;\n"
    text += "L0: mov.u32 {d}, 100; bra E; L1: mov.u32 {d}, 200; bra E; L2: mov.u32 {d}, 300;\nE:"
    check(engine, text, 32, lambda x, y, z: 100 * (x % 3 + 1))


def test_a_comparison_of_halves_may_write_over_the_predicate_it_reads(engine: Any) -> None:
    text = "setp.ne.u32 %p1, 0, 1; setp.lt.and.f16x2 %p1|%p2, {a}, {b}, %p1;"
    text += "selp.u32 %r21, 1, 0, %p1; selp.u32 %r22, 2, 0, %p2; add.u32 {d}, %r21, %r22;"
    halves = np.array([0x3C004000, 0x40003C00, 0x3C003C00, 0x40004000], "u4")  # 1 and 2 in both halves
    other = np.roll(halves, 1)
    got = run_ternary(engine, text, halves, other, other, np.zeros(4, "u4"))
    a, b = (array.view("f2").reshape(-1, 2) for array in (halves, other))
    np.testing.assert_array_equal(got, (a[:, 0] < b[:, 0]) + 2 * (a[:, 1] < b[:, 1]))

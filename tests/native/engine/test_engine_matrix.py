"""mma, wmma, ldmatrix and their like against numpy. Which lane holds what is spelled out here element by element, as
the PTX ISA's figures of fragments have it; the engine has it in tiles."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]
LANES = range(32)


# ---- numbers of every type: as bits in unsigned integers, and as what they stand for ----


def random_bits(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Bits of `kind`, one element each."""
    if kind in ("f16", "bf16", "tf32", "f32", "f64"):
        values = rng.standard_normal(shape)
        if kind == "f64":
            return values.view(np.uint64)
        if kind == "f16":
            return values.astype(np.float16).view(np.uint16)
        bits = values.astype(np.float32).view(np.uint32)
        return (bits >> 16).astype(np.uint16) if kind == "bf16" else bits
    if kind == "e4m3":
        return rng.integers(0, 0x78, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(
            np.uint8
        )
    if kind == "e5m2":
        return rng.integers(0, 0x60, shape).astype(np.uint8) | (rng.integers(0, 2, shape) << 7).astype(
            np.uint8
        )
    if kind == "s32":
        return rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32)
    return rng.integers(0, 1 << BITS[kind], shape).astype(np.uint8)


BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
BITS |= {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}


def value_of(kind: str, bits: Array) -> Array:
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind == "f32":
        return bits.view(np.float32).astype(np.float64)
    if kind == "f64":
        return bits.view(np.float64)
    if kind in ("e4m3", "e5m2"):
        mantissa, bias = (3, 7) if kind == "e4m3" else (2, 15)
        exponent = (bits.astype(np.int64) & 0x7F) >> mantissa
        fraction = (bits & ((1 << mantissa) - 1)) / 2.0**mantissa
        size = np.where(
            exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias)
        )
        return np.where(bits >> 7, -size, size)
    wide = bits.astype(np.int64)
    if kind in ("s8", "s4", "s32"):
        return np.where(wide >> (BITS[kind] - 1), wide - (1 << BITS[kind]), wide)
    return wide


def expected(
    a_kind: str, a: Array, b_kind: str, b: Array, c_kind: str, c: Array, d_kind: str, extra: str
) -> Array:
    """d as bits. Sums of these operands are exact in double, whatever the order."""
    if a_kind == "b1":
        both = a[:, None, :] ^ b.T[None] if "xor" in extra else a[:, None, :] & b.T[None]
        counted: Array = (both.sum(axis=2) + value_of(c_kind, c)).astype(np.int64).astype(np.uint32)
        return counted
    if a_kind == "f64":
        return chain_of_fused(value_of("f64", a), value_of("f64", b), value_of("f64", c)).view(np.uint64)
    total = value_of(a_kind, a) @ value_of(b_kind, b) + value_of(c_kind, c)
    if d_kind == "s32":
        total = np.clip(total, -(2**31), 2**31 - 1) if "satfinite" in extra else total
        return total.astype(np.int64).astype(np.uint32)
    with np.errstate(over="ignore"):
        rounded: Array = total.astype(np.float16 if d_kind == "f16" else np.float32)
    bits: Array = rounded.view(np.uint16 if d_kind == "f16" else np.uint32)
    return bits


def chain_of_fused(a: Array, b: Array, c: Array) -> Array:
    d = c.copy()
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                d[i, j] = float(Fraction(a[i, k]) * Fraction(b[k, j]) + Fraction(d[i, j]))
    return d


# ---- who holds what: element i of a lane (PTX ISA, "Matrix Fragments for mma") ----


def a_place(kind: str, lane: int, i: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    if kind in ("f16", "bf16"):
        return group + 8 * (i // 2 % 2), thread * 2 + (i & 1) + (8 if i >= 4 else 0)
    if kind in ("tf32", "f64"):
        return group + 8 * (i % 2), thread + 4 * (i // 2)
    if kind in ("s8", "u8", "e4m3", "e5m2"):
        return group + 8 * (i // 4 % 2), thread * 4 + (i & 3) + (16 if i >= 8 else 0)
    if kind in ("s4", "u4"):
        return group + 8 * (i // 8 % 2), thread * 8 + (i & 7) + (32 if i >= 16 else 0)
    return group + 8 * (i // 32 % 2), thread * 32 + (i & 31) + (128 if i >= 64 else 0)


def b_place(kind: str, lane: int, i: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    each = 1 if kind == "f64" else 32 // BITS[kind]
    return thread * each + i % each + 4 * each * (i // each), group


def c_place(_kind: str, lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + 8 * (i // 2), lane % 4 * 2 + (i & 1)


def spread(kind: str, matrix: Array, place: Callable[[str, int, int], tuple[int, int]]) -> Array:
    """The registers of each lane, [lane][register]."""
    count = matrix.size // 32
    if kind == "f64":
        return np.array([[matrix[place(kind, lane, i)] for i in range(count)] for lane in LANES], np.uint64)
    each = 32 // BITS[kind]
    registers = np.zeros((32, count // each), np.uint32)
    for lane in LANES:
        for i in range(count):
            registers[lane, i // each] |= np.uint32(
                int(matrix[place(kind, lane, i)]) << i % each * BITS[kind]
            )
    return registers


def gathered(kind: str, registers: Array, shape: tuple[int, int]) -> Array:
    matrix = np.zeros(shape, np.uint64 if kind == "f64" else np.uint32)
    each = 1 if kind == "f64" else 32 // BITS[kind]
    for lane in LANES:
        for i in range(matrix.size // 32):
            bits = int(registers[lane, i // each]) >> i % each * BITS[kind]
            matrix[c_place(kind, lane, i)] = bits & ((1 << BITS[kind]) - 1)
    return matrix.astype(np.uint16) if kind == "f16" else matrix


def multiply(engine: Any, instruction: str, a: Array, b: Array, c: Array) -> Array:
    """One warp: every lane loads its registers, multiplies, and stores those of d, over c's."""
    wide = a.dtype == np.uint64
    letter, size = ("g", 8) if wide else ("r", 4)
    kind = "f64" if wide else "b32"
    body, names, number = "mov.u32 %r39, %tid.x;\n", [], 1
    for index, array in enumerate((a, b, c)):
        count = array.shape[1]
        body += f"ld.param.u64 %d{index + 1}, [p{index}]; mad.wide.u32 %d{index + 1}, %r39, {count * size}, %d{index + 1};\n"
        names.append([f"%{letter}{number + i}" for i in range(count)])
        body += (
            "".join(f"ld.global.{kind} {r}, [%d{index + 1}+{size * i}];" for i, r in enumerate(names[-1]))
            + "\n"
        )
        number += count
    lists = ["{" + ", ".join(part) + "}" for part in names]
    body += f"{instruction} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};\n"
    body += "".join(f"st.global.{kind} [%d3+{size * i}], {r};" for i, r in enumerate(names[2]))
    out = engine.device.put(c)
    module = engine.body(body, parameters=", ".join(f".param .u64 p{i}" for i in range(3)))
    module.launch(engine.device.put(a), engine.device.put(b), out, block=32)
    result: Array = out.array()
    return result


MMA = [
    ("m16n8k8", "f16", "f16", "f16", "f16", ""),
    ("m16n8k8", "f32", "f16", "f16", "f32", ""),
    ("m16n8k16", "f16", "f16", "f16", "f16", ""),
    ("m16n8k16", "f32", "f16", "f16", "f32", ""),
    ("m16n8k8", "f32", "bf16", "bf16", "f32", ""),
    ("m16n8k16", "f32", "bf16", "bf16", "f32", ""),
    ("m16n8k4", "f32", "tf32", "tf32", "f32", ""),
    ("m16n8k8", "f32", "tf32", "tf32", "f32", ""),
    ("m16n8k16", "f32", "e4m3", "e5m2", "f32", ""),
    ("m16n8k32", "f32", "e5m2", "e4m3", "f32", ""),
    ("m16n8k32", "f16", "e4m3", "e4m3", "f16", ""),
    ("m8n8k16", "s32", "s8", "u8", "s32", ""),
    ("m16n8k16", "s32", "u8", "s8", "s32", "satfinite"),
    ("m16n8k32", "s32", "s8", "s8", "s32", ""),
    ("m16n8k32", "s32", "u8", "u8", "s32", "satfinite"),
    ("m8n8k32", "s32", "s4", "u4", "s32", ""),
    ("m16n8k32", "s32", "u4", "u4", "s32", ""),
    ("m16n8k64", "s32", "s4", "s4", "s32", "satfinite"),
    ("m8n8k128", "s32", "b1", "b1", "s32", "xor.popc"),
    ("m16n8k128", "s32", "b1", "b1", "s32", "and.popc"),
    ("m16n8k256", "s32", "b1", "b1", "s32", "xor.popc"),
    ("m8n8k4", "f64", "f64", "f64", "f64", ""),
    ("m16n8k4", "f64", "f64", "f64", "f64", ""),
    ("m16n8k8", "f64", "f64", "f64", "f64", ""),
    ("m16n8k16", "f64", "f64", "f64", "f64", ""),
]


def extents(shape: str) -> tuple[int, int, int]:
    m, n, k = shape.replace("m", "").replace("n", " ").replace("k", " ").split()
    return int(m), int(n), int(k)


@pytest.mark.parametrize(("shape", "d", "a", "b", "c", "extra"), MMA, ids=lambda v: str(v))
def test_mma_multiplies_the_fragments_of_the_isa(
    engine: Any, shape: str, d: str, a: str, b: str, c: str, extra: str
) -> None:
    m, n, k = extents(shape)
    rng = np.random.default_rng(m * 1000 + k)
    left, right, sum_ = random_bits(a, (m, k), rng), random_bits(b, (k, n), rng), random_bits(c, (m, n), rng)
    if c == "s32":  # so that some sums leave the range
        sum_[0] = [0x7FFFFFFF, 0x7FFFFFF0, 0x80000000, 0x80000005, 0, 1, 0xFFFFFFFF, 0x7FFFFFFE]
    saturate, operation = (".satfinite", "") if extra == "satfinite" else ("", f".{extra}" if extra else "")
    got = multiply(
        engine,
        f"mma.sync.aligned.{shape}.row.col{saturate}.{d}.{a}.{b}.{c}{operation}",
        spread(a, left, a_place),
        spread(b, right, b_place),
        spread(c, sum_, c_place),
    )
    want = expected(a, left, b, right, c, sum_, d, extra)
    np.testing.assert_array_equal(gathered(d, got, (m, n)), want)


# ---- what a sum must be where it is no plain number ----


def one_sum(engine: Any, kind: str, a: list[int], b: list[int], c: int, *, d: str = "f32") -> int:
    """Row 0 of a times column 0 of b, as bits."""
    k = 16 if BITS[kind] == 16 else 8
    left = np.zeros((16, k), np.uint16 if BITS[kind] == 16 else np.uint32)
    right, sum_ = np.zeros((k, 8), left.dtype), np.zeros((16, 8), np.uint16 if d == "f16" else np.uint32)
    left[0, : len(a)], right[: len(b), 0], sum_[0, 0] = a, b, c
    text = f"mma.sync.aligned.m16n8k{k}.row.col.{d}.{kind}.{kind}.{d}"
    got = multiply(
        engine, text, spread(kind, left, a_place), spread(kind, right, b_place), spread(d, sum_, c_place)
    )
    return int(gathered(d, got, (16, 8))[0, 0])


ONE, INF, NAN = 0x3C00, 0x7C00, 0x7E00


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        ([NAN], [ONE], 0, 0x7FFFFFFF),
        ([INF], [0], 0, 0x7FFFFFFF),
        ([INF, 0xFC00], [ONE, ONE], 0, 0x7FFFFFFF),
        ([INF], [ONE], 0, 0x7F800000),
        ([0xFC00], [ONE], 0x3F800000, 0xFF800000),
        ([1], [ONE], 0, 0x33800000),  # the least subnormal counts
        ([1], [1], 0, 0x27800000),
        ([0x7BFF], [0x7BFF], 0x7F7FFFFF, 0x7F7FFFFF),
        ([ONE], [ONE], 0x4B800000, 0x4B800000),  # 2^24 + 1 is half way: to even
        ([ONE, 1], [ONE, ONE], 0x4B800000, 0x4B800001),  # 2^24 + 1 + a little: up
        ([ONE, 0xBC00], [ONE, ONE], 0x33000000, 0x33000000),  # 1 - 1 + 2^-25: nothing is lost on the way
    ],
)
def test_a_sum_of_f16_products_rounds_once_and_keeps_what_is_special(
    engine: Any, a: list[int], b: list[int], c: int, want: int
) -> None:
    assert hex(one_sum(engine, "f16", a, b, c)) == hex(want)


@pytest.mark.parametrize(
    ("a", "c", "want"),
    [([0x7BFF], 0x7BFF, 0x7C00), ([NAN], 0, 0x7FFF), ([ONE, 0x1000], 0, 0x3C00), ([ONE, 0x1001], 0, 0x3C01)],
)
def test_a_sum_in_f16_rounds_once(engine: Any, a: list[int], c: int, want: int) -> None:
    assert hex(one_sum(engine, "f16", a, [ONE, ONE], c, d="f16")) == hex(want)


def test_tf32_ignores_the_low_thirteen_bits(engine: Any) -> None:
    assert one_sum(engine, "tf32", [0x3F801FFF], [0x40001FFF], 0) == 0x40000000


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_8_bit_float_is_what_it_stands_for(engine: Any, kind: str) -> None:
    right, c = np.zeros((32, 8), np.uint8), np.zeros((16, 8), np.uint32)
    right[np.arange(8), np.arange(8)] = 0x38 if kind == "e4m3" else 0x3C
    for first in (0, 128):
        bytes_ = np.arange(first, first + 128).astype(np.uint8).reshape(16, 8)
        registers = spread(kind, np.pad(bytes_, ((0, 0), (0, 24))), a_place), spread(kind, right, b_place)
        text = f"mma.sync.aligned.m16n8k32.row.col.f32.{kind}.{kind}.f32"
        got = gathered("f32", multiply(engine, text, *registers, spread("f32", c, c_place)), (16, 8)).view(
            np.float32
        )
        special = bytes_ & 0x7F > (0x7E if kind == "e4m3" else 0x7B)
        usual = ~special.any(axis=1)  # 0 times NaN is in the sums beside it
        np.testing.assert_array_equal(got[usual], value_of(kind, bytes_)[usual])
        assert not np.isfinite(got[special]).any()


# ---- ldmatrix, stmatrix, movmatrix ----


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_and_stmatrix_move_matrices_of_eight_rows(engine: Any, count: int, transposed: bool) -> None:
    """Rows lie anywhere in shared memory, in any order; the register of lane l has elements 2 (l % 4) and the next
    of row l / 4, or of the column when transposed. What was loaded is stored back at another place."""
    rng = np.random.default_rng(7)
    memory = rng.integers(0, 1 << 16, 8 * 8 * 8).astype(np.uint16)  # 64 rows
    order = rng.permutation(64)[:32].astype(np.uint32)
    names = ", ".join(f"%r{20 + i}" for i in range(count))
    trans = ".trans" if transposed else ""
    body = f"""
    mov.u32 %r1, %tid.x; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [order]; ld.param.u64 %d3, [out]; ld.param.u64 %d4, [back];
    mul.lo.u32 %r2, %r1, 32; cvt.u64.u32 %d5, %r2; add.u64 %d6, %d1, %d5; mov.u32 %r3, tile; add.u32 %r4, %r3, %r2;
    ld.global.v4.u32 {{%r5,%r6,%r7,%r8}}, [%d6]; st.shared.v4.u32 [%r4], {{%r5,%r6,%r7,%r8}};
    ld.global.v4.u32 {{%r5,%r6,%r7,%r8}}, [%d6+16]; st.shared.v4.u32 [%r4+16], {{%r5,%r6,%r7,%r8}};
    bar.sync 0;
    mad.wide.u32 %d7, %r1, 4, %d2; ld.global.u32 %r9, [%d7]; mad.lo.u32 %r10, %r9, 16, %r3;
    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%r10];
    mad.wide.u32 %d8, %r1, {4 * count}, %d3;
    {"".join(f"st.global.u32 [%d8+{4 * i}], %r{20 + i};" for i in range(count))}
    mad.lo.u32 %r11, %r1, 16, %r3; cvt.u64.u32 %d9, %r11; cvta.shared.u64 %d9, %d9;
    stmatrix.sync.aligned.m8n8.x{count}{trans}.b16 [%d9+1024], {{{names}}};
    bar.sync 0;
    ld.shared.v4.u32 {{%r5,%r6,%r7,%r8}}, [%r11+1024]; mad.wide.u32 %d8, %r1, 16, %d4; st.global.v4.u32 [%d8], {{%r5,%r6,%r7,%r8}};
    """
    module = engine.body(
        body,
        parameters=".param .u64 in, .param .u64 order, .param .u64 out, .param .u64 back",
        before=".shared .align 16 .b8 tile[1536];",
    )
    out = engine.device.put(np.zeros((32, count), np.uint32))
    back = engine.device.put(np.zeros((32, 8), np.uint16))
    module.launch(engine.device.put(memory), engine.device.put(order), out, back, block=32)
    rows = memory.reshape(64, 8)[order]
    for i in range(count):
        matrix = rows[8 * i : 8 * i + 8]
        matrix = matrix.T if transposed else matrix
        for lane in LANES:
            low, high = matrix[lane // 4, lane % 4 * 2], matrix[lane // 4, lane % 4 * 2 + 1]
            assert out.array()[lane, i] == int(low) | int(high) << 16
    np.testing.assert_array_equal(back.array()[: 8 * count], rows[: 8 * count])


def test_movmatrix_transposes_across_the_lanes(engine: Any) -> None:
    data = np.arange(64, dtype=np.uint16)
    body = "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r2, [%d1];"
    body += "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r2; st.global.u32 [%d1], %r2;"
    out = engine.device.put(data)
    engine.body(body).launch(out, block=32)
    np.testing.assert_array_equal(out.array().reshape(8, 8), data.reshape(8, 8).T)


# ---- wmma: fragments have no documented layout, so it is load, multiply, store ----

WMMA = [
    *((shape, "f32", "f16", "f32") for shape in ("m16n16k16", "m32n8k16", "m8n32k16")),
    ("m16n16k16", "f16", "f16", "f16"),
    ("m8n32k16", "f16", "f16", "f32"),
    ("m32n8k16", "f32", "f16", "f16"),
    *((shape, "f32", "bf16", "f32") for shape in ("m16n16k16", "m32n8k16", "m8n32k16")),
    ("m16n16k8", "f32", "tf32", "f32"),
    *(
        (shape, "s32", kind, "s32")
        for shape in ("m16n16k16", "m32n8k16", "m8n32k16")
        for kind in ("s8", "u8")
    ),
    ("m8n8k4", "f64", "f64", "f64"),
]
# Registers of each fragment (PTX ISA, "Matrix Fragments for WMMA").
FRAGMENT = {("m16n16k16", "bf16"): (4, 4), ("m32n8k16", "bf16"): (8, 2), ("m8n32k16", "bf16"): (2, 8)}
FRAGMENT |= {("m16n16k16", k): (2, 2) for k in ("s8", "u8")} | {("m32n8k16", k): (4, 1) for k in ("s8", "u8")}
FRAGMENT |= {("m8n32k16", k): (1, 4) for k in ("s8", "u8")} | {
    ("m16n16k8", "tf32"): (4, 4),
    ("m8n8k4", "f64"): (1, 1),
}


def wmma_text(
    shape: str, d: str, kind: str, c: str, layouts: tuple[str, str, str], strides: list[int], extra: str
) -> str:
    letter = {"f16": "h", "f32": "x", "s32": "y", "f64": "w"}
    counts = [
        *FRAGMENT.get((shape, kind), (8, 8)),
        *(4 if t == "f16" else 2 if t == "f64" else 8 for t in (c, d)),
    ]
    if kind in ("s4", "b1", "u4"):
        counts = [1, 1, 2, 2]
    files = ["w" if kind == "f64" else "h"] * 2 + [letter[c], letter[d]]
    a, b, sum_, result = (
        "{" + ", ".join(f"%{file}{20 * n + i}" for i in range(count)) + "}"
        for n, (file, count) in enumerate(zip(files, counts, strict=True))
    )
    types = f"{d}.{c}" if kind == "f16" else f"{d}.{kind}.{kind}.{c}"
    head, tail = ("xor.popc.", "") if kind == "b1" else ("", extra)
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
.reg .b32 %h<100>; .reg .f32 %x<100>; .reg .s32 %y<100>; .reg .f64 %w<100>; .reg .b64 %p<9>; .reg .b32 %s<9>;
ld.param.u64 %p1, [a]; ld.param.u64 %p2, [b]; ld.param.u64 %p3, [c]; ld.param.u64 %p4, [d]; cvta.to.global.u64 %p1, %p1;
mov.u32 %s1, {strides[0]};
wmma.load.a.sync.aligned.{layouts[0]}.{shape}.global.{kind} {a}, [%p1], %s1;
wmma.load.b.sync.aligned.{layouts[1]}.{shape}.{kind} {b}, [%p2], {strides[1]};
wmma.load.c.sync.aligned.{layouts[2]}.{shape}.global.{c} {sum_}, [%p3], {strides[2]};
wmma.mma.{head}sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types}{tail} {result}, {a}, {b}, {sum_};
wmma.store.d.sync.aligned.{layouts[2]}.{shape}.global.{d} [%p4], {result}, {strides[2]};
ret; }}"""


def laid_out(matrix: Array, layout: str, stride: int) -> Array:
    """Lines of `stride` elements, the rest of each filled with what must not be read."""
    lines = matrix if layout == "row" else matrix.T
    memory = np.full((lines.shape[0], stride), 0x5A, matrix.dtype)
    memory[:, : lines.shape[1]] = lines
    return memory


def picked(memory: Array, layout: str, shape: tuple[int, int]) -> Array:
    return memory[:, : shape[1]] if layout == "row" else memory[:, : shape[0]].T


@pytest.mark.parametrize(
    "layouts", [("row", "col", "row"), ("col", "row", "col"), ("row", "row", "col")], ids="-".join
)
@pytest.mark.parametrize(("shape", "d", "kind", "c"), WMMA, ids=lambda v: str(v))
def test_wmma_loads_multiplies_and_stores(
    engine: Any, shape: str, d: str, kind: str, c: str, layouts: tuple[str, str, str]
) -> None:
    m, n, k = extents(shape)
    rng = np.random.default_rng(m + n)
    a, b, sum_ = random_bits(kind, (m, k), rng), random_bits(kind, (k, n), rng), random_bits(c, (m, n), rng)
    strides = [48, 64, 40]
    parts = [
        laid_out(part, layout, s) for part, layout, s in zip((a, b, sum_), layouts, strides, strict=True)
    ]
    want = expected(kind, a, kind, b, c, sum_, d, "")
    result = np.zeros_like(parts[2], dtype=want.dtype)
    out = engine.device.put(result)
    module = engine.module(wmma_text(shape, d, kind, c, layouts, strides, ""))
    module.launch(*(engine.device.put(part) for part in parts), out, block=32)
    np.testing.assert_array_equal(picked(out.array(), layouts[2], (m, n)), want)
    width = n if layouts[2] == "row" else m
    assert not out.array()[:, width:].any()


@pytest.mark.parametrize(("shape", "kind"), [("m8n8k32", "s4"), ("m8n8k32", "u4"), ("m8n8k128", "b1")])
def test_wmma_of_elements_smaller_than_a_byte(engine: Any, shape: str, kind: str) -> None:
    m, n, k = extents(shape)
    rng = np.random.default_rng(k)
    a, b, sum_ = (
        random_bits(kind, (m, k), rng),
        random_bits(kind, (k, n), rng),
        random_bits("s32", (m, n), rng),
    )

    def packed(lines: Array) -> Array:
        bits = np.unpackbits(lines[..., None], axis=2, bitorder="little")[..., : BITS[kind]]
        return np.packbits(bits.reshape(lines.shape[0], -1), axis=1, bitorder="little")

    out = engine.device.put(np.zeros((m, n), np.uint32))
    module = engine.module(wmma_text(shape, "s32", kind, "s32", ("row", "col", "row"), [k, k, n], ""))
    module.launch(*(engine.device.put(part) for part in (packed(a), packed(b.T), sum_)), out, block=32)
    np.testing.assert_array_equal(out.array(), expected(kind, a, kind, b, "s32", sum_, "s32", "xor"))


# ---- faults and refusals ----


def test_part_of_a_warp_is_a_fault(engine: Any) -> None:
    module = engine.body("mov.u32 %r1, 0; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;")
    outcome = module.run(0, block=20)
    assert outcome.status == engine.TRAP
    assert "needs all 32 threads of the warp" in outcome.message


def test_lanes_that_come_later_are_waited_for(engine: Any) -> None:
    data = np.arange(64, dtype=np.uint16)
    body = """mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r1, 4, %d1; ld.global.u32 %r2, [%d1];
    setp.lt.u32 %p1, %r1, 9; @%p1 bra there; xor.b32 %r2, %r2, 0; there:
    movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r2; st.global.u32 [%d1], %r2;"""
    out = engine.device.put(data)
    engine.body(body).launch(out, block=32)
    np.testing.assert_array_equal(out.array().reshape(8, 8), data.reshape(8, 8).T)


@pytest.mark.parametrize(
    ("address", "status"), [(8, "MISALIGNED"), (1024, "ILLEGAL_ADDRESS"), (1024 - 16 * 31, "ILLEGAL_ADDRESS")]
)
@pytest.mark.parametrize(
    "instruction",
    [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1,%r2,%r3,%r4};",
    ],
)
def test_rows_outside_shared_memory_are_faults(
    engine: Any, instruction: str, address: int, status: str
) -> None:
    body = f"mov.u32 %r5, %tid.x; mad.lo.u32 %r5, %r5, 16, {address}; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; {instruction}"
    outcome = engine.body(body, before=".shared .align 16 .b8 tile[1024];").run(0, block=32)
    assert outcome.status == getattr(engine, status)


@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_a_wmma_matrix_outside_its_buffer_is_a_fault(engine: Any, part: int) -> None:
    sizes = [512, 512, 1024, 1024]
    sizes[part] -= 8
    module = engine.module(
        wmma_text("m16n16k16", "f32", "f16", "f32", ("row", "col", "row"), [16, 16, 16], "")
    )
    outcome = module.run(*(engine.device.put(np.zeros(size, np.uint8)) for size in sizes), block=32)
    assert outcome.status == engine.ILLEGAL_ADDRESS


@pytest.mark.parametrize(
    "instruction",
    [
        "mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r7, 0;",
        "mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64 {%g1,%g2}, {%g3}, {%g4}, {%g1,%g2};",
        "wgmma.mma_async.sync.aligned.m64n20k16.f32.f16.f16 {%f1}, %d1, %d2, %p1, 1, 1, 0, 0;",
    ],
)
def test_forms_that_do_not_run_are_refused_by_name(engine: Any, instruction: str) -> None:
    module = engine.body(instruction)
    outcome = module.run(0, block=32)
    assert outcome.status == engine.UNSUPPORTED
    assert instruction.split()[0] in outcome.message


@pytest.mark.parametrize("registers", ["{%r1,%r2,%r3}", "{%r1,%r2,%r3,%r4,%r5}", "%r1"])
def test_a_wrong_number_of_registers_does_not_verify(engine: Any, registers: str) -> None:
    with pytest.raises(engine.LoadError, match="registers where"):
        engine.body(
            f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f1,%f2,%f3,%f4}}, {registers}, {{%r5,%r6}}, {{%f1,%f2,%f3,%f4}};"
        )

"""wgmma.mma_async: four warps, matrices in shared memory behind descriptors, against numpy.

Where an element lies is written here as CUTLASS has the canonical layouts (cute, mma_sm90_desc.hpp), in
units of 16 bytes: K-major ((8,n),2):((W,SBO),1 or LBO), MN-major ((W,n),(8,k)):((1,LBO),(W,SBO)), then bits
4.. of the address XORed with bits 7.. of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.native.engine.test_engine_matrix import (
    BITS,
    LANES,
    Array,
    a_place,
    c_place,
    expected,
    extents,
    random_bits,
    spread,
)

SHARED = 96 * 1024
A_AT, B_AT = 1024, 32768
# swizzle bytes -> (descriptor's code, units of 16 bytes a line)
SWIZZLES = {0: (0, 1), 128: (1, 8), 64: (2, 4), 32: (3, 2)}


def swizzle(address: int, units: int) -> int:
    return address ^ ((address >> 7) & (units - 1)) << 4


def place(matrix: Array, bits: int, at: int, swizzled: int, across: bool, memory: Array) -> int:
    """Rows of `matrix` (m or n) by k into `memory`; returns the descriptor."""
    code, units = SWIZZLES[swizzled]
    size, (rows, depth) = bits // 8, matrix.shape
    per_unit = 16 // size
    if not across:
        stride = 8 * units * 16 * 2 if units == 1 else 8 * units * 16
        leading = 128 if units == 1 else 16
    else:
        groups = -(-rows // (per_unit * units))
        core = 8 * units * 16
        # along rows the cores follow one another; a group of eight k's comes after all of them
        along, down = core, core * groups
        leading, stride = (down, along) if units == 1 else (along, down)
    for row in range(rows):
        for k in range(depth):
            if not across:
                unit, rest = divmod(k * size, 16)
                address = (
                    row % 8 * units * 16 + row // 8 * stride + unit * (leading if units == 1 else 16) + rest
                )
            else:
                unit, rest = divmod(row * size, 16)
                address = unit % units * 16 + unit // units * (stride if units == 1 else leading)
                address += k % 8 * units * 16 + k // 8 * (leading if units == 1 else stride) + rest
            address = swizzle(at + address, units)
            memory[address : address + size] = np.frombuffer(matrix[row, k].tobytes(), np.uint8)
    return at >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | code << 62


def kernel(form: str, registers: int, a: str, tail: str, loads: str = "") -> str:
    """Shared memory comes from global memory; d is read from it and written back, thread after thread."""
    d = ", ".join(f"%d{i}" for i in range(registers))
    read = "".join(f"ld.global.b32 %d{i}, [%p3+{4 * i}];" for i in range(registers))
    written = "".join(f"st.global.b32 [%p3+{4 * i}], %d{i};" for i in range(registers))
    return f""".version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 image, .param .u64 d, .param .u64 a, .param .u64 desc_a, .param .u64 desc_b,
                  .param .u32 keep) {{
.reg .b32 %d<130>; .reg .b32 %r<20>; .reg .b64 %p<20>; .reg .pred %q<3>;
mov.u32 %r1, %tid.x; ld.param.u64 %p1, [image]; ld.param.u64 %p2, [d]; ld.param.u64 %p4, [a];
ld.param.u64 %p5, [desc_a]; ld.param.u64 %p6, [desc_b]; ld.param.u32 %r2, [keep]; setp.ne.u32 %q1, %r2, 0;
mov.u32 %r3, tile; shl.b32 %r4, %r1, 4;
copy:
cvt.u64.u32 %p7, %r4; add.u64 %p7, %p1, %p7; ld.global.v4.b32 {{%r5, %r6, %r7, %r8}}, [%p7];
add.u32 %r9, %r3, %r4; st.shared.v4.b32 [%r9], {{%r5, %r6, %r7, %r8}};
add.u32 %r4, %r4, 2048; setp.lt.u32 %q2, %r4, {SHARED}; @%q2 bra copy;
mad.wide.u32 %p3, %r1, {4 * registers}, %p2; {read}
mad.wide.u32 %p4, %r1, 16, %p4; {loads}
fence.proxy.async.shared::cta;
bar.sync 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.{form} {{{d}}}, {a}, %p6, %q1{tail};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{written}
ret; }}"""


def run(
    engine: Any, text: str, image: Array, d: Array, a: Array, descriptors: tuple[int, int], keep: int = 1
) -> Array:
    out = engine.device.put(d)
    module = engine.module(text)
    module.launch(
        engine.device.put(image), out, engine.device.put(a), *descriptors, keep, block=128, shared=SHARED
    )
    result: Array = out.array()
    return result


def spread_over_warps(kind: str, matrix: Array) -> Array:
    return np.concatenate([spread(kind, matrix[16 * w : 16 * w + 16], c_place_wide) for w in range(4)])


def c_place_wide(_kind: str, lane: int, i: int) -> tuple[int, int]:
    """The accumulator of wgmma: eight columns after eight (PTX ISA, "Register fragments for wgmma")."""
    row, column = c_place(_kind, lane, i % 4)
    return row, column + 8 * (i // 4)


def gathered_from_warps(kind: str, registers: Array, n: int) -> Array:
    matrix = np.zeros((64, n), np.uint32)
    each = 32 // BITS[kind]
    for w in range(4):
        for lane in LANES:
            for i in range(16 * n // 32):
                row, column = c_place_wide(kind, lane, i)
                bits = int(registers[32 * w + lane, i // each]) >> i % each * BITS[kind]
                matrix[16 * w + row, column] = bits & ((1 << BITS[kind]) - 1)
    return matrix.astype(np.uint16) if kind == "f16" else matrix


CASES = [
    # shape, d, a, b, swizzle of a, of b, a across, b across
    ("m64n8k16", "f32", "f16", "f16", 0, 0, False, False),
    ("m64n64k16", "f32", "f16", "f16", 64, 128, False, True),
    ("m64n64k16", "f32", "f16", "f16", 128, 64, True, True),
    ("m64n32k16", "f32", "bf16", "bf16", 0, 0, True, True),
    ("m64n48k16", "f16", "f16", "f16", 32, 32, False, True),
    ("m64n16k16", "f32", "f16", "f16", 32, 128, True, False),
    ("m64n24k8", "f32", "tf32", "tf32", 128, 64, False, False),
    ("m64n40k32", "f32", "e4m3", "e5m2", 64, 32, False, False),
    ("m64n16k32", "f16", "e5m2", "e5m2", 0, 128, False, False),
    ("m64n32k32", "s32", "s8", "u8", 128, 128, False, False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_wgmma_reads_every_layout_of_its_descriptors(engine: Any, case: tuple[Any, ...]) -> None:
    shape, d, a, b, a_swizzle, b_swizzle, a_across, b_across = case
    m, n, k = extents(shape)
    rng = np.random.default_rng(n)
    left, right, sum_ = random_bits(a, (m, k), rng), random_bits(b, (k, n), rng), random_bits(d, (m, n), rng)
    memory = np.full(SHARED, 0x77, np.uint8)
    descriptors = (
        place(left, BITS[a], A_AT, a_swizzle, a_across, memory),
        place(right.T, BITS[b], B_AT, b_swizzle, b_across, memory),
    )
    accumulators = spread_over_warps(d, sum_)
    tail = "" if d == "s32" else f", 1, 1, {int(a_across)}, {int(b_across)}" if BITS[a] == 16 else ", 1, 1"
    text = kernel(f"{shape}.{d}.{a}.{b}", accumulators.shape[1], "%p5", tail)
    got = run(engine, text, memory, accumulators, np.zeros(1, np.uint32), descriptors)
    want = expected(a, left, b, right, d, sum_, d, "")
    np.testing.assert_array_equal(gathered_from_warps(d, got, n), want)


@pytest.mark.parametrize(("kind", "k"), [("f16", 16), ("tf32", 8), ("s8", 32)])
@pytest.mark.parametrize("keep", [0, 1])
def test_wgmma_takes_a_from_registers_and_may_start_from_nothing(
    engine: Any, kind: str, k: int, keep: int
) -> None:
    rng = np.random.default_rng(k)
    d = "s32" if kind == "s8" else "f32"
    left, right, sum_ = (
        random_bits(kind, (64, k), rng),
        random_bits(kind, (k, 16), rng),
        random_bits(d, (64, 16), rng),
    )
    memory = np.zeros(SHARED, np.uint8)
    descriptor = place(right.T, BITS[kind], B_AT, 128, False, memory)
    registers = np.concatenate([spread(kind, left[16 * w : 16 * w + 16], a_place) for w in range(4)])
    loads = "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%p4];"
    tail = {"f16": ", -1, 1, 0", "tf32": ", 1, -1", "s8": ""}[kind]
    text = kernel(f"m64n16k{k}.{d}.{kind}.{kind}", 8, "{%r10, %r11, %r12, %r13}", tail, loads)
    got = run(engine, text, memory, spread_over_warps(d, sum_), registers, (0, descriptor), keep)
    if kind != "s8":  # a negative scale
        left = left ^ left.dtype.type(1 << (BITS[kind] - 1))
    want = expected(kind, left, kind, right, d, sum_ if keep else sum_ * 0, d, "")
    np.testing.assert_array_equal(gathered_from_warps(d, got, 16), want)


def test_wgmma_of_the_widest_shape(engine: Any) -> None:
    rng = np.random.default_rng(1)
    left, right = random_bits("f16", (64, 16), rng), random_bits("f16", (16, 256), rng)
    memory = np.zeros(SHARED, np.uint8)
    descriptors = place(left, 16, A_AT, 128, False, memory), place(right.T, 16, B_AT, 128, True, memory)
    text = kernel("m64n256k16.f32.f16.f16", 128, "%p5", ", 1, 1, 0, 1")
    got = run(engine, text, memory, np.zeros((128, 128), np.uint32), np.zeros(1, np.uint32), descriptors, 0)
    want = expected("f16", left, "f16", right, "f32", np.zeros((64, 256), np.uint32), "f32", "")
    np.testing.assert_array_equal(gathered_from_warps("f32", got, 256), want)


def test_wgmma_of_bits_counts_what_both_have(engine: Any) -> None:
    rng = np.random.default_rng(2)
    left, right = random_bits("b1", (64, 256), rng), random_bits("b1", (256, 16), rng)
    memory, sum_ = np.zeros(SHARED, np.uint8), random_bits("s32", (64, 16), rng)
    rows = [np.packbits(part, axis=1, bitorder="little") for part in (left, right.T)]
    descriptors = place(rows[0], 8, A_AT, 64, False, memory), place(rows[1], 8, B_AT, 128, False, memory)
    text = kernel("m64n16k256.s32.b1.b1.and.popc", 8, "%p5", "")
    got = run(engine, text, memory, spread_over_warps("s32", sum_), np.zeros(1, np.uint32), descriptors)
    want = expected("b1", left, "b1", right, "s32", sum_, "s32", "and")
    np.testing.assert_array_equal(gathered_from_warps("s32", got, 16), want)


@pytest.mark.parametrize(
    ("descriptor", "status"),
    [
        ((SHARED - 64) >> 4 | 1 << 16 | 64 << 32 | 1 << 62, "ILLEGAL_ADDRESS"),
        (B_AT >> 4 | 1 << 16 | 0x3FFF << 32 | 1 << 62, "ILLEGAL_ADDRESS"),
        (B_AT >> 4 | 1 << 16 | 64 << 32 | 1 << 62 | 3 << 49, "UNSUPPORTED"),
    ],
)
def test_a_descriptor_that_leads_astray_is_a_fault(engine: Any, descriptor: int, status: str) -> None:
    module = engine.module(kernel("m64n16k16.f32.f16.f16", 8, "%p5", ", 1, 1, 0, 0"))
    buffers = [engine.device.put(np.zeros(size, np.uint8)) for size in (SHARED, 4096, 16)]
    good = A_AT >> 4 | 1 << 16 | 64 << 32 | 1 << 62
    outcome = module.run(*buffers, good, descriptor, 1, block=128, shared=SHARED)
    assert outcome.status == getattr(engine, status), outcome.message


def test_fewer_than_four_warps_are_a_fault(engine: Any) -> None:
    module = engine.module(kernel("m64n16k16.f32.f16.f16", 8, "%p5", ", 1, 1, 0, 0"))
    buffers = [engine.device.put(np.zeros(size, np.uint8)) for size in (2 * SHARED, 4096, 4096)]
    outcome = module.run(*buffers, 0, 0, 1, block=96, shared=SHARED)
    assert outcome.status == engine.TRAP
    assert "groups of 4 warps; the block has 3" in outcome.message

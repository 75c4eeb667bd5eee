"""Accesses that the engine moves as two rows of 16 lanes, and what only looks like one."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

PARAMETERS = ".param .u64 x, .param .u64 out"
START = """ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 15; shr.u32 %r3, %r1, 4;
cvta.to.global.u64 %d3, %d1; cvta.to.global.u64 %d4, %d2; mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d4, %d5;
"""
# %r4: the index of a lane, of its column %r2 and its row %r3
SHAPES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "one row": ("add.u32 %r4, %r1, 3;", lambda column, row: 16 * row + column + 3),
    "a tile": ("mad.lo.u32 %r4, %r3, 40, %r2;", lambda column, row: 40 * row + column),
    "the same row twice": ("mov.u32 %r4, %r2;", lambda column, row: column + 0 * row),
    "rows that overlap": ("mad.lo.u32 %r4, %r3, 7, %r2;", lambda column, row: 7 * row + column),
    "rows downwards": ("mad.lo.u32 %r4, %r3, -20, %r2; add.u32 %r4, %r4, 100;", lambda column, row: 100 - 20 * row + column),
    "one element a row": ("mul.lo.u32 %r4, %r3, 9;", lambda column, row: 9 * row + 0 * column),
    "one element": ("mov.u32 %r4, 5;", lambda column, row: 5 + 0 * (column + row)),
    "every other": ("mul.lo.u32 %r4, %r1, 2;", lambda column, row: 2 * (16 * row + column)),
    "a row and one element": ("mul.lo.u32 %r4, %r2, %r3;", lambda column, row: column * row),
    "one lane apart": ("setp.eq.u32 %p1, %r1, 30; selp.u32 %r4, 90, %r1, %p1;",
                       lambda column, row: np.where(16 * row + column == 30, 90, 16 * row + column)),
}  # fmt: skip
# From the index in %r4 to an address in %d8 of x, or in %r8 of the shared array `s`.
ADDRESSES = {
    "s32": "mul.wide.s32 %d7, %r4, {size}; add.s64 %d8, %d3, %d7;",
    "u32": "mul.wide.u32 %d7, %r4, {size}; add.s64 %d8, %d3, %d7;",
    "64": "cvt.u64.u32 %d7, %r4; add.s64 %d7, %d7, 0; mul.lo.u64 %d9, %d7, {size}; add.s64 %d8, %d3, %d9;",
    "whole": "mul.wide.u32 %d7, %r4, {size}; add.s64 %d8, %d3, %d7; xor.b64 %d8, %d8, 0;",
    "shared": "mov.u32 %r7, s; mad.lo.u32 %r8, %r4, {size}, %r7;",
    "shared, wide": "mov.u64 %d7, s; mad.wide.u32 %d8, %r4, {size}, %d7;",
}
TYPES = {1: ("u8", "u1", "%h1"), 2: ("u16", "u2", "%h1"), 4: ("u32", "u4", "%r9"), 8: ("u64", "u8", "%d10")}
ELEMENTS = 128


def _fill_shared(size: int) -> str:
    """What x holds, byte by byte."""
    return f"""mov.u32 %r20, %r1; mov.u32 %r23, s;
FILL: cvt.u64.u32 %d20, %r20; add.s64 %d21, %d3, %d20; ld.global.u8 %r21, [%d21]; add.u32 %r22, %r23, %r20;
st.shared.u8 [%r22], %r21; add.u32 %r20, %r20, 32; setp.lt.u32 %p2, %r20, {size * ELEMENTS}; @%p2 bra FILL; bar.sync 0;
"""


def _place(address: str) -> tuple[str, str]:
    return ("shared", "%d8" if "wide" in address else "%r8") if "shared" in address else ("global", "%d8")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("size", TYPES)
def test_a_load_of_every_shape(engine: Any, size: int, address: str) -> None:
    kind, dtype, register = TYPES[size]
    space, at = _place(address)
    x = engine.device.put(
        np.random.default_rng(size).integers(0, 1 << (8 * size), ELEMENTS, dtype, endpoint=False)
    )
    lane = np.arange(32)
    for name, (index, chosen) in SHAPES.items():
        out = engine.device.put(np.zeros(32, dtype))
        body = f"""{START}{_fill_shared(size) if space == "shared" else ""}{index} {ADDRESSES[address].format(size=size)}
ld.{space}.{kind} {register}, [{at}+{size}]; mul.wide.u32 %d11, %r1, {size}; add.s64 %d12, %d4, %d11; st.global.{kind} [%d12], {register};"""
        module = engine.body(
            body, parameters=PARAMETERS, before=f".shared .align 16 .b8 s[{size * ELEMENTS}];"
        )
        module.launch(x, out, block=32)
        np.testing.assert_array_equal(out.array(), x.array()[chosen(lane % 16, lane // 16) + 1], name)


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("size", TYPES)
def test_a_store_of_every_shape(engine: Any, size: int, address: str) -> None:
    """Where lanes meet at one place, the last one's value stays."""
    kind, dtype, register = TYPES[size]
    space, at = _place(address)
    value = {
        1: "cvt.u16.u32 %h1, %r1;",
        2: "cvt.u16.u32 %h1, %r1;",
        4: "mov.u32 %r9, %r1;",
        8: "cvt.u64.u32 %d10, %r1;",
    }
    copy = f"""mov.u32 %r20, %r1; mov.u32 %r23, s;
COPY: add.u32 %r22, %r23, %r20; ld.shared.u8 %r21, [%r22]; cvt.u64.u32 %d20, %r20; add.s64 %d21, %d4, %d20;
st.global.u8 [%d21], %r21; add.u32 %r20, %r20, 32; setp.lt.u32 %p2, %r20, {size * ELEMENTS}; @%p2 bra COPY;"""
    lane = np.arange(32)
    for name, (index, chosen) in SHAPES.items():
        x = engine.device.put(np.zeros(ELEMENTS, dtype))
        out = engine.device.put(np.zeros(ELEMENTS, dtype))
        shared = space == "shared"
        body = f"""{START}{_fill_shared(size) if shared else ""}{index} {ADDRESSES[address].format(size=size)} {value[size]}
add.{"u16" if size < 4 else kind} {register}, {register}, 1; st.{space}.{kind} [{at}+{size}], {register}; {copy if shared else ""}"""
        module = engine.body(
            body, parameters=PARAMETERS, before=f".shared .align 16 .b8 s[{size * ELEMENTS}];"
        )
        module.launch(x, out, block=32)
        expected = np.zeros(ELEMENTS, dtype)
        for i in lane:
            expected[chosen(i % 16, i // 16) + 1] = i + 1
        np.testing.assert_array_equal((out if shared else x).array(), expected, name)


@pytest.mark.parametrize("opcode", ["ld.shared.u32 %r9, [%r8]", "st.shared.u32 [%r8], %r9"])
@pytest.mark.parametrize(
    ("address", "lane", "status"),
    [
        ("mad.lo.u32 %r8, %r1, 4, 4;", 31, "ILLEGAL_ADDRESS"),  # the last of the second row
        ("mad.lo.u32 %r8, %r1, 4, -64;", 0, "ILLEGAL_ADDRESS"),  # wraps from below zero to zero at lane 16
        ("mad.lo.u32 %r8, %r3, 128, 0; mad.lo.u32 %r8, %r2, 4, %r8;", 16, "ILLEGAL_ADDRESS"),
        ("mad.lo.u32 %r8, %r1, 4, 2;", 0, "MISALIGNED"),
        ("mad.lo.u32 %r8, %r3, 2, 0; mad.lo.u32 %r8, %r2, 4, %r8;", 16, "MISALIGNED"),
        ("mul.lo.u32 %r8, %r3, 128;", 16, "ILLEGAL_ADDRESS"),  # one element a row
    ],
)
def test_a_row_of_shared_memory_faults_at_its_first_wrong_lane(
    engine: Any, opcode: str, address: str, lane: int, status: str
) -> None:
    x, out = engine.device.put(np.zeros(1, "u4")), engine.device.put(np.zeros(32, "u4"))
    module = engine.body(
        f"{START}mov.u32 %r7, s; {address}\n{opcode};\n",
        parameters=PARAMETERS,
        before=".shared .align 16 .b8 s[128];",
    )
    outcome = module.run(x, out, block=32)
    assert (outcome.status, outcome.place.thread) == (getattr(engine, status), (lane, 0, 0))


def test_a_store_of_rows_backs_every_chunk_it_touches(engine: Any) -> None:
    """A row of 8-byte values over the end of a chunk of 2 MiB, and a tile with a row in each of two."""
    chunk = 1 << 21
    x = engine.device.put(np.zeros(2 * chunk // 8, "u8"))
    before = engine.device.commits()
    first = (chunk - x.address % chunk) // 8 - 16
    body = f"""{START}add.u32 %r4, %r1, {first}; mul.wide.u32 %d7, %r4, 8; add.s64 %d8, %d3, %d7; cvt.u64.u32 %d9, %r1;
st.global.u64 [%d8], %d9; mad.lo.u32 %r5, %r3, 4096, %r4; mul.wide.u32 %d10, %r5, 8; add.s64 %d11, %d3, %d10; st.global.u64 [%d11], %d9;"""
    engine.body(body, parameters=PARAMETERS).launch(x, x, block=32)
    assert engine.device.commits() - before == 2
    np.testing.assert_array_equal(x.array()[first : first + 16], np.arange(16))
    np.testing.assert_array_equal(x.array()[first + 16 : first + 32], np.arange(16, 32))
    np.testing.assert_array_equal(x.array()[first + 16 + 4096 : first + 32 + 4096], np.arange(16, 32))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("result", ["read", "unread"])
@pytest.mark.parametrize("threads", [64, 45])
def test_an_addition_counts_whether_its_result_is_read_or_not(
    engine: Any, bits: int, result: str, threads: int
) -> None:
    old, added = ("%r9", "%r1") if bits == 32 else ("%d9", "%d10")
    body = f"""{START}cvt.u64.u32 %d10, %r1; rem.u32 %r4, %r1, 5; mul.wide.u32 %d7, %r4, {bits // 8}; add.s64 %d8, %d3, %d7;
atom.global.add.u{bits} {old}, [%d8], {added};"""
    if result == "read":
        body += (
            f"mul.wide.u32 %d11, %r1, {bits // 8}; add.s64 %d12, %d4, %d11; st.global.u{bits} [%d12], {old};"
        )
    dtype = f"u{bits // 8}"
    x, out = engine.device.put(np.zeros(5, dtype)), engine.device.put(np.zeros(threads, dtype))
    engine.body(body, parameters=PARAMETERS).launch(x, out, block=threads)
    thread = np.arange(threads)
    np.testing.assert_array_equal(x.array(), [thread[thread % 5 == k].sum() for k in range(5)])
    before = [thread[(thread % 5 == t % 5) & (thread < t)].sum() for t in thread]
    np.testing.assert_array_equal(out.array(), before if result == "read" else np.zeros(threads))


def test_an_addition_whose_result_is_unread_faults_at_its_lane(engine: Any) -> None:
    x, out = engine.device.put(np.zeros(20, "u4")), engine.device.put(np.zeros(1, "u4"))
    body = f"{START}mul.wide.u32 %d7, %r1, 4; add.s64 %d8, %d3, %d7; atom.global.add.u32 %r9, [%d8], 1;"
    outcome = engine.body(body, parameters=PARAMETERS).run(x, out, block=32)
    assert (outcome.status, outcome.address) == (engine.ILLEGAL_ADDRESS, x.address + 80)
    assert "an atomic access of 4 bytes" in outcome.message

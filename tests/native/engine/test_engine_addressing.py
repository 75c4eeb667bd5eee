"""What lowering moves and looks through: prologues of kernels, and addresses of base and index."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

PARAMETERS = ".param .u64 x, .param .u64 out, .param .u32 n"
START = """ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; ld.param.u32 %r9, [n];
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
cvta.to.global.u64 %d3, %d1; cvta.to.global.u64 %d4, %d2; mul.wide.u32 %d5, %r4, 4; add.s64 %d6, %d4, %d5;
"""


def _run(
    engine: Any, body: str, x: Any, *, threads: int = 64, n: int = 0, grid: int = 1, **options: Any
) -> Any:
    out = engine.device.put(np.zeros(threads * grid, "u4"))
    module = engine.body(START + body, parameters=PARAMETERS)
    module.launch(engine.device.put(x), out, n, grid=grid, block=threads, **options)
    return out.array()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("mul.wide.s32 %d7, %r4, 4; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8+8];", lambda i: i + 2),
        ("mul.wide.s32 %d7, %r4, 8; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8];", lambda i: 2 * i),
        ("add.s32 %r6, %r4, -3; mul.wide.s32 %d7, %r6, 4; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8+12];",
         lambda i: i),
        ("cvt.u64.u32 %d7, %r4; shl.b64 %d8, %d7, 2; add.s64 %d9, %d8, %d3; ld.global.u32 %r5, [%d9];", lambda i: i),
        ("cvt.s64.s32 %d7, %r4; add.s64 %d8, %d7, 5; shl.b64 %d9, %d8, 2; add.s64 %d10, %d3, %d9;"
         "ld.global.u32 %r5, [%d10];", lambda i: i + 5),
        ("mad.wide.u32 %d8, %r4, 4, %d3; add.s64 %d9, %d8, 4; ld.global.u32 %r5, [%d9];", lambda i: i + 1),
        ("shr.u32 %r6, %r4, 5; mul.wide.u32 %d7, %r6, 4; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8];",
         lambda i: i // 32),
        ("xor.b32 %r6, %r4, 7; mul.wide.u32 %d7, %r6, 4; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8];",
         lambda i: i ^ 7),
    ],
)  # fmt: skip
def test_base_and_index_lead_where_the_address_would(engine: Any, address: str, expected: Any) -> None:
    x = np.arange(1000, 1400, dtype="u4")
    got = _run(engine, f"{address} st.global.u32 [%d6], %r5;", x)
    np.testing.assert_array_equal(got, x[expected(np.arange(64))])


@pytest.mark.parametrize("threads", [64, 50])
def test_an_index_changed_before_the_access_does_not_move_it(engine: Any, threads: int) -> None:
    x = np.arange(500, 700, dtype="u4")
    body = """mov.u32 %r7, 0; mov.u32 %r10, %r4; mov.u32 %r11, 0;
AGAIN: mul.wide.s32 %d7, %r10, 4; add.s64 %d8, %d3, %d7; add.s32 %r10, %r10, 1; ld.global.u32 %r5, [%d8];
add.u32 %r7, %r7, %r5; add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 3; @%p1 bra AGAIN;
st.global.u32 [%d6], %r7;"""
    at = np.arange(threads)
    np.testing.assert_array_equal(_run(engine, body, x, threads=threads), x[at] + x[at + 1] + x[at + 2])


def test_an_address_computed_a_round_earlier_is_of_that_round(engine: Any) -> None:
    """The computation stands behind the access in the text, so the access reads the last round's."""
    x = np.arange(300, 600, dtype="u4")
    body = """mov.u32 %r7, 0; mov.u32 %r10, %r4; mov.u32 %r11, 0; bra ENTER;
AGAIN: ld.global.u32 %r5, [%d8]; add.u32 %r7, %r7, %r5;
ENTER: mul.wide.s32 %d7, %r10, 4; add.s64 %d8, %d3, %d7; add.s32 %r10, %r10, 1;
add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 4; @%p1 bra AGAIN;
st.global.u32 [%d6], %r7;"""
    at = np.arange(64)
    np.testing.assert_array_equal(_run(engine, body, x), x[at] + x[at + 1] + x[at + 2])


@pytest.mark.parametrize("index", ["s32", "u32"])
def test_a_row_that_leaves_its_allocation_faults_where_it_does(engine: Any, index: str) -> None:
    x = engine.device.put(np.zeros(60, "u4"))
    out = engine.device.put(np.zeros(64, "u4"))
    text = START + f"mul.wide.{index} %d7, %r4, 4; add.s64 %d8, %d3, %d7;\n"
    module = engine.body(text + "ld.global.u32 %r5, [%d8]; st.global.u32 [%d6], %r5;", parameters=PARAMETERS)
    outcome = module.run(x, out, 0, block=64)
    assert (outcome.status, outcome.address) == (engine.ILLEGAL_ADDRESS, x.address + 240)
    assert outcome.line == 9 + text.count("\n")  # engine.body puts eight lines before


@pytest.mark.parametrize(("index", "first"), [("s32", 0x7FFFFFF0), ("u32", 0xFFFFFFF0)])
def test_an_index_that_wraps_within_a_warp_is_no_row(engine: Any, index: str, first: int) -> None:
    """Lane 16 has wrapped: its address is far from lane 15's."""
    x = engine.device.put(np.arange(64, dtype="u4"))
    out = engine.device.put(np.zeros(32, "u4"))
    body = f"""add.u32 %r6, %r4, {first}; mul.wide.{index} %d7, %r6, 4; add.s64 %d8, %d3, %d7;
ld.global.u32 %r5, [%d8]; st.global.u32 [%d6], %r5;"""
    module = engine.body(START + body, parameters=PARAMETERS)
    base = (x.address - 4 * first) % (1 << 64)
    outcome = module.run(base, out, 0, block=32)
    wrapped = (base + (-(1 << 33) if index == "s32" else 0)) % (1 << 64)
    assert (outcome.status, outcome.address) == (engine.ILLEGAL_ADDRESS, wrapped)


def test_atomics_through_an_index_count_every_lane(engine: Any) -> None:
    x = np.arange(256, dtype="u4") % 7
    body = """mul.wide.s32 %d7, %r4, 4; add.s64 %d8, %d3, %d7; ld.global.u32 %r5, [%d8];
mul.wide.u32 %d9, %r5, 4; add.s64 %d10, %d4, %d9; red.global.add.u32 [%d10], 1;"""
    got = _run(engine, body, x, threads=128, grid=2)
    np.testing.assert_array_equal(got[:7], np.bincount(x))


@pytest.mark.parametrize("threads", [96, 70])
def test_what_is_computed_once_is_there_in_every_block(engine: Any, threads: int) -> None:
    """Parameters, sizes and thread numbers; and under a branch that only some blocks take."""
    body = """setp.eq.u32 %p1, %r1, 1; @%p1 bra OTHER;
add.u32 %r10, %r9, 100; mul.lo.u32 %r11, %r3, %r10; st.global.u32 [%d6], %r11; bra DONE;
OTHER: mov.u32 %r12, %nctaid.x; mad.lo.u32 %r13, %r12, %r9, %r3; st.global.u32 [%d6], %r13;
DONE:"""
    got = _run(engine, body, np.zeros(1, "u4"), threads=threads, grid=5, n=9).reshape(5, threads)
    at = np.arange(threads)
    np.testing.assert_array_equal(got, [5 * 9 + at if block == 1 else at * 109 for block in range(5)])


def test_the_number_of_workers_shows_in_no_count(engine: Any) -> None:
    module = engine.corpus("nvrtc_matmul")
    a, out = (engine.device.put(np.ones((64, 64), "f4")) for _ in range(2))
    outcomes = [
        module.launch(a, a, out, 64, grid=(4, 4), block=(16, 16), workers=count) for count in (1, 2, 5)
    ]
    assert len({outcome.instructions for outcome in outcomes}) == 1


# ---- the pool ----


def _doubling(engine: Any) -> Callable[[], bool]:
    """A launch that is worth helpers, and whether its result is right."""
    module = engine.corpus("nvrtc_saxpy")
    x = np.arange(1 << 17, dtype="f4")
    given, out = engine.device.put(x), engine.device.put(np.zeros_like(x))

    def launch() -> bool:
        options = {"grid": 512, "block": 256, "workers": 3}
        module.launch(np.float32(2), given, given, out, len(x), **options)
        return bool(np.array_equal(out.array(), 3 * x))

    return launch


def test_launches_of_several_threads_share_the_helpers(engine: Any) -> None:
    launches = [_doubling(engine) for _ in range(12)]
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda launch: launch(), launches))


def _barriers(engine: Any) -> bool:
    x, out = np.arange(256, dtype="i4"), engine.device.put(np.zeros((2, 256), "i4"))
    module = engine.corpus("numba_grid_sync")
    outcome = module.run(
        engine.device.put(x).numba(), out.numba(), grid=8, block=32, workers=4, cooperative=True
    )
    return outcome.status == engine.OK and bool(np.array_equal(out.array()[1], np.roll(x, -3) + 3))


def test_a_forked_child_has_helpers_of_its_own(engine: Any) -> None:
    """The parent's are not there, and blocks of a cooperative launch that wait for theirs would hang."""
    launch = _doubling(engine)
    assert launch()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if launch() and _barriers(engine) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert _barriers(engine)

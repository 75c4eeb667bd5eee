"""cp.async, mbarrier and the barrier of a cluster of one block."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

SHARED = ".shared .align 16 .b8 memory[2048]; .shared .align 8 .b64 bar;"


@pytest.mark.parametrize(("way", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_asynchronous_copies_arrive_and_cut_what_they_read(engine: Any, way: str, size: int) -> None:
    source = np.arange(1, 32 * size + 1, dtype="u1")
    read = np.arange(32) % (size + 1)
    body = f"""{SHARED}
    ld.param.u64 %d1, [out]; ld.param.u64 %d2, [from]; ld.param.u64 %d3, [sizes]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %d4, %r1, 4; add.u64 %d3, %d3, %d4; ld.global.u32 %r2, [%d3];
    mul.wide.u32 %d5, %r1, {size}; add.u64 %d2, %d2, %d5; mov.u32 %r3, memory; cvt.u32.u64 %r4, %d5; add.u32 %r3, %r3, %r4;
    cp.async.{way}.shared.global.L2::128B [%r3], [%d2], {size}, %r2;
    cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    """
    for k in range(size // 4):
        body += f"ld.shared.u32 %r5, [%r3+{4 * k}]; add.u64 %d6, %d1, %d5; st.global.u32 [%d6+{4 * k}], %r5;"
    out = engine.device.put(np.full(32 * size, 0xEE, "u1"))
    module = engine.body(body, parameters=".param .u64 out, .param .u64 from, .param .u64 sizes")
    module.launch(out, engine.device.put(source), engine.device.put(read.astype("u4")), block=32)
    kept = np.arange(size)[None, :] < read[:, None]
    np.testing.assert_array_equal(out.array().reshape(32, size), np.where(kept, source.reshape(32, size), 0))


def test_an_asynchronous_copy_touches_nothing_behind_what_it_reads(engine: Any) -> None:
    text = (
        SHARED
        + "ld.param.u64 %d1, [out]; mov.u32 %r1, memory; cp.async.ca.shared.global [%r1], [%d1], 16, {read};"
    )
    out = engine.device.put(np.zeros(12, "u1"))
    assert engine.body(text.format(read=12)).run(out).status == engine.OK
    assert engine.body(text.format(read=13)).run(out).status == engine.ILLEGAL_ADDRESS
    assert engine.body(text.format(read=17)).run(out).status == engine.ILLEGAL_ADDRESS
    assert engine.body(text.format(read=0)).run(8).status == engine.OK
    assert engine.body(text.format(read=1)).run(out.address + 4).status == engine.MISALIGNED


def test_a_predicate_has_an_asynchronous_copy_read_nothing(engine: Any) -> None:
    text = (
        SHARED
        + """ld.param.u64 %d1, [out]; mov.u32 %r1, memory; setp.eq.u32 %p1, %r1, %r1;
    cp.async.cg.shared::cta.global.L2::cache_hint [%r1], [0], 16, %p1, %d1;
    ld.shared.v2.u64 {%d2, %d3}, [%r1]; st.global.v2.u64 [%d1], {%d2, %d3};"""
    )
    out = engine.device.put(np.full(2, 7, "u8"))
    engine.body(text).launch(out)
    assert out.array().tolist() == [0, 0]


WAIT = "W{n}: mbarrier.try_wait.parity.shared.b64 %p1, [bar], {parity}; @!%p1 bra W{n};"


def test_producers_and_consumers_meet_at_an_mbarrier(engine: Any) -> None:
    """Warp 0 writes, warps 1 to 3 read, three times over the same buffer."""
    rounds = ""
    for step in range(3):
        rounds += f"""
        @%p2 st.shared.u32 [%r3], %r4; @%p2 mbarrier.arrive.shared.b64 %d3, [bar]; add.u32 %r4, %r4, 100;
        W{step}: mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p1, [bar], {step & 1}; @!%p1 bra W{step};
        ld.shared.u32 %r5, [%r3]; st.global.u32 [%d1+{512 * step}], %r5; bar.sync 1;
        """
    body = f"""{SHARED} ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r2, %r2, 2;
    mov.u32 %r3, memory; add.u32 %r3, %r3, %r2; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2; mov.u32 %r4, %r1;
    setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0; setp.lt.u32 %p2, %r1, 32; {rounds}"""
    out = engine.device.put(np.zeros((3, 128), "u4"))
    engine.body(body).launch(out, block=128)
    expected = np.tile(np.arange(32), 4)[None, :] + 100 * np.arange(3)[:, None]
    np.testing.assert_array_equal(out.array(), expected)


def test_a_phase_ends_with_its_arrivals_and_its_bytes(engine: Any) -> None:
    steps = [
        "mbarrier.init.shared.b64 [bar], 2;",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %d4, [bar], 64;",
        "mbarrier.arrive.shared.b64 _, [bar];",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60;",
        "mbarrier.complete_tx.shared::cta.b64 [bar], 4;",
        "mbarrier.arrive_drop.shared.b64 %d6, [bar];",
        "mbarrier.arrive.shared.b64 %d6, [bar];",
        "mbarrier.arrive.noComplete.shared.b64 %d6, [bar], 0;",
        "mbarrier.arrive.shared.b64 %d6, [bar];",
        "cp.async.mbarrier.arrive.shared.b64 [bar];",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];",
    ]
    body = SHARED + "ld.param.u64 %d1, [out]; mov.u64 %d4, 0;"
    for k, step in enumerate(steps):
        body += f"{step} mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; selp.u32 %r1, 1, 0, %p1;"
        body += f"ld.shared.u64 %d5, [bar]; mbarrier.pending_count.b64 %r2, %d5; st.global.v2.u32 [%d1+{8 * k}], {{%r1, %r2}};"
    body += (
        "mbarrier.test_wait.shared.b64 %p1, [bar], %d4; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d1+88], %r1;"
    )
    out = engine.device.put(np.zeros((12, 2), "u4"))
    engine.body(body).launch(out)
    assert out.array()[:11].tolist() == [
        [0, 2], [0, 1], [0, 0], [0, 0], [1, 2], [1, 1], [0, 1], [0, 1], [1, 1], [1, 1], [0, 1],
    ]  # fmt: skip
    assert out.array()[11, 0] == 0  # the state is of phase 0; by now it is phase 4


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("mbarrier.init.shared.b64 [bar], 0;", "TRAP"),
        ("mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 _, [bar], 2;", "TRAP"),
        (
            "mbarrier.init.shared.b64 [bar], 1; mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];",
            "TRAP",
        ),
        ("mbarrier.init.shared.b64 [bar+4], 1;", "MISALIGNED"),
        ("mbarrier.init.shared.b64 [bar+4096], 1;", "ILLEGAL_ADDRESS"),
        ("ld.param.u64 %d1, [out]; mbarrier.init.b64 [%d1], 1;", "ILLEGAL_ADDRESS"),
    ],
)
def test_what_an_mbarrier_leaves_undefined_is_a_fault(engine: Any, text: str, status: str) -> None:
    out = engine.device.put(np.zeros(2, "u8"))
    assert engine.body(SHARED + text).run(out).status == getattr(engine, status)


def test_the_barrier_of_a_cluster_has_all_of_the_block_arrive(engine: Any) -> None:
    """What each warp wrote before arriving is there after waiting; thread 5 has left before."""
    body = """.shared .align 4 .b8 memory[512]; ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5;
    @%p1 exit; shl.b32 %r2, %r1, 2; mov.u32 %r3, memory; add.u32 %r4, %r3, %r2; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    st.shared.u32 [%r4], %r1; barrier.cluster.arrive.release.aligned; xor.b32 %r5, %r2, 480; add.u32 %r5, %r3, %r5;
    setp.lt.u32 %p2, %r1, 40; @%p2 bra WAIT; add.u32 %r9, %r9, 1;
    WAIT: barrier.cluster.wait.acquire.aligned; ld.shared.u32 %r6, [%r5]; mapa.shared::cluster.u32 %r7, %r5, 0;
    ld.shared::cluster.u32 %r8, [%r7]; add.u32 %r6, %r6, %r8; barrier.cluster.arrive; barrier.cluster.wait;
    st.shared.u32 [%r4], %r6; barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r6, [%r5]; st.global.u32 [%d1], %r6;"""
    out = engine.device.put(np.zeros(128, "u4"))
    engine.body(body).launch(out, block=128)
    expected = 2 * np.arange(128)
    expected[5] = 0  # it wrote nothing
    partner = np.arange(128) ^ 120
    got = out.array()
    kept = (np.arange(128) != 5) & (partner != 5)
    np.testing.assert_array_equal(got[kept], expected[kept])


def test_registers_of_a_cluster_of_one(engine: Any) -> None:
    names = ["cluster_nctaid.x", "cluster_ctaid.x", "cluster_ctarank", "cluster_nctarank", "clusterid.x", "nclusterid.x",
             "is_explicit_cluster"]  # fmt: skip
    body = "ld.param.u64 %d1, [out]; mov.u32 %r2, %ctaid.x; mul.wide.u32 %d2, %r2, 32; add.u64 %d1, %d1, %d2;"
    body += "".join(
        f"mov.u32 %r1, %{name}; st.global.u32 [%d1+{4 * k}], %r1;" for k, name in enumerate(names)
    )
    body += "getctarank.u64 %r1, %d1; st.global.u32 [%d1+28], %r1; ret.uni;"
    out = engine.device.put(np.zeros((3, 8), "u4"))
    engine.body(body).launch(out, grid=3)
    assert out.array().tolist() == [[1, 0, 0, 1, block, 3, 0, 0] for block in range(3)]


def test_a_cluster_of_more_blocks_is_refused_by_name(engine: Any) -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() .reqnctapercluster 2, 1, 1 { ret; }"
    outcome = engine.module(text).run(grid=2)
    assert outcome.status == engine.UNSUPPORTED
    assert "cluster" in outcome.message

"""What a kernel does wrong ends its launch with a value: the cause, the address, the line of the text."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
import pytest


def _line_of(module_text: str, needle: str) -> int:
    return next(i for i, line in enumerate(module_text.splitlines(), 1) if needle in line)


@pytest.mark.parametrize(
    ("offset", "access"),
    [
        (4096, "ld.global.u32 %r1"),
        (4093, "ld.global.u8 %r1"),
        (-4, "ld.global.u32 %r1"),
        (4088, "ld.global.v4.u32"),
    ],
)
def test_a_load_outside_every_allocation_faults_with_its_address_and_line(
    engine: Any, offset: int, access: str
) -> None:
    memory = engine.device.put(np.zeros(1024 if "v4" not in access else 1023, "u4"))
    if "u8" in access:
        memory, offset = engine.device.put(np.zeros(4093, "u1")), 4093
    if "v4" in access:
        offset = 4080
        body = f"ld.param.u64 %d1, [out];\n{access} {{%r1, %r2, %r3, %r4}}, [%d1+{offset}];"
    else:
        body = f"ld.param.u64 %d1, [out];\n{access}, [%d1+{offset}];"
    outcome = engine.body(body).run(memory)
    assert outcome.status == engine.ILLEGAL_ADDRESS
    assert outcome.address == memory.address + offset
    assert outcome.line == 10
    assert outcome.place.instruction == access.split()[0]
    size = 16 if "v4" in access else 1 if "u8" in access else 4
    assert outcome.message.startswith(
        f"a load of {size} byte{'s'[: size > 1]} at {outcome.address:#x} is outside all memory"
    )
    assert outcome.place.global_bytes == size


@pytest.mark.parametrize("address", [0, 8, 2**32, 2**47 - 8, 2**64 - 4, 2**64 - 64])
@pytest.mark.parametrize("form", ["ld.global.u32 %r1, [%d1];", "st.global.u32 [%d1], %r1;", "ld.u32 %r1, [%d1];",
                                  "atom.global.add.u32 %r1, [%d1], 1;", "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d1];",
                                  "ld.const.u32 %r1, [%d1];"])  # fmt: skip
def test_wild_addresses_fault_also_where_they_wrap_around(engine: Any, address: int, form: str) -> None:
    outcome = engine.body(f"ld.param.u64 %d1, [out];\n{form}").run(address, block=32)
    assert outcome.status in (engine.ILLEGAL_ADDRESS, engine.MISALIGNED)


def test_the_offending_lane_is_reported_when_the_others_are_right(engine: Any) -> None:
    memory = engine.device.put(np.zeros(31, "u4"))
    body = "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d1, %d2;\n"
    outcome = engine.body(body + "st.global.u32 [%d3], %r1;").run(memory, block=32)
    assert outcome.status == engine.ILLEGAL_ADDRESS
    assert outcome.address == memory.address + 31 * 4
    assert (outcome.place.block, outcome.place.thread) == ((0, 0, 0), (31, 0, 0))


@pytest.mark.parametrize(
    ("access", "said"),
    [
        ("ld.global.u32 %r9, [%d3]", "a load of 4 bytes"),
        ("st.global.u32 [%d3], %r1", "a store of 4 bytes"),
        ("atom.global.add.u32 %r9, [%d3], 1", "an atomic access of 4 bytes"),
        ("red.global.add.u32 [%d3], 1", "an atomic access of 4 bytes"),
        ("st.global.v2.u32 [%d3], {%r1, %r1}", "a store of 8 bytes"),
    ],
)
def test_block_thread_and_kind_of_access_are_those_of_the_thread_that_is_wrong(
    engine: Any, access: str, said: str
) -> None:
    """Threads of two dimensions in blocks of two dimensions; the one of block (1,2), thread (3,5) is wrong."""
    memory = engine.device.put(np.zeros(64, "u4"))
    body = f"""ld.param.u64 %d1, [out];
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y;
        mad.lo.u32 %r5, %r1, 10, %r2; mad.lo.u32 %r5, %r5, 10, %r3; mad.lo.u32 %r5, %r5, 10, %r4;
        setp.eq.u32 %p1, %r5, 1235; selp.b64 %d2, 4096, 0, %p1; add.u64 %d3, %d1, %d2;
        {access};"""
    outcome = engine.body(body).run(memory, grid=(2, 4), block=(8, 8), workers=2)
    assert outcome.status == engine.ILLEGAL_ADDRESS
    assert (outcome.place.block, outcome.place.thread) == ((1, 2, 0), (3, 5, 0))
    assert outcome.message.startswith(f"{said} at {memory.address + 4096:#x}")
    assert outcome.place.instruction == access.split()[0]


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_misaligned_accesses_fault(engine: Any, size: int, space: str) -> None:
    memory = engine.device.put(np.zeros(64, "u1"))
    register = {2: "%h1", 4: "%r1", 8: "%d9"}[size]
    bases = {"global": "ld.param.u64 %d1, [out];", "shared": "mov.u64 %d1, s;", "local": "mov.u64 %d1, l;"}
    declarations = ".shared .align 16 .b8 s[64]; .local .align 16 .b8 l[64];"
    body = f"{declarations}\n{bases[space]}\nld.{space}.b{8 * size} {register}, [%d1+{size // 2}];"
    outcome = engine.body(body).run(memory)
    assert outcome.status == engine.MISALIGNED
    assert engine.body(body.replace(f"+{size // 2}]", f"+{size}]")).run(memory).status == engine.OK


@pytest.mark.parametrize("offset", [64, 61, 2**31, 2**32 - 4])
@pytest.mark.parametrize("space", ["shared", "local"])
def test_shared_and_local_memory_have_bounds(engine: Any, space: str, offset: int) -> None:
    body = f".{space} .align 16 .b8 a[64];\nmov.u32 %r1, a;\nadd.u32 %r1, %r1, {offset};\nst.{space}.u8 [%r1], %r2;"
    outcome = engine.body(body).run(0, block=32)
    limit_is_rounded_up = space == "local" or offset == 61
    assert outcome.status == (engine.OK if limit_is_rounded_up and offset == 61 else engine.ILLEGAL_ADDRESS)


def test_a_generic_pointer_into_a_window_has_the_same_bounds(engine: Any) -> None:
    body = (
        ".shared .align 16 .b8 a[64];\nmov.u64 %d1, a; cvta.shared.u64 %d2, %d1;\nst.u32 [%d2+OFFSET], %r1;"
    )
    assert engine.body(body.replace("OFFSET", "60")).run(0, block=32).status == engine.OK
    assert engine.body(body.replace("OFFSET", "64")).run(0, block=32).status == engine.ILLEGAL_ADDRESS


def test_parameters_are_read_only_and_bounded(engine: Any) -> None:
    store = engine.body("mov.u64 %d1, out; cvta.param.u64 %d2, %d1; st.u32 [%d2], %r1;").run(0)
    assert store.status == engine.ILLEGAL_ADDRESS
    beyond = engine.body("ld.param.u64 %d1, [out+8];").run(0)
    assert beyond.status == engine.ILLEGAL_ADDRESS


def test_endless_recursion_overflows_the_stack(engine: Any) -> None:
    before = (
        ".func deeper(.param .b32 n) { .reg .b32 %r<3>; .local .b8 frame[256];\n ld.param.b32 %r1, [n];\n"
    )
    before += "{ .param .b32 p; st.param.b32 [p], %r1; call deeper, (p); } ret; }"
    outcome = engine.body("{ .param .b32 q; st.param.b32 [q], 1; call deeper, (q); }", before=before).run(
        0, block=64
    )
    assert outcome.status == engine.STACK_OVERFLOW
    assert "deeper" in outcome.message
    assert (outcome.place.function, outcome.place.instruction) == ("deeper", "call")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endless_loop_ends_with_its_time(engine: Any, workers: int) -> None:
    module = engine.body("L: add.u32 %r1, %r1, 1; bra L;")
    started = time.monotonic()
    outcome = module.run(0, grid=4, block=64, timeout_s=0.2, workers=workers)
    assert outcome.status == engine.TIMEOUT
    assert "200 ms" in outcome.message
    assert (outcome.line, outcome.place.instruction) == (9, "bra")
    assert outcome.place.thread is not None
    assert time.monotonic() - started < 10


def test_many_short_blocks_end_with_their_time_too(engine: Any) -> None:
    outcome = engine.body("mov.u32 %r1, 1;").run(0, grid=(2**31 - 1, 1000, 1), block=32, timeout_s=0.1)
    assert outcome.status == engine.TIMEOUT


def test_a_barrier_that_nobody_can_complete_is_a_deadlock_not_a_hang(engine: Any) -> None:
    outcome = engine.body("bar.sync 0, 64;").run(0, block=32)
    assert outcome.status == engine.TIMEOUT
    assert "deadlock: barrier 0 has 32 of the 64 threads" in outcome.message
    assert (outcome.place.instruction, outcome.place.thread) == ("bar.sync", (0, 0, 0))


def test_a_grid_wide_barrier_that_one_block_never_reaches_ends_with_where_the_others_wait(
    engine: Any,
) -> None:
    call = "{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], 1; call (r), cudaCGSynchronize, (h, f); }"
    before = ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);"
    body = f"mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra OVER;\n{call}\nOVER: @%p1 bra OVER;"
    outcome = engine.body(body, before=before).run(0, grid=2, block=1, cooperative=True, timeout_s=0.2)
    assert outcome.status == engine.TIMEOUT
    assert outcome.place.instruction in ("bra", "call")


@pytest.mark.parametrize("opcode", ["trap", "brkpt"])  # without a debugger, a breakpoint ends the kernel
def test_trap_names_its_line(engine: Any, opcode: str) -> None:
    text = f"mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5;\n@%p1 {opcode};"
    outcome = engine.body(text).run(0, block=32)
    assert (outcome.status, outcome.line) == (engine.TRAP, 10)
    assert (outcome.place.instruction, outcome.place.thread) == (opcode, (5, 0, 0))


def test_one_fault_ends_the_whole_launch(engine: Any) -> None:
    out = engine.device.put(np.zeros(1, "u4"))
    body = "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 3; @%p1 trap;\n"
    outcome = engine.body(body + "atom.global.add.u32 %r2, [%d1], 1;").run(
        out, grid=1000000, block=1, workers=2
    )
    assert outcome.status == engine.TRAP
    assert out.array()[0] < 1000000


def test_device_memory_that_cannot_be_backed(engine: Any) -> None:
    out = engine.device.put(np.zeros(64, "u4"))
    module = engine.body("ld.param.u64 %d1, [out]; st.global.u32 [%d1], 7;")
    engine.device.refuse_commits(True)
    assert module.run(out).status == engine.NO_MEMORY
    engine.device.refuse_commits(False)
    assert module.run(out).status == engine.OK


def test_each_chunk_is_committed_once_a_worker_before_the_first_store(engine: Any) -> None:
    out = engine.device.put(np.zeros(3 << 19, "u4"))  # 6 MiB, of which 4 MiB are written
    body = "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;\n"
    body += "mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], %r4;"
    before = engine.device.commits()
    engine.body(body).launch(out, grid=1024, block=1024)
    assert 2 <= engine.device.commits() - before <= 3
    before = engine.device.commits()
    engine.body("ld.param.u64 %d1, [out]; ld.global.u32 %r1, [%d1];").launch(out)
    assert engine.device.commits() == before


@pytest.mark.parametrize(
    "options",
    [
        {"grid": 0},
        {"block": 0},
        {"block": 1025},
        {"block": (64, 64)},
        {"shared": 2**31 - 1},
        {"block": (1, 1, 2**31)},
    ],
)
def test_impossible_launches_are_refused(engine: Any, options: dict[str, Any]) -> None:
    assert engine.body("mov.u32 %r1, 1;").run(0, **options).status == engine.INVALID_LAUNCH


def test_launch_bounds_of_the_kernel(engine: Any) -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() .maxntid 64, 1, 1 { ret; }\n"
    text += ".visible .entry r() .reqntid 32, 2, 1 { ret; }\n"
    module = engine.module(text)
    assert module.describe("k").maximum_threads == 64
    assert list(module.describe("r").required_threads) == [32, 2, 1]
    assert module.run(name="k", block=64).status == engine.OK
    assert module.run(name="k", block=65).status == engine.INVALID_LAUNCH
    assert module.run(name="r", block=(32, 2)).status == engine.OK
    assert module.run(name="r", block=64).status == engine.INVALID_LAUNCH


@pytest.mark.parametrize(
    "form",
    [
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, {%r5,%r6}, {%f1,%f2,%f3,%f4}, %r3, 0",
        "tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f5,%f6}]",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], 16, [%r2]",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r3, %r4}], [%r2]",
        "cp.async.bulk.commit_group",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32",
        "tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2",
        "prefetch.tensormap [%d1]",
        "multimem.ld_reduce.global.add.f32 %f1, [%d1]",
        "ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%d1]",
        "add.rn.f32x2 %d1, %d2, %d3",
        "fence.proxy.tensormap::generic.acquire.gpu [%d1], 128",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3]",
        "red.async.relaxed.cluster.global.add.u32 [%r1], %r2, [%r3]",
    ],
)
def test_unsupported_forms_are_named_with_their_line(engine: Any, form: str) -> None:
    out = engine.device.put(np.full(1, 5, "u4"))
    name = form.split()[0]
    module = engine.body(f"ld.param.u64 %d1, [out];\n{form};\nst.global.u32 [%d1], 1;")
    assert f"line 10: {name} is not supported" in module.log
    outcome = module.run(out)
    assert outcome.status == engine.UNSUPPORTED
    assert (outcome.line, outcome.message) == (10, f"{name} is not supported")
    assert out.array()[0] == 5


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("ad.s32 %r1, %r2, %r3;", "no such instruction"),
        ("add.s32 %r1, %r2;", "2 operands, expected 3"),
        ("add.s32 %d1, %r2, %r3;", "%d1"),
        ("add.f32 %r1, %r2, 1;", "integer constant as .f32"),
        ("add.s32 %f1, %r2, %r3;", "%f1"),
        ("mov.u32 %r1, %nothing;", "%nothing"),
        ("bra nowhere;", "nowhere"),
        ("mov.u32 %r1, nowhere;", "nowhere"),
        ("call nobody;", "nobody"),
        ("ld.global.u64 %r1, [%d1];", "%r1"),
        ("ld.shared.u32 %r1, [out];", "not in .shared"),
        ("@%r1 bra L; L:", "%r1"),
        ("add.s32 %r1, %r2, 99999999999999999999;", "64 bits"),
        ("mov.u32 %r1, 1", "expected"),
        ("L: L: ret;", "defined twice"),
        ("setp.lo.s32 %p1, %r1, %r2;", ".lo"),
        ("{ .reg .b32 %x;", "the text ends"),
    ],
)
def test_wrong_text_is_refused_with_a_line_and_a_reason(engine: Any, instruction: str, said: str) -> None:
    with pytest.raises(engine.LoadError) as failed:
        engine.body(instruction)
    assert failed.value.status == engine.BAD_PTX
    assert said in failed.value.log
    assert failed.value.log.startswith("line ")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "garbage",
        ".version",
        ".version 8.0",
        ".version 8.0\n.target sm_80\n.entry k(",
        "\x7fELF\x02\x01\x01",
    ],
)
def test_what_is_no_ptx_at_all_is_refused(engine: Any, text: str) -> None:
    with pytest.raises(engine.LoadError) as failed:
        engine.module(text)
    assert failed.value.status == engine.BAD_PTX
    assert failed.value.log


def test_a_forked_child_can_launch_while_the_parent_has_launched(engine: Any) -> None:
    """Both with workers: no lock and no thread of ours outlives a launch."""
    module = engine.body("L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20000; @%p1 bra L;")
    module.launch(0, grid=16, block=64, workers=3)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        outcome = module.run(0, grid=16, block=64, workers=3)
        os._exit(outcome.status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0

"""The forms that move data, wait, or work across lanes: every word of every row of forms.def at least once.

Rows with atomics are taken apart into every operation on every type and in every space.
"""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.native.engine import ptx_numbers as number
from tests.native.engine.ptx_numbers import FORMATS, signed
from tests.native.engine.ptx_operations import width
from tests.native.engine.ptx_table import Form, pool, rows

LANES = 64
REGISTER = {16: "%h", 32: "%r", 64: "%d", 128: "%q"}


def covering(opcode: str, pattern: str, *, products: tuple[str, ...] = ()) -> Iterator[Form]:
    """Enough forms that every word of every item is in one. Items with a word of `products` are multiplied out."""
    items = []
    for item in pattern.split():
        words = item.removesuffix("?").split("|")
        items.append([*words, ""] if item.endswith("?") else words)
    multiplied = [any(word in products for word in item) for item in items]
    inner = [item if full else [None] for item, full in zip(items, multiplied, strict=True)]
    longest = max((len(item) for item, full in zip(items, multiplied, strict=True) if not full), default=1)
    for turn, chosen in enumerate(itertools.product(*inner)):
        for k in range(longest if turn == 0 else 1):
            words = [
                fixed if fixed is not None else item[(turn + k) % len(item)]
                for item, fixed in zip(items, chosen, strict=True)
            ]
            yield Form(opcode, tuple(word for word in words if word))


def forms_of(engine: Any, opcode: str, **options: Any) -> list[Form]:
    found = [
        form
        for name, words in rows(engine.library)
        if name == opcode
        for form in covering(name, words, **options)
    ]
    assert found
    return found


def module_of(
    engine: Any, body: str, parameters: str = ".param .u64 out, .param .u64 in", before: str = ""
) -> Any:
    module = engine.module(
        ".version 8.8\n.target sm_90a\n.address_size 64\n"
        f"{before}\n.visible .entry k({parameters})\n{{\n.reg .pred %p<60>; .reg .b16 %h<60>; .reg .b32 %r<60>;"
        f".reg .b64 %d<60>; .reg .b128 %q<20>;\n{body}\nret;\n}}\n"
    )
    assert not module.log, module.log
    return module


# ---- loads and stores ----

SPACE = {
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "param::entry": "param",
    "param::func": "param",
}
KNOWN_SPACES = ("global", "shared", "local", "const", "param")


def _access(form: Form) -> tuple[str, str, int]:
    """Space (empty: generic), type, components."""
    space = next((SPACE.get(w, w) for w in form.words if SPACE.get(w, w) in KNOWN_SPACES), "")
    return space, form.words[-1], next((int(w[1:]) for w in form.words if w in ("v2", "v4")), 1)


def _registers(kind: str, count: int, first: int) -> str:
    names = [f"{REGISTER[max(width(kind), 16)]}{first + k}" for k in range(count)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"


def _fits(kind: str, count: int) -> bool:
    return width(kind) * count <= 128


@pytest.mark.parametrize("opcode", ["ld", "ldu"])
def test_every_kind_of_load(engine: Any, opcode: str) -> None:
    """From sixteen known bytes, in each space; what is narrow is extended by its sign."""
    data = bytes(
        [0x81, 0x92, 0xA3, 0xB4, 0x45, 0x56, 0x67, 0x78, 0x99, 0xAA, 0x3B, 0x4C, 0xDD, 0xEE, 0xFF, 0x10]
    )
    values = ", ".join(str(b) for b in data)
    before = f".const .align 16 .b8 c[16] = {{{values}}};\n.shared .align 16 .b8 s[16];\n"
    for form in forms_of(engine, opcode):
        space, kind, count = _access(form)
        if not _fits(kind, count) or (space == "param" and "param::func" in form.words):
            continue
        place = {"const": "c", "shared": "s", "local": "l", "param": "b"}.get(space, "%d1")
        hint = ", %d9" if "L2::cache_hint" in form.words else ""
        size = width(kind) // 8
        register = max(width(kind), 16)
        body = ".local .align 16 .b8 l[16]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.global.v2.u64 {%d3, %d4}, [%d1];\n"
        body += "st.shared.v2.u64 [s], {%d3, %d4}; st.local.v2.u64 [l], {%d3, %d4}; mov.u64 %d9, 0;\n"
        body += f"{form.name} {_registers(kind, count, 20)}, [{place}]{hint};\n"
        for k in range(count):
            body += f"st.global.b{register} [%d2+{k * register // 8}], {REGISTER[register]}{20 + k};\n"
        out = engine.device.put(np.zeros(32, "u1"))
        block = ".param .u64 out, .param .u64 in, .param .align 16 .b8 b[16]"
        module_of(engine, body, block, before).launch(out, engine.device.put(np.frombuffer(data, "u1")), data)
        want = b""
        for k in range(count):
            value = int.from_bytes(data[k * size : (k + 1) * size], "little")
            value = signed(value, width(kind)) if kind[0] == "s" else value
            want += (value % (1 << register)).to_bytes(register // 8, "little")
        assert out.array().tobytes()[: len(want)] == want, form.name


def test_every_kind_of_store(engine: Any) -> None:
    data = bytes(range(0x21, 0x31))
    for form in forms_of(engine, "st"):
        space, kind, count = _access(form)
        if not _fits(kind, count) or space in ("param", "const"):
            continue
        place = {"shared": "s", "local": "l"}.get(space, "%d2")
        size, register = width(kind) // 8, max(width(kind), 16)
        hint = ", %d9" if "L2::cache_hint" in form.words else ""
        body = (
            ".local .align 16 .b8 l[16]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u64 %d9, 0;\n"
        )
        body += "st.shared.v2.u64 [s], {%d9, %d9}; st.local.v2.u64 [l], {%d9, %d9};\n"
        for k in range(count):
            load = f"ld.global.b{register}" if width(kind) > 8 else "ld.global.u8"
            body += f"{load} {REGISTER[register]}{20 + k}, [%d1+{k * size}];\n"
        body += f"{form.name} [{place}], {_registers(kind, count, 20)}{hint};\n"
        if space in ("shared", "local"):
            body += f"ld.{space}.v2.u64 {{%d3, %d4}}, [{place}]; st.global.v2.u64 [%d2], {{%d3, %d4}};"
        out = engine.device.put(np.zeros(16, "u1"))
        source = np.frombuffer(data, "u1")
        module_of(engine, body, before=".shared .align 16 .b8 s[16];").launch(out, engine.device.put(source))
        want = data[: size * count].ljust(16, b"\0")
        assert out.array().tobytes() == want, form.name


# ---- atomics ----


def _viewed(kind: str) -> Callable[[int], int]:
    return (lambda v: signed(v, width(kind))) if kind[0] == "s" else (lambda v: v)


def _integer_step(operation: str, kind: str, old: int, b: int, c: int) -> int:
    bits = width(kind)
    view = _viewed(kind)
    result: int = {
        "and": lambda: old & b, "or": lambda: old | b, "xor": lambda: old ^ b, "exch": lambda: b,
        "cas": lambda: c if old == b else old, "add": lambda: old + b, "min": lambda: min(view(old), view(b)),
        "max": lambda: max(view(old), view(b)), "inc": lambda: 0 if old >= b else old + 1,
        "dec": lambda: b if old == 0 or old > b else old - 1,
    }[operation]()  # fmt: skip
    return result % (1 << bits)


def _real_step(operation: str, kind: str, old: int, b: int, *, flush: bool) -> int:
    fmt = FORMATS[kind]
    if operation != "add":
        return number.extreme(fmt, old, b, largest=operation == "max")
    total = number.add(fmt, fmt.flushed(old), fmt.flushed(b)) if flush else number.add(fmt, old, b)
    return fmt.flushed(total) if flush else total


def _step(operation: str, kind: str, old: int, b: int, c: int, *, in_global: bool) -> int:
    if kind in FORMATS:
        return _real_step(operation, kind, old, b, flush=in_global and kind == "f32")
    if kind.endswith("x2"):
        half = kind[:-2]
        parts = [
            _real_step(operation, half, old >> at & 0xFFFF, b >> at & 0xFFFF, flush=False) for at in (0, 16)
        ]
        return parts[0] | parts[1] << 16
    return _integer_step(operation, kind, old, b, c)


OPERATORS = ("and", "or", "xor", "exch", "add", "inc", "dec", "min", "max", "cas")
ATOMIC_PRODUCTS = (*OPERATORS, "global", "v2", "b32", "u32", "f16", "f16x2", "b16")


def _atomic_text(form: Form, kind: str, count: int, wanted: bool, shared: bool) -> str:
    """One element a thread: the place is [%d20] or [%r20]; results in 40.., operands in 30.. and 34.."""
    register = REGISTER[width(kind)]
    swaps = "cas" in form.words
    operands = [f"[{'%r20' if shared else '%d20'}]"]
    operands += ["{" + ", ".join(f"{register}{first + k}" for k in range(count)) + "}" if count > 1 else f"{register}{first}"
                 for first in ((30, 10) if swaps else (30,))]  # fmt: skip
    if wanted:
        operands.insert(
            0,
            "{" + ", ".join(f"{register}{40 + k}" for k in range(count)) + "}"
            if count > 1
            else f"{register}40",
        )
    return f"{form.name} {', '.join(operands)}{', %d9' if 'L2::cache_hint' in form.words else ''};"


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 13])
@pytest.mark.parametrize("opcode", ["atom", "red"])
def test_every_atomic_operation_on_every_type(engine: Any, opcode: str, step: int) -> None:
    for form in forms_of(engine, opcode, products=ATOMIC_PRODUCTS)[::step]:
        kind, operator = form.words[-1], next(w for w in form.words if w in OPERATORS)
        count = next((int(w[1:]) for w in form.words if w in ("v2", "v4", "v8")), 1)
        shared = any(w.startswith("shared") for w in form.words)
        bits = width(kind)
        if bits * count > 128:
            continue
        size = bits * count // 8
        chance = random.Random(form.name)
        values = pool(kind) if bits < 128 else (0, 1, 1 << 64, (1 << 128) - 1, 0xFEDCBA9876543210 << 60)
        old, b, c = ([chance.choice(values) for _ in range(LANES * count)] for _ in range(3))
        if operator == "cas":
            b = [x if chance.random() < 0.5 else y for x, y in zip(old, b, strict=True)]
        packed = [
            np.frombuffer(b"".join(v.to_bytes(bits // 8, "little") for v in column), "u1")
            for column in (old, b, c)
        ]
        register = REGISTER[bits]
        body = f"mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, {size}; mov.u64 %d9, 0;"
        body += "".join(
            f"ld.param.u64 %d{2 + k}, [p{k}]; add.u64 %d{2 + k}, %d{2 + k}, %d1;" for k in range(4)
        )
        for k in range(count):
            body += f"ld.global.b{bits} {register}{30 + k}, [%d3+{k * bits // 8}]; ld.global.b{bits} {register}{10 + k}, [%d4+{k * bits // 8}];"
        body = body.replace("%q30", "%q13").replace("%q10,", "%q14,")
        text = (
            _atomic_text(form, kind, count, opcode == "atom", shared)
            .replace("%q30", "%q13")
            .replace("%q10", "%q14")
            .replace("%q40", "%q15")
        )
        body += "mov.u64 %d20, %d2; cvt.u32.u64 %r21, %d1; mov.u32 %r20, s; add.u32 %r20, %r20, %r21;"
        for k in range(size // 2 if shared else 0):
            body += f"ld.global.b16 %h1, [%d2+{2 * k}]; st.shared.b16 [%r20+{2 * k}], %h1;"
        body += text
        for k in range(count if opcode == "atom" else 0):
            body += f"st.global.b{bits} [%d5+{k * bits // 8}], {register}{40 + k};".replace("%q40", "%q15")
        for k in range(size // 2 if shared else 0):
            body += f"ld.shared.b16 %h1, [%r20+{2 * k}]; st.global.b16 [%d2+{2 * k}], %h1;"
        fresh = type(engine)(engine.library)  # a device holds so many allocations
        place, second, third = (fresh.device.put(column) for column in packed)
        before_them = fresh.device.put(np.zeros(LANES * size, "u1"))
        parameters = ", ".join(f".param .u64 p{k}" for k in range(4))
        module_of(fresh, body, parameters, ".shared .align 16 .b8 s[2048];").launch(
            place, second, third, before_them, block=LANES
        )
        got = place.array().tobytes()
        for k in range(LANES * count):
            want = _step(operator, kind, old[k], b[k], c[k], in_global=not shared)
            found = int.from_bytes(got[k * bits // 8 : (k + 1) * bits // 8], "little")
            nan = kind == "f64" and FORMATS[kind].is_nan(want) and FORMATS[kind].is_nan(found)
            assert found == want or nan, (form.name, hex(old[k]), hex(b[k]), hex(found), hex(want))
        if opcode == "atom":
            assert before_them.array().tobytes() == packed[0].tobytes(), form.name
        fresh.close()


def test_atomics_of_many_workers_lose_nothing(engine: Any) -> None:
    forms = {
        "f16": ("add.noftz.f16", "u2", 0x3C00),
        "u64": ("add.u64", "u8", 1),
        "f32": ("add.f32", "f4", 1.0),
    }
    for name, (form, dtype, one) in forms.items():
        register = {"u2": "%h1", "u8": "%d3", "f4": "%r3"}[dtype]
        value = "0f3F800000" if name == "f32" else str(one)
        bits = {"u2": 16, "u8": 64, "f4": 32}[dtype]
        body = f"ld.param.u64 %d1, [out]; mov.b{bits} {register}, {value}; red.relaxed.gpu.global.{form} [%d1], {register};"
        out = engine.device.put(np.zeros(1, dtype))
        module_of(engine, body, ".param .u64 out").launch(out, grid=32, block=64, workers=4)
        want = number.FORMATS["f16"].rounded(Fraction(2048)) if name == "f16" else 2048
        assert out.array()[0] == want, name


def test_a_vector_atomic_may_write_over_what_it_reads(engine: Any) -> None:
    body = """ld.param.u64 %d1, [out]; mov.u32 %r1, 0f3F800000; mov.u32 %r2, 0f40000000;
    atom.global.v2.f32.add {%r2, %r1}, [%d1], {%r1, %r2}; st.global.v2.b32 [%d1+8], {%r2, %r1};"""
    out = engine.device.put(np.array([10, 20, 0, 0], "f4"))
    module_of(engine, body, ".param .u64 out").launch(out)
    assert out.array().tolist() == [11, 22, 10, 20]


def test_an_exchange_of_128_bits_is_never_seen_in_halves(engine: Any) -> None:
    """Each thread puts a pair of equal halves; what it takes out has equal halves too, and none is lost."""
    body = """ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r1, %r1, 64, %r2;
    cvt.u64.u32 %d3, %r1; add.u64 %d3, %d3, 1; mov.b128 %q1, {%d3, %d3}; atom.exch.relaxed.gpu.global.b128 %q2, [%d1], %q1;
    mul.wide.u32 %d4, %r1, 16; add.u64 %d2, %d2, %d4; st.global.b128 [%d2], %q2;"""
    place, seen = engine.device.put(np.zeros(2, "u8")), engine.device.put(np.zeros((2048, 2), "u8"))
    module_of(engine, body).launch(place, seen, grid=32, block=64, workers=4)
    pairs = np.vstack([seen.array(), place.array()[None]])
    np.testing.assert_array_equal(pairs[:, 0], pairs[:, 1])
    assert sorted(pairs[:, 0].tolist()) == list(range(2049))


@pytest.mark.parametrize("text", ["atom.global.v4.f32.add {%r1,%r2,%r3,%r4}, [%d1+4], {%r1,%r2,%r3,%r4};",
                                  "atom.exch.global.b128 %q1, [%d1+8], %q1;"])  # fmt: skip
def test_vectors_of_atomics_are_aligned_as_a_whole(engine: Any, text: str) -> None:
    out = engine.device.put(np.zeros(8, "u8"))
    body = f"ld.param.u64 %d1, [out]; mov.b128 %q1, {{%d1, %d1}}; {text}"
    assert module_of(engine, body, ".param .u64 out").run(out).status == engine.MISALIGNED


# ---- addresses, caches, fences ----


@pytest.mark.parametrize(
    "load", ["ld.global.s16 %n, [%d1]", "ld.global.v2.s16 {%m, %n}, [%d1]", "ld.global.s8 %n, [%d1+1]"]
)
def test_what_is_loaded_signed_into_16_bits_compares_as_16_bits(engine: Any, load: str) -> None:
    """Found by fuzzing: the sign went on into the bits above the register, where no store shows it."""
    out = engine.device.put(np.array([0x8000_8000, 0], "u4"))
    body = f""".reg .b16 %m, %n; .reg .pred %less; ld.param.u64 %d1, [out];
    {load}; setp.lo.u16 %less, %n, 0xFF81; selp.u32 %r1, 1, 0, %less; st.global.u32 [%d1+4], %r1;"""
    engine.body(body).launch(out)
    assert out.array()[1] == 1


def test_addresses_go_into_a_window_and_back(engine: Any) -> None:
    variables = {
        "shared": ".shared .align 4 .b8 v[8];",
        "local": "",
        "global": ".global .align 4 .b8 v[8];",
        "const": ".const .align 4 .b8 v[8];",
        "param": "",
    }
    for form in forms_of(engine, "cvta"):
        if form.words[0] == "to":
            continue
        space, bits = SPACE.get(form.words[0], form.words[0]), width(form.words[-1])
        if bits == 32 and space in ("global", "const"):
            continue  # device memory lies above what 32 bits reach
        register, place = REGISTER[bits], {"local": "l", "param": "out"}.get(space, "v")
        body = f".local .align 4 .b8 l[8]; ld.param.u64 %d9, [out]; mov.u{bits} {register}1, {place};"
        body += (
            f"{form.name} {register}2, {register}1; cvta.to.{'.'.join(form.words)} {register}3, {register}2;"
        )
        body += f"setp.eq.u{bits} %p1, {register}1, {register}3; selp.u32 %r10, 1, 0, %p1; st.global.u32 [%d9], %r10;"
        wide = "%d2" if bits == 64 else "%d4"
        body += "" if bits == 64 else "cvt.u64.u32 %d4, %r2;"
        for k, asked in enumerate(("global", "shared", "local", "param")):
            body += f"isspacep.{asked} %p2, {wide}; selp.u32 %r11, 1, 0, %p2; st.global.u32 [%d9+{4 + 4 * k}], %r11;"
        out = engine.device.put(np.zeros(5, "u4"))
        module_of(engine, body, ".param .u64 out", variables[space]).launch(out)
        kind = "global" if space == "const" else space
        assert out.array().tolist() == [
            1,
            *(int(kind == asked) for asked in ("global", "shared", "local", "param")),
        ], form.name


def test_every_form_of_isspacep(engine: Any) -> None:
    for form in forms_of(engine, "isspacep"):
        body = f"ld.param.u64 %d1, [out]; isspacep.{'.'.join(form.words)} %p1, %d1; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d1], %r1;"
        out = engine.device.put(np.full(1, 7, "u4"))
        module_of(engine, body, ".param .u64 out").launch(out)
        assert out.array()[0] == int(form.words[0] in ("global", "const")), form.name


def test_what_only_steers_caches_or_time_changes_nothing(engine: Any) -> None:
    operands = {"prefetch": "[%d1]", "prefetchu": "[%d1]", "applypriority": "[%d1], 128", "discard": "[%d1], 128",
                "createpolicy": "%d5", "membar": "", "fence": "", "nanosleep": "20", "pmevent": "1",
                "griddepcontrol": "", "setmaxnreg": "64"}  # fmt: skip
    for opcode, written in operands.items():
        for form in forms_of(engine, opcode):
            given = (
                "%d5, [%d1], 64, 128"
                if "range" in form.words
                else "%d5, %d6"
                if "cvt" in form.words
                else written
            )
            body = f"ld.param.u64 %d1, [out]; mov.u64 %d6, 0; {form.name} {given}; ld.global.u32 %r1, [%d1]; add.u32 %r1, %r1, 1; st.global.u32 [%d1], %r1;"
            out = engine.device.put(np.full(32, 6, "u4"))
            module_of(engine, body, ".param .u64 out").launch(out)
            assert out.array().tolist() == [7] + [6] * 31, form.name


# ---- barriers and what lanes do together ----


def _exchange(engine: Any, text: str, data: Any, results: int, block: int = LANES) -> Any:
    """`text` makes %r20.. of %r10 (the thread's number in `data`) and %p10 (whether it is odd)."""
    body = "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3;"
    body += f"mul.wide.u32 %d3, %r1, {4 * results}; add.u64 %d2, %d2, %d3; ld.global.u32 %r10, [%d1]; and.b32 %r11, %r10, 1; setp.ne.u32 %p10, %r11, 0;"
    body += text + "".join(f"st.global.u32 [%d2+{4 * k}], %r{20 + k};" for k in range(results))
    out = engine.device.put(np.zeros((block, results), "u4"))
    module_of(engine, body, before=".shared .align 8 .b8 s[512];").launch(
        out, engine.device.put(data), block=block
    )
    return out.array()


DATA = np.array(random.Random(5).choices([0, 1, 2, 2**31, 2**32 - 1, 77, 78, 1000003], k=LANES), "u4")


def test_every_form_of_a_block_barrier(engine: Any) -> None:
    """bar.… and barrier.…: what the other warp stored before is there afterwards."""
    for form in [*forms_of(engine, "bar"), *forms_of(engine, "barrier")]:
        if "warp" in form.words or "cluster" in form.words:
            continue
        if "arrive" in form.words:  # warp 1 arrives, warp 0 waits
            text = "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r10; setp.lt.u32 %p1, %r1, 32;"
            text += f"@!%p1 {form.name} 3, 64; @!%p1 bra END; bar.sync 3, 64; xor.b32 %r4, %r3, 128; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;"
            got = _exchange(engine, text + "ld.shared.u32 %r20, [%r5]; END:", DATA, 1)[:32, 0]
            np.testing.assert_array_equal(got, DATA[32:], form.name)
        elif "red" in form.words:
            kind = form.words[-1]
            to = "%p3" if kind == "pred" else "%r20"
            text = f"{form.name} {to}, 2, %p10; {'selp.u32 %r20, 1, 0, %p3;' if kind == 'pred' else ''}"
            odd = DATA & 1
            want = odd.sum() if "popc" in form.words else odd.all() if "and" in form.words else odd.any()
            np.testing.assert_array_equal(_exchange(engine, text, DATA, 1)[:, 0], int(want), form.name)
        else:
            text = "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r10;"
            text += f"{form.name} 1; xor.b32 %r5, %r3, 132; add.u32 %r5, %r5, %r2; ld.shared.u32 %r20, [%r5];"
            np.testing.assert_array_equal(
                _exchange(engine, text, DATA, 1)[:, 0], DATA[np.arange(LANES) ^ 33], form.name
            )


def test_every_form_of_a_cluster_barrier_waits_for_the_block(engine: Any) -> None:
    forms = [form for form in forms_of(engine, "barrier") if "cluster" in form.words]
    for arrive, wait in itertools.product(
        [f for f in forms if "arrive" in f.words], [f for f in forms if "wait" in f.words]
    ):
        text = "mov.u32 %r2, s; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r10;"
        text += f"{arrive.name}; {wait.name}; xor.b32 %r5, %r3, 132; add.u32 %r5, %r5, %r2; ld.shared.u32 %r20, [%r5];"
        np.testing.assert_array_equal(_exchange(engine, text, DATA, 1)[:, 0], DATA[np.arange(LANES) ^ 33])


def _members(sync: bool) -> str:
    return ", 0xffffffff" if sync else ""


def test_every_shuffle(engine: Any) -> None:
    """shfl.…: as the PTX ISA's pseudo-code has it, with segments and bounds."""
    for form in forms_of(engine, "shfl"):
        mode = next(w for w in form.words if w in ("up", "down", "bfly", "idx"))
        for distance, control in [(1, 0x1F), (3, 0x1807), (5, 0), (16, 0x1C1F), (31, 0x1F)]:
            control = control & ~0x1F if mode == "up" else control
            text = f"{form.name} %r20|%p2, %r10, {distance}, {control}{_members('sync' in form.words)}; selp.u32 %r21, 1, 0, %p2;"
            got = _exchange(engine, text, DATA, 2)
            for thread in range(LANES):
                lane, segment, clamp = thread % 32, control >> 8 & 31, control & 31
                top, low = (lane & segment) | (clamp & ~segment & 31), lane & segment
                source, inside = {
                    "up": (lane - distance, lane - distance >= top),
                    "down": (lane + distance, lane + distance <= top),
                    "bfly": (lane ^ distance, lane ^ distance <= top),
                    "idx": (low | (distance & ~segment & 31), (low | (distance & ~segment & 31)) <= top),
                }[mode] if mode != "up" else (lane - distance, lane - distance >= ((lane & segment) | (clamp & ~segment & 31)))  # fmt: skip
                want = DATA[thread - lane + (source if inside else lane)]
                assert got[thread].tolist() == [want, int(inside)], (form.name, distance, hex(control), lane)


def test_every_vote_match_and_reduction(engine: Any) -> None:
    """vote.…, match.…, redux.…, activemask.…, elect.…"""
    warps = DATA.reshape(-1, 32).tolist()

    def per_lane(function: Any) -> list[int]:
        return [int(function(warp, lane)) for warp in warps for lane in range(32)]

    def mask(truths: list[bool]) -> int:
        return sum(int(truth) << k for k, truth in enumerate(truths))

    votes: dict[str, Any] = {
        "all": lambda warp, _: all(v & 1 for v in warp), "any": lambda warp, _: any(v & 1 for v in warp),
        "uni": lambda warp, _: len({v & 1 for v in warp}) == 1, "ballot": lambda warp, _: mask([v & 1 for v in warp]),
    }  # fmt: skip
    for form in forms_of(engine, "vote"):
        mode = next(w for w in form.words if w in votes)
        to, after = ("%r20", "") if mode == "ballot" else ("%p2", "selp.u32 %r20, 1, 0, %p2;")
        text = f"{form.name} {to}, %p10{_members('sync' in form.words)}; {after}"
        assert _exchange(engine, text, DATA, 1)[:, 0].tolist() == per_lane(votes[mode]), form.name
    for form in forms_of(engine, "match"):
        value = "%r10" if form.words[-1] == "b32" else "%d9"
        before = "cvt.u64.u32 %d9, %r10; shl.b64 %d9, %d9, 32;"
        equal = "any" in form.words
        text = f"{before} {form.name} %r20, {value}, 0xffffffff;"
        want = per_lane(lambda warp, lane: mask([v == warp[lane] for v in warp])) if equal else [0] * LANES
        assert _exchange(engine, text, DATA, 1)[:, 0].tolist() == want, form.name
    reductions: dict[str, Any] = {"add": sum, "min": min, "max": max}
    logic: dict[str, Any] = {"and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    for form in forms_of(engine, "redux", products=("add", "and", "u32")):
        name, kind = form.words[1], form.words[-1]
        viewed = [[signed(v, 32) for v in warp] if kind == "s32" else warp for warp in warps]
        totals = [
            reductions[name](w) if name in reductions else list(itertools.accumulate(w, logic[name]))[-1]
            for w in viewed
        ]
        text = f"{form.name} %r20, %r10, 0xffffffff;"
        want = [total % (1 << 32) for total in totals for _ in range(32)]
        assert _exchange(engine, text, DATA, 1)[:, 0].tolist() == want, form.name
    (active,), (elect,) = forms_of(engine, "activemask"), forms_of(engine, "elect")
    text = f"{active.name} %r20; {elect.name} %r21|%p2, 0xffffff00; selp.u32 %r22, 1, 0, %p2;"
    got = _exchange(engine, text, DATA, 3)
    assert got.tolist() == [[0xFFFFFFFF, 8, int(lane == 8)] for lane in range(32)] * 2


def test_every_form_of_an_asynchronous_copy(engine: Any) -> None:
    for form in forms_of(engine, "cp"):
        hint = ", %d6" if "L2::cache_hint" in form.words else ""
        copies = "ca" in form.words or "cg" in form.words
        operands = {"wait_group": "0", "arrive": "[bar]"}
        given = (
            f"[s], [%d1], 16{hint}"
            if copies
            else next((o for w, o in operands.items() if w in form.words), "")
        )
        if "mbarrier" in form.words and not any(w.startswith("shared") for w in form.words):
            given = "[%d5]"
        body = "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u64 %d6, 0; mov.u64 %d7, bar; cvta.shared.u64 %d5, %d7;"
        body += f"mbarrier.init.shared.b64 [bar], 3; st.shared.v2.u64 [s], {{%d6, %d6}}; {form.name} {given};"
        body += (
            "ld.shared.v2.u64 {%d3, %d4}, [s]; st.global.v2.u64 [%d2], {%d3, %d4}; ld.shared.u64 %d8, [bar];"
        )
        body += "mbarrier.pending_count.b64 %r1, %d8; st.global.u32 [%d2+16], %r1;"
        out, source = engine.device.put(np.zeros(3, "u8")), engine.device.put(np.array([5, 6], "u8"))
        module_of(engine, body, before=".shared .align 16 .b8 s[16]; .shared .b64 bar;").launch(out, source)
        pending = 2 if "noinc" in form.words else 3
        assert out.array().tolist() == [*((5, 6) if copies else (0, 0)), pending], form.name


def test_every_form_of_an_mbarrier(engine: Any) -> None:
    """Of three arrivals, after the form: those still pending, and what it answers."""
    for form in forms_of(engine, "mbarrier"):
        space = next((w for w in form.words if w.startswith("shared")), "")
        place, mode = "[bar]" if space else "[%d5]", form.words[0]
        given, pending, answer = {
            "init": (f"{place}, 3", 3, 0),
            "inval": (place, 0, 0),
            "arrive": (f"_, {place}{', 0' if 'expect_tx' in form.words else ', 1' if 'noComplete' in form.words else ''}", 2, 0),
            "arrive_drop": (f"_, {place}{', 0' if 'expect_tx' in form.words else ', 1' if 'noComplete' in form.words else ''}", 2, 0),
            "expect_tx": (f"{place}, 0", 3, 0),
            "complete_tx": (f"{place}, 0", 3, 0),
            "test_wait": (f"%p1, {place}, {'1' if 'parity' in form.words else '%d9'}", 3, int("parity" in form.words)),
            "try_wait": (f"%p1, {place}, {'1' if 'parity' in form.words else '%d9'}", 3, int("parity" in form.words)),
            "pending_count": ("%r9, %d9", 3, 0),
        }[mode]  # fmt: skip
        body = "ld.param.u64 %d2, [out]; mov.u64 %d7, bar; cvta.shared.u64 %d5, %d7; setp.ne.u32 %p1, 0, 0;"
        body += f"mbarrier.init.shared.b64 [bar], 3; ld.shared.u64 %d9, [bar]; mov.u32 %r9, 3; {form.name} {given};"
        body += "selp.u32 %r2, 1, 0, %p1; ld.shared.u64 %d8, [bar]; mbarrier.pending_count.b64 %r1, %d8;"
        body += "st.global.v2.u32 [%d2], {%r1, %r2}; st.global.u32 [%d2+8], %r9;"
        out = engine.device.put(np.zeros(3, "u4"))
        module_of(engine, body, ".param .u64 out", ".shared .b64 bar;").launch(out)
        assert out.array().tolist() == [pending, answer, 3], form.name


def test_every_form_of_an_address_in_a_cluster(engine: Any) -> None:
    for form in [*forms_of(engine, "mapa"), *forms_of(engine, "getctarank")]:
        bits = width(form.words[-1])
        register = REGISTER[bits]
        text = f"ld.param.u64 %d9, [out]; mov.u{bits} {register}1, s; mov.u64 %d3, 7; mov.u32 %r3, 7;"
        if form.opcode == "mapa":
            text += f"{form.name} {register}2, {register}1, 0; setp.eq.u{bits} %p1, {register}1, {register}2; selp.u32 %r5, 1, 0, %p1;"
        else:
            text += f"{form.name} %r4, {register}1; setp.eq.u32 %p1, %r4, 0; selp.u32 %r5, 1, 0, %p1;"
        out = engine.device.put(np.zeros(1, "u4"))
        module_of(
            engine, text + "st.global.u32 [%d9], %r5;", ".param .u64 out", ".shared .align 8 .b8 s[8];"
        ).launch(out)
        assert out.array().tolist() == [1], form.name

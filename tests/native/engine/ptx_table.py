"""forms.def as the engine has it, form by form, and kernels that run many forms at once over edge values."""

# ruff: noqa: E501 -- tables
from __future__ import annotations

import ctypes
import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.native.engine.ptx_numbers import FORMATS
from tests.native.engine.ptx_operations import Operation, operation, width

LANES = 192  # of a kernel: six warps
REGISTERS = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}


@dataclass(frozen=True)
class Form:
    opcode: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        return ".".join((self.opcode, *self.words))


def rows(library: ctypes.CDLL) -> Iterator[tuple[str, str]]:
    opcode, words = ctypes.c_char_p(), ctypes.c_char_p()
    for index in itertools.count():
        if not library.engine_form(ctypes.c_size_t(index), ctypes.byref(opcode), ctypes.byref(words)):
            return
        assert opcode.value is not None
        assert words.value is not None
        yield opcode.value.decode(), words.value.decode()


def expanded(opcode: str, pattern: str) -> Iterator[Form]:
    choices = []
    for item in pattern.split():
        words = item.removesuffix("?").split("|")
        choices.append([*words, ""] if item.endswith("?") else words)
    for chosen in itertools.product(*choices):
        yield Form(opcode, tuple(word for word in chosen if word))


def _integers(bits: int) -> list[int]:
    top = 1 << bits
    edges = [0, 1, 2, 3, 7, 31, 32, 255, top // 2 - 1, top // 2, top // 2 + 1, top - 1, top - 2, top - 128]
    mixed = [0x123456789ABCDEF0 % top, 0xDEADBEEF0BADF00D % top, (top - 1) // 3, (top - 1) // 3 * 2]
    return [*edges, 1 << bits // 2, (1 << bits // 2) - 1, *mixed]


def _reals(kind: str) -> list[int]:
    fmt = FORMATS[kind]
    one = fmt.bias << fmt.fraction_bits
    unit = 1 << fmt.fraction_bits
    sizes = [0, 1, 2, unit // 3, unit - 1, unit, unit + 1, one - 1, one, one + 1, one + unit // 2, one + unit]
    sizes += [one - unit, one + 3 * unit + unit // 4, one + 7 * unit - 1, one + fmt.fraction_bits * unit + 1]
    sizes += [fmt.largest, fmt.largest - 1, fmt.nan]
    sizes += [fmt.infinity] if fmt.has_infinity else []
    if fmt.bits >= 32:  # integers' bounds, halves that round, what half precision cannot hold
        sizes += [
            fmt.rounded(_exact(x))
            for x in (2.5, 3.5, 127.5, 32767.5, 65519.9, 65520.0, 2**31, 2**32, 2**63, 2**64)
        ]
        sizes += [
            fmt.rounded(_exact(x)) for x in (6e-8, 2.0**-24, 2.0**-25, 448.0, 464.0, 57344.0, 61440.0, 1e-40)
        ]
    return sizes + [fmt.sign | size for size in sizes]


def _exact(value: float) -> Any:
    from fractions import Fraction

    return Fraction(value)


@functools.cache
def pool(kind: str) -> tuple[int, ...]:
    if kind == "pred":
        return (0, 1)
    if kind == "len":
        return (0, 1, 2, 5, 8, 15, 16, 31, 32, 33, 40, 63, 64, 65, 100, 127, 255, 256, 257, 2**32 - 1)
    if kind == "count":
        return (0, 1, 2, 3, 8, 32, 33, 2**32 - 1, 2**32 - 2, 2**32 - 3, 2**31)
    chance = random.Random(kind)
    if kind in ("f16x2", "bf16x2"):
        halves = pool(kind.removesuffix("x2"))
        return tuple(chance.choice(halves) << 16 | chance.choice(halves) for _ in range(400))
    if kind in ("e4m3x2", "e5m2x2"):
        return tuple(256 * chance.randrange(256) + low for low in range(256))
    extra = [chance.getrandbits(width(kind)) for _ in range(16)]
    return tuple((_reals(kind) if kind in FORMATS else _integers(width(kind))) + extra)


@functools.cache
def tuples(kinds: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """LANES combinations: every value of every source at least once, where there are so few."""
    chance = random.Random(repr(kinds))
    columns = []
    for kind in kinds:
        values = list(pool(kind))
        chance.shuffle(values)
        column = (values * (LANES // len(values) + 1))[:LANES] if len(values) < LANES else values[:LANES]
        chance.shuffle(column)
        columns.append(column)
    return tuple(zip(*columns, strict=True))


def bits_of(kind: str) -> int:
    return 32 if kind in ("len", "count", "pred") else width(kind)


@dataclass(frozen=True)
class Case:
    form: Form
    operation: Operation

    @functools.cached_property
    def expected(self) -> list[tuple[int, ...]]:
        return [self.operation.compute(values) for values in tuples(self.operation.sources)]


@functools.cache
def case_of(form: Form) -> Case | None:
    """None where the words do not go together."""
    made = operation(form.opcode, form.words)
    return Case(form, made) if made else None


def _load(kind: str, index: int, offset: int) -> tuple[str, str]:
    """Register and text for source `index`, `offset` bytes from the thread's place."""
    if kind == "pred":
        return (
            f"%p1{index}",
            f"ld.global.u32 %r1{index}, [%d1+{offset}]; setp.ne.u32 %p1{index}, %r1{index}, 0;",
        )
    register = f"{REGISTERS[bits_of(kind)]}1{index}"
    return register, f"ld.global.b{bits_of(kind)} {register}, [%d1+{offset}];"


def _store(kind: str, index: int, offset: int) -> tuple[str, str]:
    if kind == "pred":
        return (
            f"%p2{index}",
            f"selp.u32 %r2{index}, 1, 0, %p2{index}; st.global.u32 [%d2+{offset}], %r2{index};",
        )
    register = f"{REGISTERS[bits_of(kind)]}2{index}"
    return register, f"st.global.b{bits_of(kind)} [%d2+{offset}], {register};"


PREFILLED = 0x5555555555555555


def _prefill(kind: str, index: int) -> str:
    if kind == "pred":
        return f"setp.ne.u32 %p2{index}, 0, 0;"
    bits = bits_of(kind)
    return f"mov.b{bits} {REGISTERS[bits]}2{index}, {PREFILLED & ((1 << bits) - 1)};"


def _instructions(case: Case, source: int, target: int, step: int) -> str:
    """The form for all lanes, then, into `target` + 2 * step, for the odd ones only."""
    made = case.operation
    names, text = {}, []
    for index, kind in enumerate(made.sources):
        names["abcf"[index]], load = _load(kind, index, source + index * step)
        text.append(load)
    stores = []
    for index, kind in enumerate(made.results):
        names["de"[index]], store = _store(kind, index, target + index * step)
        stores.append(store)
    before, main, after = (part.format(**names) for part in (made.before, made.text, made.after))
    text += [before, main, after, *stores]
    text += [_prefill(kind, index) for index, kind in enumerate(made.results)]
    text += [before, f"@%p1 {main}", after]
    text += [_store(kind, index, target + (2 + index) * step)[1] for index, kind in enumerate(made.results)]
    return "\n".join(text)


REGISTER_TEXT = ".reg .pred %p<40>; .reg .b16 %h<40>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .b128 %q<4>;\n"


def kernel_text(cases: list[Case], target: int = 100) -> str:
    step = 8 * LANES
    body = "".join(
        _instructions(case, 4 * number * step, 4 * number * step, step) + "\n"
        for number, case in enumerate(cases)
    )
    return (
        f".version 8.8\n.target sm_{target}\n.address_size 64\n"
        f".visible .entry k(.param .u64 in, .param .u64 out)\n{{\n{REGISTER_TEXT}"
        "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d3, %r1, 8;\n"
        "add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3; and.b32 %r2, %r1, 1; setp.ne.u32 %p1, %r2, 0;\n"
        f"{body}ret;\n}}\n"
    )


def run(engine: Any, cases: list[Case]) -> list[str]:
    """What is wrong, a line for each form that is."""
    source = np.zeros((len(cases), 4, LANES), "u8")
    for number, case in enumerate(cases):
        for index, column in enumerate(zip(*tuples(case.operation.sources), strict=True)):
            source[number, index] = np.array(column, "u8")
    fresh = type(engine)(engine.library)  # a device holds so many allocations
    out = fresh.device.put(np.zeros((len(cases), 4, LANES), "u8"))
    module = fresh.module(kernel_text(cases))
    assert not module.log, module.log
    module.launch(fresh.device.put(source), out, block=LANES)
    got = out.array()
    fresh.close()
    return [line for number, case in enumerate(cases) if (line := _wrong(case, got[number]))]


def _agrees(case: Case, index: int, got: int, want: int) -> bool:
    near = case.operation.near
    return got == want or (near is not None and index == 0 and near(got, want))


def _wrong(case: Case, got: Any) -> str:
    inputs, results = tuples(case.operation.sources), case.operation.results
    for index, kind in enumerate(results):
        everywhere, odd = got[index].tolist(), got[2 + index].tolist()
        idle = 0 if kind == "pred" else PREFILLED & ((1 << bits_of(kind)) - 1)
        for lane, want in enumerate(case.expected):
            given = ", ".join(hex(value) for value in inputs[lane])
            if not _agrees(case, index, everywhere[lane], want[index]):
                return f"{case.form.name} ({given}) gives {everywhere[lane]:#x}, expected {want[index]:#x}"
            off = lane % 2 == 0
            if case.operation.after and index:
                continue
            if off and odd[lane] != idle:
                return f"{case.form.name} writes lanes that are off: {odd[lane]:#x}"
            if not off and not _agrees(case, index, odd[lane], want[index]):
                return f"{case.form.name} ({given}) under a guard gives {odd[lane]:#x}, expected {want[index]:#x}"
    return ""

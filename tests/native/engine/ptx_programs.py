"""Small random PTX programs, and what they do, thread by thread, by the reference of ptx_operations.py.

A program is a tree: instructions, branches on a predicate, loops whose count differs by thread, calls, and at
its top level what threads do together. `Program(seed)` is always the same one.
"""

# ruff: noqa: E501, ARG002, ARG005 -- lines of PTX; nodes and operators share their signatures
from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.native.engine.ptx_numbers import FORMATS
from tests.native.engine.ptx_operations import OPERATIONS, Operation, operation, width
from tests.native.engine.ptx_table import Form, bits_of, expanded, pool

REGISTERS = {1: 5, 16: 6, 32: 8, 64: 8}  # of each width
PREFIX = {1: "%p", 16: "%h", 32: "%r", 64: "%d"}
SLOT = 16  # bytes of memory that a thread has in a slot
SLOTS = 6
SPACES = ("shared", "global", "local")

Registers = dict[str, int]
Memory = dict[tuple[str, int], bytearray]


@dataclass
class Thread:
    number: int
    registers: Registers
    memory: Memory = field(default_factory=dict)


@functools.cache
def exact_forms(table: tuple[tuple[str, str], ...]) -> tuple[tuple[Form, Operation], ...]:
    """Forms with one right result. Of f64, and of signs, that is up to a payload, which the text makes equal."""
    found: dict[Form, Operation] = {}
    for opcode, pattern in table:
        if opcode not in OPERATIONS:
            continue
        for form in expanded(opcode, pattern):
            made = operation(form.opcode, form.words)
            if made is None or {"approx", "full", "b128"} & set(form.words):
                continue
            loose = made.results[0] in ("f16", "bf16", "f16x2", "bf16x2") and form.opcode in (
                "neg",
                "abs",
                "cvt",
            )
            if not loose:
                found[form] = made
    return tuple(found.items())


@functools.cache
def by_opcode(table: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[Form, Operation]]]:
    groups: dict[str, list[tuple[Form, Operation]]] = {}
    for form, made in exact_forms(table):
        groups.setdefault(form.opcode, []).append((form, made))
    return groups


class Node:
    def text(self) -> str:
        raise NotImplementedError

    def run(self, threads: Sequence[Thread], block: Sequence[Thread]) -> None:
        raise NotImplementedError


@dataclass
class Step(Node):
    """One instruction for every thread that is here, or for those whose guard holds."""

    lines: str
    act: Callable[[Thread], None]
    guard: str = ""  # a predicate's register
    negated: bool = False

    def text(self) -> str:
        if not self.guard:
            return self.lines
        return self.lines.replace("@GUARD", f"@{'!' if self.negated else ''}{self.guard}")

    def run(self, threads: Sequence[Thread], block: Sequence[Thread]) -> None:
        for thread in threads:
            if not self.guard or bool(thread.registers[self.guard]) != self.negated:
                self.act(thread)


@dataclass
class Branch(Node):
    label: int
    predicate: str
    then: list[Node]
    otherwise: list[Node]

    def text(self) -> str:
        then, otherwise = ("\n".join(node.text() for node in nodes) for nodes in (self.then, self.otherwise))
        n = self.label
        return f"@{self.predicate} bra T{n};\n{otherwise}\nbra.uni E{n};\nT{n}:\n{then}\nE{n}:"

    def run(self, threads: Sequence[Thread], block: Sequence[Thread]) -> None:
        taken = [thread for thread in threads if thread.registers[self.predicate]]
        others = [thread for thread in threads if not thread.registers[self.predicate]]
        for here, nodes in ((taken, self.then), (others, self.otherwise)):
            for node in nodes:
                node.run(here, block)


@dataclass
class Loop(Node):
    """As often as the low bits of a register say, at most three times more than none."""

    label: int
    counter: str
    source: str
    body: list[Node]

    def text(self) -> str:
        n, counter = self.label, self.counter
        inner = "\n".join(node.text() for node in self.body)
        return (
            f"and.b32 {counter}, {self.source}, 3;\nL{n}: setp.eq.u32 %q{n}, {counter}, 0; @%q{n} bra E{n};\n"
            f"{inner}\nsub.u32 {counter}, {counter}, 1; bra L{n};\nE{n}:"
        )

    def run(self, threads: Sequence[Thread], block: Sequence[Thread]) -> None:
        left = {thread.number: thread.registers[self.source] & 3 for thread in threads}
        here = [thread for thread in threads if left[thread.number]]
        while here:
            for node in self.body:
                node.run(here, block)
            for thread in here:
                left[thread.number] -= 1
            here = [thread for thread in here if left[thread.number]]


@dataclass
class Together(Node):
    """What all threads of the block do at once."""

    lines: str
    act: Callable[[Sequence[Thread]], None]

    def text(self) -> str:
        return self.lines

    def run(self, threads: Sequence[Thread], block: Sequence[Thread]) -> None:
        self.act(block)


class Program:
    def __init__(self, table: tuple[tuple[str, str], ...], seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.table = table
        self.labels = 0
        self.threads = self.chance.choice([1, 7, 31, 32, 33, 50, 64])
        self.functions: list[tuple[str, list[Node]]] = []
        self.nodes = [self._top() for _ in range(self.chance.randrange(8, 30))]
        self.inputs = [self._initial() for _ in range(self.threads)]

    # ---- making ----

    def _initial(self) -> Registers:
        registers: Registers = {}
        kinds = {
            16: ("f16", "bf16", "u16"),
            32: ("f32", "u32", "f16x2", "count"),
            64: ("f64", "u64"),
            1: ("pred",),
        }
        for bits, count in REGISTERS.items():
            for index in range(count):
                registers[f"{PREFIX[bits]}{index}"] = self.chance.choice(
                    pool(self.chance.choice(kinds[bits]))
                )
        return registers

    def _register(self, bits: int) -> str:
        return f"{PREFIX[bits]}{self.chance.randrange(REGISTERS[bits])}"

    def _label(self) -> int:
        self.labels += 1
        return self.labels

    def _top(self) -> Node:
        kind = self.chance.random()
        if kind < 0.12:
            return self._neighbour()
        if kind < 0.24:
            return self._across_lanes()
        return self._node(0)

    def _node(self, depth: int) -> Node:
        kind = self.chance.random()
        if depth < 3 and kind < 0.14:
            bodies = ([self._node(depth + 1) for _ in range(self.chance.randrange(0, 4))] for _ in range(2))
            return Branch(self._label(), self._register(1), *bodies)
        if depth < 2 and kind < 0.22:
            label = self._label()
            body = [self._node(depth + 1) for _ in range(self.chance.randrange(1, 4))]
            return Loop(label, f"%c{label}", self._register(32), body)
        if kind < 0.36:
            return self._memory()
        if kind < 0.40:
            return self._atomic()
        if kind < 0.44 and depth < 3:
            return self._call()
        return self._compute()

    def _guarded(self, lines: str, act: Callable[[Thread], None]) -> Step:
        if self.chance.random() < 0.3:
            return Step(lines, act, self._register(1), self.chance.random() < 0.5)
        return Step(lines.replace("@GUARD ", ""), act)

    def _source(self, kind: str) -> tuple[str, Callable[[Thread], int]]:
        bits = width(kind) if kind == "pred" else bits_of(kind)
        if bits > 1 and kind not in FORMATS and kind[-2:] != "x2" and self.chance.random() < 0.2:
            value = self.chance.choice(pool(kind)) & ((1 << bits) - 1)
            return str(value), lambda thread: value
        name = self._register(bits)
        return name, lambda thread: thread.registers[name]

    def _compute(self, only: str = "") -> Step:
        groups = by_opcode(self.table)
        _, made = self.chance.choice(groups[only or self.chance.choice(sorted(groups))])
        sources = [self._source(kind) for kind in made.sources]
        results: list[str] = []
        for kind in made.results:
            while (name := self._register(width(kind) if kind == "pred" else bits_of(kind))) in results:
                pass
            results.append(name)
        names = {"abcf"[k]: text for k, (text, _) in enumerate(sources)}
        names |= {"de"[k]: name for k, name in enumerate(results)}
        before, main, after = (part.format(**names) for part in (made.before, made.text, made.after))
        before = before.replace("%r38", "%t0")
        lines = f"{before} @GUARD {main} {self._canonical(made.results[0], results[0])}"

        def act(thread: Thread) -> None:
            values = tuple(read(thread) for _, read in sources)
            for kind, name, value in zip(made.results, results, made.compute(values), strict=True):
                thread.registers[name] = _one_nan(kind, value)

        if after:  # a carry, read behind it: all of it or nothing
            return Step(f"{before} {main} {after}", act)
        return self._guarded(lines, act)

    def _canonical(self, kind: str, name: str) -> str:
        """A NaN may have any payload: this one, from here on."""
        if kind not in ("f32", "f64"):
            return ""
        zero = "0f7FFFFFFF" if kind == "f32" else "0d7FF8000000000000"
        return (
            f"\n@GUARD testp.notanumber.{kind} %x0, {name}; @GUARD selp.{kind} {name}, {zero}, {name}, %x0;"
        )

    def _place(self, slot: int, space: str, offset: int) -> str:
        """Slot `slot` of this thread: an address that is a row over the threads, or scattered."""
        return f"[%{space[0]}{slot}+{offset}]" if space != "local" else f"[memory+{slot * SLOT + offset}]"

    def _memory(self) -> Step:
        kind = self.chance.choice(["u8", "s8", "u16", "s16", "b32", "u32", "b64", "f32", "f64"])
        size, count = width(kind) // 8, self.chance.choice([1, 1, 2, 4])
        count = count if size * count <= SLOT else 1
        space, slot = self.chance.choice(SPACES), self.chance.randrange(SLOTS)
        offset = self.chance.randrange(SLOT // (size * count)) * size * count
        bits = max(width(kind), 16)
        names: list[str] = []
        while len(names) < count:
            name = self._register(bits)
            if name not in names:
                names.append(name)
        vector = names[0] if count == 1 else "{" + ", ".join(names) + "}"
        suffix = f"{space}.{f'v{count}.' if count > 1 else ''}{kind}"
        place, key = self._place(slot, space, offset), (space, slot)
        mask = (1 << bits) - 1

        def load(thread: Thread) -> None:
            memory = thread.memory[key]
            for k, name in enumerate(names):
                at = offset + k * size
                value = int.from_bytes(memory[at : at + size], "little", signed=kind[0] == "s")
                thread.registers[name] = value & mask

        def store(thread: Thread) -> None:
            for k, name in enumerate(names):
                value = thread.registers[name] & ((1 << 8 * size) - 1)
                thread.memory[key][offset + k * size : offset + (k + 1) * size] = value.to_bytes(
                    size, "little"
                )

        if self.chance.random() < 0.5:
            return self._guarded(f"@GUARD ld.{suffix} {vector}, {place};", load)
        return self._guarded(f"@GUARD st.{suffix} {place}, {vector};", store)

    def _atomic(self) -> Step:
        operations: dict[str, Callable[[int, int, int], int]] = {
            "add": lambda old, b, m: (old + b) & m, "and": lambda old, b, m: old & b, "or": lambda old, b, m: old | b,
            "xor": lambda old, b, m: old ^ b, "exch": lambda old, b, m: b, "min": lambda old, b, m: min(old, b),
            "max": lambda old, b, m: max(old, b),
        }  # fmt: skip
        name, bits = self.chance.choice(sorted(operations)), self.chance.choice([32, 64])
        space, slot, size = self.chance.choice(SPACES[:2]), self.chance.randrange(SLOTS), bits // 8
        offset = self.chance.randrange(SLOT // size) * size
        letter = "b" if name in ("and", "or", "xor", "exch") else "u"
        to, source = self._register(bits), self._register(bits)
        lines = (
            f"@GUARD atom.{space}.{name}.{letter}{bits} {to}, {self._place(slot, space, offset)}, {source};"
        )

        def act(thread: Thread) -> None:
            memory = thread.memory[space, slot]
            old = int.from_bytes(memory[offset : offset + size], "little")
            new = operations[name](old, thread.registers[source], (1 << bits) - 1)
            memory[offset : offset + size] = new.to_bytes(size, "little")
            thread.registers[to] = old

        return self._guarded(lines, act)

    def _call(self) -> Step:
        """A function of a 32-bit and a 64-bit value, which has registers of its own."""
        index = len(self.functions)
        body = [
            self._compute(self.chance.choice(["add", "mul", "xor", "mad", "fma", "cvt", "setp", "selp"]))
            for _ in range(3)
        ]
        self.functions.append((f"f{index}", list(body)))
        to, a, b = self._register(32), self._register(32), self._register(64)
        lines = (
            f"{{ .param .b32 o; .param .b32 x; .param .b64 y; st.param.b32 [x], {a}; st.param.b64 [y], {b};\n"
            f"call.uni (o), f{index}, (x, y); ld.param.b32 {to}, [o]; }}"
        )

        def act(thread: Thread) -> None:
            inner = Thread(
                thread.number,
                {f"{PREFIX[bits]}{k}": 0 for bits, count in REGISTERS.items() for k in range(count)},
            )
            inner.registers["%r0"], inner.registers["%d0"] = thread.registers[a], thread.registers[b]
            for node in body:
                node.run([inner], [inner])
            thread.registers[to] = functools.reduce(
                lambda x, k: x ^ inner.registers[f"%r{k}"], range(REGISTERS[32]), 0
            )

        return Step(lines, act)

    def _neighbour(self) -> Node:
        """Behind a barrier, another thread's memory; and a barrier again, before it may change."""
        space, slot, distance = (
            self.chance.choice(SPACES[:2]),
            self.chance.randrange(SLOTS),
            self.chance.randrange(1, 40),
        )
        to, bits = self._register(32), 32
        lines = (
            f"bar.sync 0; add.u32 %t0, %tid.x, {distance}; rem.u32 %t0, %t0, %ntid.x; sub.s32 %t0, %t0, %tid.x;\n"
            f"mul.wide.s32 %t1, %t0, {SLOT}; add.s64 %t1, %t1, %{space[0]}{slot}; ld.{space}.u{bits} {to}, [%t1]; bar.sync 0;"
        )

        def act(block: Sequence[Thread]) -> None:
            values = [int.from_bytes(thread.memory[space, slot][:4], "little") for thread in block]
            for thread in block:
                thread.registers[to] = values[(thread.number + distance) % len(block)]

        return Together(lines, act)

    def _across_lanes(self) -> Node:
        kind = self.chance.choice(["shfl", "ballot", "redux"])
        to, source, predicate = self._register(32), self._register(32), self._register(1)
        step = self.chance.choice([1, 2, 5, 16])
        lines = {
            "shfl": f"activemask.b32 %t0; shfl.sync.bfly.b32 {to}|%x0, {source}, {step}, 31, %t0;",
            "ballot": f"activemask.b32 %t0; vote.sync.ballot.b32 {to}, {predicate}, %t0;",
            "redux": f"activemask.b32 %t0; redux.sync.add.u32 {to}, {source}, %t0;",
        }[kind]

        def act(block: Sequence[Thread]) -> None:
            for first in range(0, len(block), 32):
                warp = block[first : first + 32]
                values = [thread.registers[source] for thread in warp]
                ballot = sum((thread.registers[predicate] & 1) << lane for lane, thread in enumerate(warp))
                for lane, thread in enumerate(warp):
                    if kind == "shfl":
                        if lane ^ step < len(warp):  # what a lane that is not there holds is not defined
                            thread.registers[to] = values[lane ^ step]
                    else:
                        thread.registers[to] = ballot if kind == "ballot" else sum(values) & 0xFFFFFFFF

        if kind == "shfl":  # the lane's own where the partner is none
            lines += f"\nxor.b32 %t2, %laneid, {step}; shr.u32 %t3, %t0, %t2; and.b32 %t3, %t3, 1; setp.ne.u32 %x0, %t3, 0;"
            lines = lines.replace(f"{to}|%x0", "%t4|%x0") + f" @%x0 mov.b32 {to}, %t4;"
        return Together(lines, act)

    # ---- text ----

    def _declared(self) -> str:
        text = "".join(
            f".reg .b{bits} {PREFIX[bits]}<{count}>; " for bits, count in REGISTERS.items() if bits > 1
        )
        text += f".reg .pred %p<{REGISTERS[1]}>, %x0; .reg .b32 %t0, %t2, %t3, %t4; .reg .b64 %t1;"
        return text

    def _function(self, name: str, body: list[Node]) -> str:
        zero = "".join(
            f"mov.b{bits} {PREFIX[bits]}{k}, 0; "
            for bits, count in REGISTERS.items()
            if bits > 1
            for k in range(count)
        )
        zero += "".join(f"setp.ne.u32 %p{k}, 0, 0; " for k in range(REGISTERS[1]))
        fold = "".join(f"xor.b32 %r0, %r0, %r{k}; " for k in range(1, REGISTERS[32]))
        inner = "\n".join(node.text() for node in body)
        return (
            f".func (.param .b32 o) {name}(.param .b32 x, .param .b64 y)\n{{\n{self._declared()}\n{zero}\n"
            f"ld.param.b32 %r0, [x]; ld.param.b64 %d0, [y];\n{inner}\n{fold}\nst.param.b32 [o], %r0; ret;\n}}\n"
        )

    @functools.cached_property
    def layout(self) -> list[tuple[str, int]]:
        """Where each register lies in what a thread reads and writes: eight bytes each."""
        return [(f"{PREFIX[bits]}{k}", bits) for bits, count in REGISTERS.items() for k in range(count)]

    def _registers_from(self, base: str) -> str:
        text = ""
        for k, (name, bits) in enumerate(self.layout):
            if bits == 1:
                text += f"ld.global.u32 %t0, [{base}+{8 * k}]; setp.ne.u32 {name}, %t0, 0;\n"
            else:
                text += f"ld.global.b{bits} {name}, [{base}+{8 * k}];\n"
        return text

    def _registers_to(self, base: str) -> str:
        text = ""
        for k, (name, bits) in enumerate(self.layout):
            if bits == 1:
                text += f"selp.u32 %t0, 1, 0, {name}; st.global.u32 [{base}+{8 * k}], %t0;\n"
            else:
                text += f"st.global.b{bits} [{base}+{8 * k}], {name};\n"
        return text

    def text(self) -> str:
        body = "\n".join(node.text() for node in self.nodes)
        functions = "".join(self._function(name, nodes) for name, nodes in self.functions)
        size = 8 * len(self.layout)
        slots = "".join(f"mad.lo.u64 %g{s}, %t1, {SLOT}, {s * SLOT * 64}; mov.u64 %s{s}, %g{s}; add.u64 %g{s}, %g{s}, %mem; "
                        f"mov.u64 %base, table; add.u64 %s{s}, %s{s}, %base;\n" for s in range(SLOTS))  # fmt: skip
        zero = "".join(
            f"st.shared.v2.b64 [%s{s}], {{%zero, %zero}}; st.local.v2.b64 [memory+{SLOT * s}], {{%zero, %zero}};\n"
            for s in range(SLOTS)
        )
        return (
            f".version 8.8\n.target sm_100\n.address_size 64\n{functions}"
            f".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 mem)\n{{\n{self._declared()}\n"
            f".reg .b64 %g<{SLOTS}>, %s<{SLOTS}>, %mem, %base, %in, %out, %zero; .reg .pred %q<{self.labels + 1}>; .reg .b32 %c<{self.labels + 1}>;\n"
            f".shared .align 16 .b8 table[{SLOT * SLOTS * 64}]; .local .align 16 .b8 memory[{SLOT * SLOTS}];\n"
            "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %mem, [mem]; mov.u64 %zero, 0; mov.u32 %t0, %tid.x; cvt.u64.u32 %t1, %t0;\n"
            f"{slots}mad.lo.u64 %in, %t1, {size}, %in; mad.lo.u64 %out, %t1, {size}, %out;\n{zero}"
            f"{self._registers_from('%in')}{body}\n{self._registers_to('%out')}ret;\n}}\n"
        )

    # ---- running ----

    def expected(self) -> list[Registers]:
        block = [Thread(number, dict(registers)) for number, registers in enumerate(self.inputs)]
        for thread in block:
            thread.memory = {(space, slot): bytearray(SLOT) for space in SPACES for slot in range(SLOTS)}
        for node in self.nodes:
            node.run(block, block)
        return [thread.registers for thread in block]

    def packed(self, states: list[Registers]) -> bytes:
        return b"".join(state[name].to_bytes(8, "little") for state in states for name, _ in self.layout)


def _one_nan(kind: str, value: int) -> int:
    if kind in ("f32", "f64") and FORMATS[kind].is_nan(value):
        return 0x7FFFFFFF if kind == "f32" else 0x7FF8000000000000
    return value


def difference(engine: Any, program: Program) -> str:
    """Empty where the engine does with the program what the reference does."""
    import numpy as np

    size = len(program.packed(program.inputs))
    place = engine.device.put(np.frombuffer(program.packed(program.inputs), "u1"))
    out, memory = (
        engine.device.put(np.zeros(size, "u1")),
        engine.device.put(np.zeros(SLOT * SLOTS * 64, "u1")),
    )
    module = engine.module(program.text())
    if module.log:
        return str(module.log)
    outcome = module.run(place, out, memory, block=program.threads)
    if outcome.status != engine.OK:
        return str(outcome.message)
    got, want = out.array().tobytes(), program.packed(program.expected())
    for at in range(0, size, 8):
        if got[at : at + 8] != want[at : at + 8]:
            thread, register = divmod(at // 8, len(program.layout))
            found, wanted = (int.from_bytes(data[at : at + 8], "little") for data in (got, want))
            return f"thread {thread}: {program.layout[register][0]} is {found:#x}, expected {wanted:#x}"
    return ""

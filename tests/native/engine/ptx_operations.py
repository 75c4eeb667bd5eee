"""What each computing form of PTX does, one value at a time: the reference of the table test and the fuzzer.

`operation(opcode, words)` gives the instruction's text, the types it takes and makes, and a function from
bits to bits; None for words that no PTX has together; LookupError for an opcode that is not here.
"""

# ruff: noqa: E501 -- tables
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tests.native.engine import ptx_numbers as number
from tests.native.engine.ptx_numbers import FORMATS, Format, signed

Bits = tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    text: str  # with {d} {e} for results, {a} {b} {c} {f} for sources; one instruction
    sources: tuple[str, ...]
    results: tuple[str, ...]
    compute: Callable[[Bits], Bits]
    near: Callable[[int, int], bool] | None = None  # (got, want), where the result is not exact
    before: str = ""  # instructions around it
    after: str = ""


WIDTHS = {"pred": 1, "b128": 128, "e4m3x2": 16, "e5m2x2": 16, "tf32": 32, "f16x2": 32, "bf16x2": 32}
WIDTHS |= {"u16x2": 32, "s16x2": 32, "bf16": 16}
MODES = ("rn", "rz", "rm", "rp", "rna")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")


def width(kind: str) -> int:
    return WIDTHS.get(kind) or int(kind[1:])


def is_float(kind: str) -> bool:
    return kind in FORMATS or kind in ("f16x2", "bf16x2")


def operation(opcode: str, words: tuple[str, ...]) -> Operation | None:
    try:
        return OPERATIONS[opcode](opcode, words)
    except KeyError as missing:
        raise LookupError(f"no reference for {opcode}.{'.'.join(words)}: {missing}") from missing


def _text(opcode: str, words: tuple[str, ...], operands: str) -> str:
    return f"{'.'.join((opcode, *words))} {operands};"


def _plain(
    opcode: str, words: tuple[str, ...], kinds: tuple[str, ...], result: str, compute: Callable[..., int],
    near: Callable[[int, int], bool] | None = None,
) -> Operation:  # fmt: skip
    names = ("{a}", "{b}", "{c}", "{f}")[: len(kinds)]
    mask = (1 << width(result)) - 1
    return Operation(
        _text(opcode, words, ", ".join(("{d}", *names))),
        kinds,
        (result,),
        lambda v: (compute(*v) & mask,),
        near,
    )


# ---- integers ----


def _view(kind: str) -> Callable[[int], int]:
    bits = width(kind)
    return (lambda v: signed(v, bits)) if kind[0] == "s" else (lambda v: v)


def _quotient(x: int, y: int) -> int:
    if y == 0:
        return -1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _clamped(value: int, kind: str) -> int:
    bits = width(kind)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _pairwise(compute: Callable[..., int], bits: int = 16) -> Callable[..., int]:
    mask = (1 << bits) - 1

    def both(*values: int) -> int:
        return sum((compute(*(v >> at & mask for v in values)) & mask) << at for at in (0, bits))

    return both


TWO: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "min": min,
    "max": max,
    "div": _quotient,
    "rem": lambda x, y: x - y * _quotient(x, y) if y else x,
}


def _arithmetic(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1] if words[-1] != "relu" else words[-2]  # max.s32.relu, as NVRTC writes it
    if kind in ("u16x2", "s16x2"):
        view, relu = _view(kind[:3]), "relu" in words
        compute = TWO[opcode]
        return _plain(
            opcode, words, (kind,) * 2, kind,
            _pairwise(lambda x, y: max(compute(view(x), view(y)), 0 if relu else -(1 << 20))),
        )  # fmt: skip
    if is_float(kind):
        return _real_arithmetic(opcode, words)
    if "cc" in words or opcode in ("addc", "subc"):
        return _carry(opcode, words)
    view, bits = _view(kind), width(kind)
    compute = TWO[opcode]
    if "wide" in words:
        wide = f"{kind[0]}{2 * bits}"
        return _plain(opcode, words, (kind,) * 2, wide, lambda x, y: view(x) * view(y))
    if "hi" in words:
        return _plain(opcode, words, (kind,) * 2, kind, lambda x, y: view(x) * view(y) >> bits)
    if "sat" in words:
        return _plain(
            opcode, words, (kind,) * 2, kind, lambda x, y: _clamped(compute(view(x), view(y)), kind)
        )
    if "relu" in words:
        return _plain(opcode, words, (kind,) * 2, kind, lambda x, y: max(compute(view(x), view(y)), 0))
    return _plain(opcode, words, (kind,) * 2, kind, lambda x, y: compute(view(x), view(y)))


def _carry(opcode: str, words: tuple[str, ...]) -> Operation | None:
    """With the carry set before where the last source is not zero, and read afterwards."""
    kind, takes = words[-1], opcode.endswith("c")
    bits, negative = width(kind), opcode.startswith("sub")
    products = opcode.startswith("mad")
    view = _view(kind)
    count = 3 if products else 2

    def compute(values: Bits) -> Bits:
        *v, flag = values
        carry = int(flag != 0) if takes else 0
        if products:
            product = view(v[0]) * view(v[1])
            product = product >> bits if "hi" in words else product
            total = (product % (1 << bits)) + v[2] + carry
        else:
            total = v[0] - v[1] - carry if negative else v[0] + v[1] + carry
        out = int(not 0 <= total < 1 << bits)
        return total % (1 << bits), out if "cc" in words else int(flag != 0)

    names = ["{a}", "{b}", "{c}", "{f}"]
    before = f"add.cc.u32 %r38, {names[count]}, -1;"
    text = _text(opcode, words, ", ".join(("{d}", *names[:count])))
    return Operation(
        text, (kind,) * count + ("u32",), (kind, "u32"), compute, None, before, "addc.u32 {e}, 0, 0;"
    )


def _multiply_add(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    if is_float(kind):
        return _real_arithmetic("fma", words, opcode)
    if "cc" in words or opcode == "madc":
        return _carry(opcode, words)
    view, bits = _view(kind), width(kind)
    if "wide" in words:
        wide = f"{kind[0]}{2 * bits}"
        return _plain(opcode, words, (kind, kind, wide), wide, lambda x, y, z: view(x) * view(y) + z)
    shift = bits if "hi" in words else 0

    def compute(x: int, y: int, z: int) -> int:
        total = (view(x) * view(y) >> shift) + view(z)
        return _clamped(total, kind) if "sat" in words else total

    return _plain(opcode, words, (kind,) * 3, kind, compute)


def _low24(kind: str) -> Callable[[int], int]:
    return lambda v: signed(v & 0xFFFFFF, 24) if kind[0] == "s" else v & 0xFFFFFF


def _multiply24(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind, view = words[-1], _low24(words[-1])
    shift = 16 if "hi" in words else 0
    if opcode == "mul24":
        return _plain(opcode, words, (kind,) * 2, kind, lambda x, y: view(x) * view(y) >> shift)
    if "sat" in words:
        return _plain(
            opcode,
            words,
            (kind,) * 3,
            kind,
            lambda x, y, z: _clamped((view(x) * view(y) >> 16) + signed(z, 32), kind),
        )
    return _plain(opcode, words, (kind,) * 3, kind, lambda x, y, z: (view(x) * view(y) >> shift) + z)


def _sad(opcode: str, words: tuple[str, ...]) -> Operation | None:
    view = _view(words[-1])
    return _plain(opcode, words, (words[-1],) * 3, words[-1], lambda x, y, z: abs(view(x) - view(y)) + z)


def _negate(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    if is_float(kind):
        return _sign_operation(opcode, words)
    view = _view(kind)
    return _plain(opcode, words, (kind,), kind, (lambda x: -x) if opcode == "neg" else lambda x: abs(view(x)))


def _dot(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kinds = words[-2:]

    def parts(value: int, bits: int, kind: str) -> list[int]:
        pieces = [value >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
        return [signed(p, bits) for p in pieces] if kind[0] == "s" else pieces

    def compute(x: int, y: int, z: int) -> int:
        left = parts(x, 8 if opcode == "dp4a" else 16, kinds[0])
        right = parts(y, 8, kinds[1])
        if opcode == "dp2a":
            right = right[2:] if "hi" in words else right[:2]
        return z + sum(p * q for p, q in zip(left, right, strict=True))

    return _plain(opcode, words, ("u32",) * 3, "u32", compute)


def _video(opcode: str, words: tuple[str, ...]) -> Operation | None:
    count, name = int(opcode[-1]), opcode[1:-1]
    bits = 32 // count
    comparison = next((w for w in words if w in ORDERED), "")
    kinds = words[:2] if name == "set" else words[1:3]

    def lanes(value: int, kind: str) -> list[int]:
        parts = [value >> at & ((1 << bits) - 1) for at in range(0, 32, bits)]
        return [signed(p, bits) for p in parts] if kind[0] == "s" else parts

    compute: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "avrg": lambda x, y: (x + y + (x + y >= 0)) // 2,
        "absdiff": lambda x, y: abs(x - y),
        "min": min,
        "max": max,
        "set": lambda x, y: int((x > y) - (x < y) in ORDERED[comparison]),
    }

    def whole(a: int, b: int, c: int) -> int:
        values = [compute[name](x, y) for x, y in zip(lanes(a, kinds[0]), lanes(b, kinds[1]), strict=True)]
        if "sat" in words:
            values = [_clamped(value, f"{words[0][0]}{bits}") for value in values]
        if "add" in words:
            return c + sum(values)
        return sum((value & ((1 << bits) - 1)) << k * bits for k, value in enumerate(values))

    return _plain(opcode, words, ("u32",) * 3, "u32", whole)


# ---- bits ----


def _logic(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    compute: dict[str, Callable[..., int]] = {
        "and": lambda x, y: x & y,
        "or": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
        "not": lambda x: ~x,
        "cnot": lambda x: int(x == 0),
    }
    return _plain(opcode, words, (kind,) * (1 if "not" in opcode else 2), kind, compute[opcode])


def _shift(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind, bits = words[-1], width(words[-1])
    view = _view(kind)
    compute = (lambda x, n: x << min(n, bits)) if opcode == "shl" else (lambda x, n: view(x) >> min(n, bits))
    return _plain(opcode, words, (kind, "u32"), kind, compute)


def _funnel(opcode: str, words: tuple[str, ...]) -> Operation | None:
    def compute(a: int, b: int, n: int) -> int:
        n = n & 31 if "wrap" in words else min(n, 32)
        whole = b << 32 | a
        return whole << n >> 32 if "l" in words else whole >> n

    return _plain(opcode, words, ("b32", "b32", "u32"), "b32", compute)


def _count(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind, bits = words[-1], width(words[-1])
    if opcode == "brev":
        return _plain(opcode, words, (kind,), kind, lambda x: int(f"{x:0{bits}b}"[::-1], 2))
    if opcode == "popc":
        return _plain(opcode, words, (kind,), "u32", lambda x: x.bit_count())
    if opcode == "clz":
        return _plain(opcode, words, (kind,), "u32", lambda x: bits - x.bit_length())

    def find(x: int) -> int:
        x = ~signed(x, bits) if kind[0] == "s" and signed(x, bits) < 0 else x
        found = x.bit_length() - 1
        return bits - 1 - found if "shiftamt" in words and found >= 0 else found

    return _plain(opcode, words, (kind,), "u32", find)


def _field(opcode: str, words: tuple[str, ...]) -> Operation | None:
    """Bit by bit, as the PTX ISA writes it."""
    kind, bits = words[-1], width(words[-1])

    def extract(a: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        if not length:
            return 0
        sign = a >> min(position + length - 1, bits - 1) & 1 if kind[0] == "s" else 0
        return sum(
            ((a >> i + position & 1) if i < length and i + position < bits else sign) << i
            for i in range(bits)
        )

    def insert(a: int, b: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        for i in range(length):
            if i + position < bits:
                b = b & ~(1 << i + position) | (a >> i & 1) << i + position
        return b

    if opcode == "bfe":
        return _plain(opcode, words, (kind, "len", "len"), kind, extract)
    return _plain(opcode, words, (kind, kind, "len", "len"), kind, insert)


def _mask(opcode: str, words: tuple[str, ...]) -> Operation | None:
    def compute(a: int, b: int) -> int:
        if "wrap" in words:
            a, b = a & 31, b & 31
        a, b = min(a, 32), min(b, 32)
        return ((1 << b) - 1) << a

    return _plain(opcode, words, ("len", "len"), "b32", compute)


def _extend(opcode: str, words: tuple[str, ...]) -> Operation | None:
    def compute(a: int, n: int) -> int:
        n = n & 31 if "wrap" in words else min(n, 32)
        low = a & ((1 << n) - 1)
        return signed(low, n) if words[-1] == "s32" and n else low

    return _plain(opcode, words, (words[-1], "len"), words[-1], compute)


def _nth(opcode: str, words: tuple[str, ...]) -> Operation | None:
    def compute(mask: int, base: int, offset: int) -> int:
        offset = signed(offset, 32)
        if offset == 0:
            return base if base < 32 and mask >> base & 1 else -1
        places = range(base, 32) if offset > 0 else range(min(base, 31), -1, -1) if base < 32 else ()
        found = [at for at in places if mask >> at & 1]
        return found[abs(offset) - 1] if len(found) >= abs(offset) else -1

    return _plain(opcode, words, ("u32", "len", "count"), "u32", compute)


def _lop3(opcode: str, words: tuple[str, ...]) -> Operation | None:
    table = 0xCA

    def d(x: int, y: int, z: int) -> int:
        return sum(
            (table >> ((x >> k & 1) << 2 | (y >> k & 1) << 1 | z >> k & 1) & 1) << k for k in range(32)
        )

    if len(words) == 1:
        return Operation(
            _text(opcode, words, "{d}, {a}, {b}, {c}, 202"), ("b32",) * 3, ("b32",), lambda v: (d(*v),)
        )

    def compute(v: Bits) -> Bits:
        value = d(*v[:3])
        return value, int(value != 0 or v[3] != 0) if "or" in words else int(value != 0 and v[3] != 0)

    text = _text(opcode, words, "{d}|{e}, {a}, {b}, {c}, 202, {f}")
    return Operation(text, ("b32", "b32", "b32", "pred"), ("b32", "pred"), compute)


PERMUTATIONS = {
    "f4e": ["3210", "4321", "5432", "6543"], "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"], "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"], "rc16": ["1010", "3232", "1010", "3232"],
}  # fmt: skip


def _permute(opcode: str, words: tuple[str, ...]) -> Operation | None:
    def compute(a: int, b: int, c: int) -> int:
        source = a | b << 32
        if len(words) > 1:
            selectors = [int(s) for s in reversed(PERMUTATIONS[words[1]][c & 3])]
        else:
            selectors = [c >> 4 * k & 15 for k in range(4)]
        result = 0
        for k, selector in enumerate(selectors):
            byte = source >> 8 * (selector & 7) & 255
            byte = (255 if byte & 128 else 0) if selector & 8 else byte
            result |= byte << 8 * k
        return result

    return _plain(opcode, words, ("b32",) * 3, "b32", compute)


# ---- moves, selections, comparisons ----


def _move(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    if kind == "b128":
        return Operation(
            "mov.b128 {{{d}, {e}}}, %q1;", ("b64", "b64"), ("b64", "b64"), lambda v: (v[1], v[0]), None,
            "mov.b128 %q0, {{{b}, {a}}}; mov.b128 %q1, %q0;",
        )  # fmt: skip
    return _plain(opcode, words, (kind,), kind, lambda x: x)


def _select(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    return _plain(opcode, words, (kind, kind, "pred"), kind, lambda x, y, p: x if p else y)


def _select_by_sign(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind, by = words[-2:]
    f32 = FORMATS["f32"]

    def compute(x: int, y: int, c: int) -> int:
        if by == "s32":
            return x if signed(c, 32) >= 0 else y
        order = number.compare(f32, f32.flushed(c) if "ftz" in words else c, 0)
        return x if order is not None and order >= 0 else y

    return _plain(opcode, words, (kind, kind, by), kind, compute)


ORDERED = {"eq": (0,), "ne": (-1, 1), "lt": (-1,), "le": (-1, 0), "gt": (1,), "ge": (0, 1)}
UNSIGNED_ONLY = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _holds(comparison: str, kind: str, ftz: bool) -> Callable[[int, int], bool] | None:
    """None where the type has no such comparison."""
    if not is_float(kind):
        if comparison in UNSIGNED_ONLY:
            if kind[0] != "u":
                return None
            comparison = UNSIGNED_ONLY[comparison]
        if comparison not in ORDERED or (kind[0] == "b" and comparison not in ("eq", "ne")):
            return None
        view, wanted = _view(kind), ORDERED[comparison]
        return lambda x, y: ((view(x) > view(y)) - (view(x) < view(y))) in wanted
    if comparison in UNSIGNED_ONLY:
        return None
    fmt = FORMATS[kind]

    def holds(x: int, y: int) -> bool:
        order = number.compare(fmt, fmt.flushed(x), fmt.flushed(y)) if ftz else number.compare(fmt, x, y)
        if comparison in ("num", "nan"):
            return (order is None) == (comparison == "nan")
        unordered = comparison.endswith("u")
        return unordered if order is None else order in ORDERED[comparison.removesuffix("u")]

    return holds


def _combined(words: tuple[str, ...], first: bool, other: int) -> int:
    operator = next((w for w in words if w in ("and", "or", "xor")), None)
    if operator is None:
        return int(first)
    return {"and": first and other != 0, "or": first or other != 0, "xor": first != (other != 0)}[operator]


def _set_predicate(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind, ftz = words[-1], "ftz" in words
    pair = kind.endswith("x2")
    holds = _holds(words[0], kind.removesuffix("x2"), ftz)
    if holds is None:
        return None
    combines = any(w in words for w in ("and", "or", "xor"))
    text = _text(opcode, words, "{d}|{e}, {a}, {b}" + (", {c}" if combines else ""))

    def compute(v: Bits) -> Bits:
        a, b, other = v[0], v[1], v[2] if combines else 0
        if pair:
            p, q = holds(a & 0xFFFF, b & 0xFFFF), holds(a >> 16, b >> 16)
        else:
            p = holds(a, b)
            q = not p
        return int(_combined(words, p, other)), int(_combined(words, q, other))

    return Operation(text, (kind, kind) + (("pred",) if combines else ()), ("pred", "pred"), compute)


TRUE = {
    "f32": 0x3F800000,
    "f16": 0x3C00,
    "bf16": 0x3F80,
    "u32": 2**32 - 1,
    "s32": 2**32 - 1,
    "u16": 65535,
    "s16": 65535,
}


def _set(opcode: str, words: tuple[str, ...]) -> Operation | None:
    to, kind = words[-2:]
    holds = _holds(words[0], kind.removesuffix("x2"), "ftz" in words)
    if holds is None:
        return None
    combines = any(w in words for w in ("and", "or", "xor"))
    pair = kind.endswith("x2")
    true = TRUE[to.removesuffix("x2")] & (0xFFFF if pair else 0xFFFFFFFF)

    def compute(a: int, b: int, other: int = 0) -> int:
        if pair:
            return sum(
                true << at
                for at in (0, 16)
                if _combined(words, holds(a >> at & 0xFFFF, b >> at & 0xFFFF), other)
            )
        return true if _combined(words, holds(a, b), other) else 0

    return _plain(opcode, words, (kind, kind) + (("pred",) if combines else ()), to, compute)


def _test(opcode: str, words: tuple[str, ...]) -> Operation | None:
    fmt = FORMATS[words[-1]]

    def compute(x: int) -> int:
        size = x & (fmt.sign - 1)
        zero, subnormal = size == 0, fmt.is_subnormal(x)
        finite = not fmt.is_nan(x) and not fmt.is_infinite(x)
        return int(
            {
                "finite": finite, "infinite": fmt.is_infinite(x), "number": not fmt.is_nan(x),
                "notanumber": fmt.is_nan(x), "normal": finite and not zero and not subnormal, "subnormal": subnormal,
            }[words[0]]
        )  # fmt: skip

    return _plain(opcode, words, (words[-1],), "pred", compute)


# ---- floating point ----


def _mode(words: tuple[str, ...]) -> str:
    return next((w for w in words if w in MODES), "rn")


def _flushes(fmt: Format, words: tuple[str, ...]) -> Callable[[int], int]:
    return fmt.flushed if "ftz" in words else lambda bits: bits


def _finish(fmt: Format, words: tuple[str, ...], bits: int) -> int:
    if "sat" in words:
        bits = number.saturated(fmt, bits)
    if "relu" in words:
        bits = fmt.nan if fmt.is_nan(bits) else 0 if fmt.negative(bits) else bits
    return fmt.flushed(bits) if "ftz" in words else bits


def _real_arithmetic(opcode: str, words: tuple[str, ...], name: str = "") -> Operation | None:
    kind = words[-1]
    pair, element = kind.endswith("x2"), kind.removesuffix("x2")
    fmt, mode = FORMATS[element], _mode(words)
    flush = _flushes(fmt, words)
    approximate = "approx" in words or "full" in words

    def compute(*values: int) -> int:
        v = [flush(x) for x in values]
        if opcode in ("min", "max"):
            return _finish(fmt, words, _extreme(fmt, opcode, words, v, values))
        if opcode == "sub":
            v[1] ^= fmt.sign if not fmt.is_nan(v[1]) else 0
        result = {
            "add": lambda: number.add(fmt, v[0], v[1], mode),
            "sub": lambda: number.add(fmt, v[0], v[1], mode),
            "mul": lambda: number.multiply(fmt, v[0], v[1], mode),
            "div": lambda: number.divide(fmt, v[0], v[1], mode),
            "fma": lambda: number.fused(fmt, v[0], v[1], v[2], mode),
        }[opcode]()
        return _finish(fmt, words, result)

    count = 3 if opcode == "fma" else 2
    near = _same(element, 2 if approximate else 0)
    if pair:
        near = _both(near)
    return _plain(name or opcode, words, (kind,) * count, kind, _pairwise(compute) if pair else compute, near)


def _extreme(fmt: Format, opcode: str, words: tuple[str, ...], v: list[int], given: tuple[int, ...]) -> int:
    magnitudes = [x & (fmt.sign - 1) for x in v] if "abs" in words else v
    result = magnitudes[0]
    for other in magnitudes[1:]:
        result = number.extreme(fmt, result, other, largest=opcode == "max", nan="NaN" in words)
    if "xorsign" in words and not fmt.is_nan(result):
        result = result & (fmt.sign - 1) | ((given[0] ^ given[1]) & fmt.sign)
    return result


def _ordinal(fmt: Format, bits: int) -> int:
    size = bits & (fmt.sign - 1)
    return -size if fmt.negative(bits) else size


def _same(kind: str, units: int = 0, payload: bool = False) -> Callable[[int, int], bool]:
    """Equal bits, up to `units` in the last place. NaN of f64 (and with `payload`) may be any."""
    fmt = FORMATS[kind]

    def near(got: int, want: int) -> bool:
        if got == want:
            return True
        if fmt.is_nan(want):
            return fmt.is_nan(got) and (kind == "f64" or payload)
        if not units or fmt.is_nan(got):
            return False
        return abs(_ordinal(fmt, got) - _ordinal(fmt, want)) <= units

    return near


def _both(near: Callable[[int, int], bool]) -> Callable[[int, int], bool]:
    return lambda got, want: near(got & 0xFFFF, want & 0xFFFF) and near(got >> 16, want >> 16)


def _three_extremes(opcode: str, words: tuple[str, ...]) -> Operation | None:
    """Of f32 with .abs and without .xorsign: three sources."""
    fmt, flush = FORMATS["f32"], _flushes(FORMATS["f32"], words)

    def compute(*values: int) -> int:
        return _finish(fmt, words, _extreme(fmt, opcode, words, [flush(x) for x in values], values))

    return _plain(opcode, words, ("f32",) * 3, "f32", compute, _same("f32"))


def _minimum(opcode: str, words: tuple[str, ...]) -> Operation | None:
    if words[-1] == "f32" and "abs" in words and "xorsign" not in words:
        return _three_extremes(opcode, words)
    return _arithmetic(opcode, words)


def _sign_operation(opcode: str, words: tuple[str, ...]) -> Operation | None:
    kind = words[-1]
    element = kind.removesuffix("x2")
    fmt, flush = FORMATS[element], _flushes(FORMATS[element], words)

    def compute(x: int) -> int:
        return flush(x) ^ fmt.sign if opcode == "neg" else flush(x) & (fmt.sign - 1)

    if kind != element:
        return _plain(opcode, words, (kind,), kind, _pairwise(compute), _both(_same(element, payload=True)))
    return _plain(opcode, words, (kind,), kind, compute, _same(element, payload=True))


def _copy_sign(opcode: str, words: tuple[str, ...]) -> Operation | None:
    fmt = FORMATS[words[-1]]
    return _plain(opcode, words, (words[-1],) * 2, words[-1], lambda a, b: a & fmt.sign | b & (fmt.sign - 1))


def _one_real(opcode: str, words: tuple[str, ...]) -> Operation | None:
    """rcp, sqrt, rsqrt: exact rounding, and for .approx an error in units of the last place."""
    kind, mode = words[-1], _mode(words)
    fmt = FORMATS[kind]
    flush = _flushes(fmt, words)
    one = fmt.bias << fmt.fraction_bits

    def compute(x: int) -> int:
        x = flush(x)
        if opcode == "sqrt":
            return _finish(fmt, words, number.root(fmt, x, mode))
        if opcode == "rcp":
            return _finish(fmt, words, number.divide(fmt, one, x, mode))
        if x & (fmt.sign - 1) == 0:
            return fmt.infinity | x & fmt.sign
        if fmt.is_nan(x) or fmt.negative(x):
            return fmt.nan
        return 0 if fmt.is_infinite(x) else fmt.rounded(number.square_root(1 / fmt.value(x)))

    if "approx" not in words:
        return _plain(opcode, words, (kind,), kind, compute, _same(kind))
    if kind == "f64" and "ftz" in words:  # the upper half of the number, 20 bits of fraction
        return _plain(opcode, words, (kind,), kind, compute, _relative(kind, Fraction(1, 1 << 20)))
    return _plain(
        opcode, words, (kind,), kind, compute, _same(kind, {"rcp": 1, "sqrt": 1, "rsqrt": 2}[opcode])
    )


def _relative(kind: str, error: Fraction, absolute: Fraction = Fraction(0)) -> Callable[[int, int], bool]:
    fmt, same = FORMATS[kind], _same(kind, payload=True)

    def near(got: int, want: int) -> bool:
        if same(got, want):
            return True
        if any(fmt.is_nan(x) or fmt.is_infinite(x) for x in (got, want)):
            return False
        x, y = fmt.value(got), fmt.value(want)
        return abs(x - y) <= max(abs(y) * error, absolute)

    return near


def _library(opcode: str, words: tuple[str, ...]) -> Operation | None:
    """The approximations, against the C library in double, within the error that the PTX ISA states."""
    kind = words[-1]
    element = kind.removesuffix("x2")
    fmt = FORMATS[element]
    flush = _flushes(fmt, words) if element == "f32" else lambda x: x

    def function(x: float) -> float:
        if opcode == "ex2":
            return math.inf if x >= 1024 else 2.0**x
        if opcode == "lg2":
            return math.nan if x < 0 else -math.inf if x == 0 else math.log2(x)
        if opcode == "tanh":
            return math.tanh(x)
        return math.nan if math.isinf(x) else math.sin(x) if opcode == "sin" else math.cos(x)

    def compute(x: int) -> int:
        x = flush(x)
        if fmt.is_nan(x):
            return fmt.nan
        value = float(fmt.value(x)) if not fmt.is_infinite(x) else -math.inf if fmt.negative(x) else math.inf
        result = (
            function(-0.0 if x == fmt.sign else value)
            if not (opcode == "lg2" and value == math.inf)
            else math.inf
        )
        if math.isnan(result):
            return fmt.nan
        if math.isinf(result):
            return fmt.infinity | (fmt.sign if result < 0 else 0)
        bits = fmt.rounded(Fraction(result), zero_sign=math.copysign(1, result) < 0)
        return fmt.flushed(bits) if "ftz" in words and element == "f32" else bits

    error = {
        ("ex2", "f32"): Fraction(1, 1 << 22), ("lg2", "f32"): Fraction(1, 1 << 22), ("sin", "f32"): Fraction(1, 1 << 20),
        ("cos", "f32"): Fraction(1, 1 << 20), ("tanh", "f32"): Fraction(1, 1 << 11), ("ex2", "f16"): Fraction(1, 900),
        ("ex2", "bf16"): Fraction(1, 128), ("tanh", "f16"): Fraction(1, 2000), ("tanh", "bf16"): Fraction(1, 256),
    }[opcode, element]  # fmt: skip
    near = _relative(element, error, Fraction(1, 1 << 20) if opcode in ("sin", "cos", "lg2") else Fraction(0))
    if kind != element:
        return _plain(opcode, words, (kind,), kind, _pairwise(compute), _both(near))
    return _plain(opcode, words, (kind,), kind, compute, near)


# ---- conversions ----


def _convert(opcode: str, words: tuple[str, ...]) -> Operation | None:
    if words[0] == "pack":
        return _convert_pack(opcode, words)
    to, kind = words[-2:]
    if to in ("e4m3x2", "e5m2x2") or kind in ("e4m3x2", "e5m2x2"):
        return _convert_eighths(opcode, words)
    if to in ("f16x2", "bf16x2"):
        narrow = _real_to_real(words, to.removesuffix("x2"), "f32")
        return _plain(opcode, words, ("f32", "f32"), "b32", lambda a, b: narrow(a) << 16 | narrow(b))
    if is_float(to) and is_float(kind):
        return _plain(
            opcode,
            words,
            (kind,),
            to,
            _real_to_real(words, to, kind),
            _same(to, payload=width(to) >= width(kind)),
        )
    if is_float(to):
        return _integer_to_real(opcode, words)
    if is_float(kind):
        return _real_to_integer(opcode, words)
    view = _view(kind)
    register = f"{to[0]}{max(width(to), 16)}"

    def compute(x: int) -> int:
        value = view(x & ((1 << width(kind)) - 1))
        value = _clamped(value, to) if "sat" in words else value
        return _view(to)(value & ((1 << width(to)) - 1))

    return _plain(opcode, words, (f"{kind[0]}{max(width(kind), 16)}",), register, compute)


def _real_to_real(words: tuple[str, ...], to: str, kind: str) -> Callable[[int], int]:
    source, target = FORMATS[kind], FORMATS[to]
    mode = next((w for w in words if w in INTEGRAL), None)

    def compute(x: int) -> int:
        if "ftz" in words and kind == "f32":
            x = source.flushed(x)
        if source.is_nan(x):
            bits = target.nan if to != "tf32" else 0x7FFFE000
        elif source.is_infinite(x):
            bits = (target.infinity if target.has_infinity else target.largest) | (
                target.sign if source.negative(x) else 0
            )
        else:
            value = source.value(x)
            value = Fraction(number.integral(value, mode)) if mode else value
            sign = source.negative(x)
            if to == "tf32":
                bits = number.to_tf32(value, _mode(words), zero_sign=sign)
            else:
                bits = target.rounded(value, _mode(words), zero_sign=sign)
        if "satfinite" in words and target.is_infinite(bits):
            bits = bits & target.sign | (0x7F7FE000 if to == "tf32" else target.largest)
        if "sat" in words:
            bits = number.saturated(target, bits)
        if "relu" in words and not target.is_nan(bits):
            bits = 0 if target.negative(bits) else bits
        return target.flushed(bits) if "ftz" in words and to == "f32" else bits

    return compute


def _integer_to_real(opcode: str, words: tuple[str, ...]) -> Operation | None:
    to, kind = words[-2:]
    fmt, view = FORMATS[to], _view(kind)

    def compute(x: int) -> int:
        bits = fmt.rounded(Fraction(view(x & ((1 << width(kind)) - 1))), _mode(words))
        return number.saturated(fmt, bits) if "sat" in words else bits

    return _plain(opcode, words, (f"{kind[0]}{max(width(kind), 16)}",), to, compute)


def _real_to_integer(opcode: str, words: tuple[str, ...]) -> Operation | None:
    to, kind = words[-2:]
    fmt, bits = FORMATS[kind], width(to)
    mode = next(w for w in words if w in INTEGRAL)

    def compute(x: int) -> int:
        x = fmt.flushed(x) if "ftz" in words else x
        if fmt.is_nan(x):
            value = 1 << bits - 1 if kind == "f64" or bits == 64 else 0
        elif fmt.is_infinite(x):
            value = _clamped(-(1 << 70) if fmt.negative(x) else 1 << 70, to)
        else:
            value = _clamped(number.integral(fmt.value(x), mode), to)
        return _view(to)(value & ((1 << bits) - 1))

    return _plain(opcode, words, (kind,), f"{to[0]}{max(bits, 16)}", compute)


def _convert_eighths(opcode: str, words: tuple[str, ...]) -> Operation | None:
    to, kind = words[-2:]
    if to == "f16x2":
        one = _real_to_real(words, "f16", kind.removesuffix("x2"))
        return _plain(opcode, words, (kind,), "f16x2", lambda x: one(x >> 8) << 16 | one(x & 255))
    narrow = _real_to_real(words, to.removesuffix("x2"), kind.removesuffix("x2"))
    if kind == "f16x2":
        return _plain(opcode, words, (kind,), to, lambda x: narrow(x >> 16) << 8 | narrow(x & 0xFFFF))
    return _plain(opcode, words, ("f32", "f32"), to, lambda a, b: narrow(a) << 8 | narrow(b))


def _convert_pack(opcode: str, words: tuple[str, ...]) -> Operation | None:
    to = words[2]
    bits = width(to)
    mask = (1 << bits) - 1

    def compute(a: int, b: int, c: int = 0) -> int:
        low, high = (_clamped(signed(v, 32), to) & mask for v in (b, a))
        return c << 2 * bits | high << bits | low

    return _plain(opcode, words, ("s32",) * 2 + (("b32",) if len(words) == 5 else ()), "b32", compute)


OPERATIONS: dict[str, Callable[[str, tuple[str, ...]], Operation | None]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "addc", "subc"), _arithmetic),
    **dict.fromkeys(("min", "max"), _minimum),
    **dict.fromkeys(("mad", "fma", "madc"), _multiply_add),
    **dict.fromkeys(("mul24", "mad24"), _multiply24),
    **dict.fromkeys(("neg", "abs"), _negate),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "brev", "bfind"), _count),
    **dict.fromkeys(("bfe", "bfi"), _field),
    **dict.fromkeys(("dp4a", "dp2a"), _dot),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt"), _one_real),
    **dict.fromkeys(("sin", "cos", "lg2", "ex2", "tanh"), _library),
    **{f"v{name}{count}": _video for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for count in (2, 4)},
    "sad": _sad, "shf": _funnel, "bmsk": _mask, "szext": _extend, "fns": _nth, "lop3": _lop3, "prmt": _permute,
    "mov": _move, "selp": _select, "slct": _select_by_sign, "setp": _set_predicate, "set": _set, "testp": _test,
    "copysign": _copy_sign, "cvt": _convert,
}  # fmt: skip

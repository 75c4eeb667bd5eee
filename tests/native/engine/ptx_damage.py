"""Damage to PTX text, always the same for a seed: what a parser must refuse or run, and no worse."""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import random
import re
from typing import Any

WORDS = [b".f32", b".u64", b".b8", b".v4", b".shared", b".local", b".param", b"%r1", b"%rd1", b"%p1", b"{", b"}", b"(",
         b"[", b"]", b";", b",", b"0", b"-1", b"4294967295", b"18446744073709551615", b"0f7FC00000", b"ret;", b"@", b"_",
         b".pred", b".align 1024", b"call", b"<100000>", b"[9999999999]", b"bar.sync 3, 64;", b"bra.uni",
         b".reg .v4 .f32 %v;", b"%v.x", b".b128", b".alias f, g;", b"0xFF00(f)", b"= {1, 2, 3}", b"[]", b"WARP_SZ", b".v8",
         b"cp.async.ca.shared.global [%r1], [%rd1], 16, %r1;", b"mbarrier.init.shared.b64 [%r1], 1;", b"|%p1", b"// ",
         b"mbarrier.try_wait.parity.b64 %p1, [%rd1], %r1;", b"barrier.cluster.wait;", b"generic(", b"/*", b"\"", b"-"]  # fmt: skip


def _exchanged(text: bytes, chance: random.Random) -> bytes:
    """Types, registers and numbers in the wrong places: what still parses, and more."""
    tokens = list(re.finditer(rb"\.[usbf]\d+|%\w+|\b\d+\b|\.v[24]|\[%\w+\+?", text))
    for _ in range(chance.choice([1, 1, 2, 4])):
        place, other = chance.choice(tokens), chance.choice(tokens)
        if place.end() <= len(text):
            text = text[: place.start()] + other.group() + text[place.end() :]
    return text


def damaged(text: bytes, chance: random.Random) -> bytes:
    data = bytearray(text)
    kind = chance.randrange(6)
    if kind == 0:
        return bytes(data[: chance.randrange(len(data))])
    if kind >= 4:
        return _exchanged(text, chance)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        at = chance.randrange(len(data))
        if kind == 1:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            word = chance.choice(WORDS)
            data[at : at + chance.choice([0, len(word)])] = word
        else:  # lines exchanged, doubled, removed
            lines = bytes(data).split(b"\n")
            a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[a : a + chance.choice([0, 1])] = [lines[b]] * chance.choice([0, 1, 2])
            data = bytearray(b"\n".join(lines))
        if not data:
            break
    return bytes(data)


def try_text(engine: Any, text: bytes) -> str:
    """Refused with a reason, or every kernel runs to an end with a status: else what was wrong."""
    import numpy as np

    try:
        module = engine.module(text)
    except engine.LoadError as refused:
        named = refused.status in (engine.BAD_PTX, engine.UNSUPPORTED)
        return (
            ""
            if named and refused.log
            else f"refused with status {refused.status} and the log {refused.log!r}"
        )
    memory = engine.device.put(np.zeros(4096, "u4"))
    for index in range(engine.library.module_kernel_count(module.handle)):
        name = module.name_of(index)
        arguments = [memory.address] * module.describe(name).parameter_count
        outcome = module.run(*arguments, name=name, grid=2, block=64, shared=1024, timeout_s=0.05)
        if outcome.status != engine.OK and not outcome.message:
            return f"kernel {name} ends with status {outcome.status} and no message"
    return ""

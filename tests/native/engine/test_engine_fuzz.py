"""Damaged texts never crash the engine, and never run without end.

Run it under sanitizers too: build with -DALIQUOT_SANITIZE=ON, then
ALIQUOT_ENGINE_LIBRARY=…/libengine_under_test.so LD_PRELOAD="$(gcc -print-file-name=libasan.so)"
ASAN_OPTIONS=detect_leaks=0 pytest tests/native/engine
"""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ROUNDS = int(os.environ.get("ALIQUOT_FUZZ_ROUNDS", "6"))
TEXTS = ["numba_vector_add_f64", "numba_matmul_32", "numba_reduce_shuffle", "numba_print", "numba_softmax",
         "nvrtc_functions", "nvrtc_warp", "nvrtc_constant", "nvrtc_struct", "nvrtc_generic", "nvrtc_convert",
         "nvrtc_switch", "nvrtc_atomics", "nvrtc_debug", "nvrtc_half", "nvrtc_carry", "nvrtc_divergent_barrier"]  # fmt: skip
WORDS = [b".f32", b".u64", b".b8", b".v4", b".shared", b".local", b".param", b"%r1", b"%rd1", b"%p1", b"{", b"}", b"(",
         b"[", b"]", b";", b",", b"0", b"-1", b"4294967295", b"18446744073709551615", b"0f7FC00000", b"ret;", b"@", b"_",
         b".pred", b".align 1024", b"call", b"<100000>", b"[9999999999]", b"bar.sync 3, 64;", b"bra.uni"]  # fmt: skip


def _exchanged(text: bytes, chance: random.Random) -> bytes:
    """Types, registers and numbers in the wrong places: what still parses, and more."""
    tokens = list(re.finditer(rb"\.[usbf]\d+|%\w+|\b\d+\b|\.v[24]|\[%\w+\+?", text))
    for _ in range(chance.choice([1, 1, 2, 4])):
        place, other = chance.choice(tokens), chance.choice(tokens)
        if place.end() <= len(text):
            text = text[: place.start()] + other.group() + text[place.end() :]
    return text


def _damaged(text: bytes, chance: random.Random) -> bytes:
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


def _refusal(engine: Any, load: Callable[[], Any]) -> tuple[int, str] | Any:
    """What `load` gives, or the status and log with which it was refused."""
    try:
        return load()
    except engine.LoadError as failed:
        return failed.status, failed.log


def _run_all(engine: Any, text: bytes) -> None:
    module = _refusal(engine, lambda: engine.module(text))
    if isinstance(module, tuple):
        assert module[0] in (engine.BAD_PTX, engine.UNSUPPORTED)
        assert module[1]
        return
    memory = engine.device.put(np.zeros(4096, "u4"))
    for index in range(engine.library.module_kernel_count(module.handle)):
        name = module.name_of(index)
        count = module.describe(name).parameter_count
        arguments = [memory.address] * count
        outcome = module.run(*arguments, name=name, grid=2, block=64, shared=1024, timeout_s=0.05)
        assert outcome.status == engine.OK or outcome.message


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text_is_refused_or_runs_to_an_end(engine: Any, name: str) -> None:
    text = (engine.texts / f"{name}.ptx").read_bytes()
    for seed in range(ROUNDS):
        fresh = type(engine)(engine.library)
        _run_all(fresh, _damaged(text, random.Random(f"{name} {seed}")))
        fresh.close()


def test_linking_damaged_texts_is_refused_or_gives_text(engine: Any) -> None:
    texts = [
        (engine.texts / f"{name}.ptx").read_bytes() for name in ("numba_device_call", "nvrtc_numba_helper")
    ]
    chance = random.Random(3)
    for _ in range(ROUNDS * 5):
        damaged = [_damaged(text, chance) for text in texts]
        merged = _refusal(engine, lambda damaged=damaged: engine.link(*damaged))  # type: ignore[misc]
        assert merged[1] if isinstance(merged, tuple) else merged.startswith(b".version")


@pytest.mark.parametrize(
    "text",
    [
        ".reg .b32 %r<4294967295>; mov.u32 %r4000000000, 1;",
        ".local .b8 huge[1000000000000]; mov.u64 %d1, huge;",
        ".shared .b8 huge[1000000000000]; mov.u64 %d1, huge;",
        "{" * 100 + "}" * 100,
        "mov.b64 %d1, {" + ",".join(["%r1"] * 5000) + "};",
        "add.s32 " + ",".join(["%r1"] * 5000) + ";",
        "add" + ".s32" * 100 + " %r1, %r1, %r1;",
        "L: " * 1 + "bra L" + ";" * 1000,
        "mov.u32 %r1, 0x" + "f" * 100 + ";",
        "mov.f64 %g1, " + "9" * 300 + ".5e" + "9" * 20 + ";",
        "mov.f32 %f1, 1e999;",
    ],
)
def test_texts_made_to_exhaust_memory_or_the_parser(engine: Any, text: str) -> None:
    module = _refusal(engine, lambda: engine.body(text))
    assert not isinstance(module, tuple) or module[1]

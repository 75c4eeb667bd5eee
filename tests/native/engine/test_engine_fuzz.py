"""Random programs do what the reference does; damaged texts never crash the engine, and never run without end.

A short run: `tools/fuzz_engine.py --minutes 10` does the same under sanitizers. So can these tests: build with
-DALIQUOT_SANITIZE=ON, then ALIQUOT_ENGINE_LIBRARY=…/libengine_under_test.so
LD_PRELOAD="$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 pytest tests/native/engine
"""

# ruff: noqa: E501 -- lines of PTX
from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.native.engine.ptx_damage import damaged, try_text
from tests.native.engine.ptx_programs import Program, difference
from tests.native.engine.ptx_table import rows

ROUNDS = int(os.environ.get("ALIQUOT_FUZZ_ROUNDS", "6"))
TEXTS = ["numba_vector_add_f64", "numba_matmul_32", "numba_reduce_shuffle", "numba_print", "numba_softmax",
         "nvrtc_functions", "nvrtc_warp", "nvrtc_constant", "nvrtc_struct", "nvrtc_generic", "nvrtc_convert",
         "nvrtc_switch", "nvrtc_atomics", "nvrtc_debug", "nvrtc_half", "nvrtc_carry", "nvrtc_divergent_barrier"]  # fmt: skip


def _refusal(engine: Any, load: Callable[[], Any]) -> tuple[int, str] | Any:
    """What `load` gives, or the status and log with which it was refused."""
    try:
        return load()
    except engine.LoadError as failed:
        return failed.status, failed.log


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text_is_refused_or_runs_to_an_end(engine: Any, name: str) -> None:
    text = (engine.texts / f"{name}.ptx").read_bytes()
    for seed in range(ROUNDS):
        fresh = type(engine)(engine.library)
        assert not try_text(fresh, damaged(text, random.Random(f"{name} {seed}")))
        fresh.close()


def test_linking_damaged_texts_is_refused_or_gives_text(engine: Any) -> None:
    texts = [
        (engine.texts / f"{name}.ptx").read_bytes() for name in ("numba_device_call", "nvrtc_numba_helper")
    ]
    chance = random.Random(3)
    for _ in range(ROUNDS * 5):
        texts_now = [damaged(text, chance) for text in texts]
        merged = _refusal(engine, lambda texts_now=texts_now: engine.link(*texts_now))  # type: ignore[misc]
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


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_programs_do_what_the_reference_does(engine: Any, first: int) -> None:
    table = tuple(rows(engine.library))
    for seed in range(first, first + (ROUNDS * 4 if first == 0 else 400)):
        fresh = type(engine)(engine.library)
        assert not difference(fresh, Program(table, seed)), f"seed {seed}"
        fresh.close()

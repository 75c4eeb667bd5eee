#!/usr/bin/env python3
"""Fuzz the engine of the software GPU, under AddressSanitizer and UndefinedBehaviorSanitizer.

    .venv/bin/python tools/fuzz_engine.py --minutes 10     programs and damaged texts, half of the time each
    ... --what texts --seed 7                              the parser alone, from seed 7 on
    ... --what programs --seed 12 --count 1 --show         one program, printed

Programs are tests/native/engine/ptx_programs.py: each runs in every compilation of the engine that this
processor has, and every register of every thread is compared with the reference. Texts are those of
tests/native/engine/ptx, damaged: the engine may refuse them or run them, in bounded time and memory.
Everything follows from the seed; a find is reported with its own. Exit status 1 where there is one.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import resource
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
LEVELS = (b"base", b"v3", b"v4")
HANGS_AFTER_S = 120
MOST_MIB = 1536  # that one text may add to the process; sanitizers triple what the engine takes
LOAD_S = 20


def library(plain: bool) -> Path:
    """The engine behind ctypes, as the tests have it; with sanitizers unless `plain`."""
    sys.path.insert(0, str(ROOT))
    from tests.native.cmake_build import cmake_build

    build = ROOT / "build" / "native" if plain else BUILD
    sanitize = ["-DALIQUOT_SANITIZE=ON", "-DALIQUOT_PARTS=softgpu", f"-DALIQUOT_NATIVE_OUTPUT={BUILD}/out"]
    cmake_build(build, "engine_under_test", [] if plain else sanitize)
    (found,) = build.rglob("libengine_under_test.so")
    return found


# ---- the process that may die ----


def _engine(path: str) -> tuple[Any, Any]:
    sys.path.insert(0, str(ROOT))
    from tests.native.engine import conftest

    loaded = conftest.typed(ctypes.CDLL(path))
    return conftest.Engine, loaded


def run_programs(path: str, seeds: Iterator[int], show: bool) -> None:
    engine_class, loaded = _engine(path)
    from tests.native.engine.ptx_programs import Program, difference
    from tests.native.engine.ptx_table import rows

    table = tuple(rows(loaded))
    levels = [level for level in LEVELS if loaded.engine_level(level)]
    for seed in seeds:
        print("seed", seed, flush=True)
        program = Program(table, seed)
        if show:
            print(program.text())
        for level in levels:
            loaded.engine_level(level)
            engine = engine_class(loaded)
            if wrong := difference(engine, program):
                print(f"find program {seed}, {level.decode()}: {wrong}", flush=True)
            engine.close()


def run_texts(path: str, seeds: Iterator[int], show: bool) -> None:
    engine_class, loaded = _engine(path)
    from tests.native.engine.ptx_damage import damaged, try_text

    texts = [file.read_bytes() for file in sorted((ROOT / "tests/native/engine/ptx").glob("*.ptx"))]
    for seed in seeds:
        print("seed", seed, flush=True)
        chance = random.Random(seed)
        text = damaged(chance.choice(texts), chance)
        if show:
            sys.stdout.buffer.write(text)
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
        engine = engine_class(loaded)
        wrong = try_text(engine, text)
        engine.close()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        if grown > MOST_MIB:
            wrong = f"{grown} MiB more"
        if time.monotonic() - started > LOAD_S:
            wrong = f"{time.monotonic() - started:.0f} s"
        if wrong:
            print(f"find text {seed}: {wrong}", flush=True)


# ---- the one that watches ----


@dataclass
class Tally:
    what: str
    run: int = 0
    finds: list[str] = field(default_factory=list)


def _environment(plain: bool) -> dict[str, str]:
    if plain:
        return dict(os.environ)
    asan = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        **os.environ,
        "LD_PRELOAD": asan,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


def watch(tally: Tally, arguments: list[str], environment: dict[str, str], until: float, seed: int) -> int:
    """One child from `seed` on, until it dies or the time is over. The seed to go on with."""
    command = [sys.executable, __file__, "--child", tally.what, "--seed", str(seed), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        selector = selectors.DefaultSelector()
        selector.register(child.stdout, selectors.EVENT_READ)
        last, stopped = seed, False
        while time.monotonic() < until:
            if not selector.select(HANGS_AFTER_S):
                tally.finds.append(f"{tally.what} {last}: no end after {HANGS_AFTER_S} s")
                stopped = True
                break
            line = child.stdout.readline()
            if not line:
                break
            if line.startswith("seed "):
                last = int(line.split()[1])
                tally.run += 1
            elif line.startswith("find "):
                tally.finds.append(line.strip())
                print(line.strip(), flush=True)
        stopped |= time.monotonic() >= until
        if stopped:
            child.kill()
        errors = child.stderr.read()
        if child.wait() and not stopped:
            tally.finds.append(f"{tally.what} {last}: died with {child.returncode}\n{errors[-3000:]}")
            print(tally.finds[-1], flush=True)
        return last + 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--what", choices=["programs", "texts", "both"], default="both")
    parser.add_argument("--plain", action="store_true", help="without sanitizers: faster")
    parser.add_argument("--show", action="store_true", help="print what is run")
    parser.add_argument("--child", choices=["programs", "texts"], help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        seeds = iter(range(options.seed, options.seed + options.count))
        {"programs": run_programs, "texts": run_texts}[options.child](options.library, seeds, options.show)
        return 0
    if options.show:
        {"programs": run_programs, "texts": run_texts}[options.what](
            str(library(True)), iter(range(options.seed, options.seed + options.count)), True
        )
        return 0
    arguments = ["--library", str(library(options.plain)), "--count", "2000"]
    environment = _environment(options.plain)
    kinds = ["programs", "texts"] if options.what == "both" else [options.what]
    tallies = [Tally(kind) for kind in kinds]
    for tally in tallies:
        until, seed = time.monotonic() + 60 * options.minutes / len(kinds), options.seed
        while time.monotonic() < until and seed < options.seed + options.count:
            seed = watch(tally, arguments, environment, until, seed)
        print(
            f"{tally.what}: {tally.run} run, seeds {options.seed} to {seed - 1}, {len(tally.finds)} finds",
            flush=True,
        )
    return int(any(tally.finds for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())

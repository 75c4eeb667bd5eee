"""Every form that forms.def knows, on edge values, against ptx_operations.py.

Forms that compute are taken apart into every combination of their words. Those that move data, wait or
branch have tests of their own below and beside this file; a form that has neither fails here.
"""

# ruff: noqa: E501 -- tables
from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

import pytest
from tests.native.engine.ptx_operations import OPERATIONS
from tests.native.engine.ptx_table import Case, Form, case_of, expanded, rows, run

BATCH = 24
# Every opcode that does not compute in registers alone, and where it is tried.
ELSEWHERE = {
    "ld": "test_engine_accesses.py", "ldu": "test_engine_accesses.py", "st": "test_engine_accesses.py",
    "atom": "test_engine_accesses.py", "red": "test_engine_accesses.py",
    "prefetch": "test_engine_accesses.py", "prefetchu": "test_engine_accesses.py",
    "applypriority": "test_engine_accesses.py", "discard": "test_engine_accesses.py",
    "createpolicy": "test_engine_accesses.py", "cvta": "test_engine_accesses.py", "isspacep": "test_engine_accesses.py",
    "membar": "test_engine_accesses.py", "fence": "test_engine_accesses.py",
    "cp": "test_engine_async.py", "mbarrier": "test_engine_async.py", "mapa": "test_engine_async.py",
    "getctarank": "test_engine_async.py", "barrier": "test_engine_accesses.py", "bar": "test_engine_accesses.py",
    "shfl": "test_engine_accesses.py", "vote": "test_engine_accesses.py", "match": "test_engine_accesses.py",
    "redux": "test_engine_accesses.py", "activemask": "test_engine_accesses.py", "elect": "test_engine_accesses.py",
    "griddepcontrol": "test_engine_accesses.py", "setmaxnreg": "test_engine_accesses.py",
    "nanosleep": "test_engine_accesses.py", "pmevent": "test_engine_accesses.py",
    "bra": "test_engine_corpus_nvrtc.py", "brx": "test_engine_instructions.py", "call": "test_engine_corpus_nvrtc.py",
    "ret": "test_engine_corpus_nvrtc.py", "exit": "test_engine_async.py", "trap": "test_engine_faults.py",
    "brkpt": "test_engine_faults.py",
}  # fmt: skip
TENSOR = ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix")
TEXTURES = ("tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep")


@functools.cache
def _forms(library: ctypes.CDLL) -> tuple[list[Case], list[Form]]:
    """Those that there are, and those whose words no PTX has together."""
    cases, invalid, met = [], [], set()
    for opcode, pattern in rows(library):
        if opcode not in OPERATIONS:
            continue
        for form in expanded(opcode, pattern):
            if form in met:
                continue
            met.add(form)
            case = case_of(form)
            cases.append(case) if case else invalid.append(form)
    return cases, invalid


def test_no_form_is_without_a_reference_or_a_test(engine_library: ctypes.CDLL) -> None:
    here = Path(__file__).parent
    texts = {path.name: path.read_text() for path in here.glob("test_engine_*.py")}
    for opcode, pattern in rows(engine_library):
        if opcode in OPERATIONS:
            for form in expanded(opcode, pattern):
                case_of(form)  # LookupError, where it has none
        elif opcode in (*TENSOR, *TEXTURES):
            assert any(f"{opcode}." in text for text in texts.values()), f"no test names {opcode}"
        else:
            assert f"{opcode}." in texts[ELSEWHERE[opcode]] or f"{opcode};" in texts[ELSEWHERE[opcode]], (
                opcode
            )


def test_there_are_so_many_forms(engine_library: ctypes.CDLL) -> None:
    """A row that is lost, or a pattern that stopped matching, shows here."""
    cases, invalid = _forms(engine_library)
    assert len(cases) > 5000
    assert len(invalid) > 1000


def _check(engine: Any, cases: list[Case]) -> None:
    wrong: list[str] = []
    for start in range(0, len(cases), BATCH):
        wrong += run(engine, cases[start : start + BATCH])
    assert not wrong, f"{len(wrong)} forms: " + "; ".join(wrong[:20])


def test_forms_agree_with_the_reference_a_sample(engine: Any) -> None:
    """Each opcode, and every 97th of all forms."""
    cases, _ = _forms(engine.library)
    first: dict[str, Case] = {}
    for case in cases:
        first.setdefault(case.form.opcode, case)
    _check(engine, [*first.values(), *cases[::97]])


@pytest.mark.slow
def test_every_form_agrees_with_the_reference(engine: Any) -> None:
    cases, _ = _forms(engine.library)
    _check(engine, cases)


@pytest.mark.slow
def test_words_that_do_not_go_together_are_refused(engine_library: ctypes.CDLL, engine: Any) -> None:
    _, invalid = _forms(engine_library)
    registers = {"16": "%h", "32": "%r", "64": "%d", "x2": "%r"}
    for form in invalid:
        register = registers[form.words[-1][-2:]] + "1"
        to = "%p1|%p2" if form.opcode == "setp" else "%h2" if form.words[-2][-2:] == "16" else "%r2"
        combines = {"and", "or", "xor"} & set(form.words)
        text = f"{form.name} {to}, {register}, {register}{', %p3' if combines else ''};"
        with pytest.raises(engine.LoadError, match="comparison"):
            engine.body(text)

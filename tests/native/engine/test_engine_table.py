"""Every form that forms.def knows, on edge values, against ptx_operations.py.

Forms that compute are taken apart into every combination of their words. Those that move data, wait or
branch have tests of their own below and beside this file; a form that has neither fails here.
"""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path
from typing import Any

import pytest
from tests.native.engine.ptx_operations import OPERATIONS
from tests.native.engine.ptx_table import Case, Form, case_of, expanded, rows, run

BATCH = 24
# Opcodes whose forms are tried one by one where they are written out: by that file, and what compilers made.
WRITTEN_OUT = ("bra", "brx", "call", "ret", "exit", "trap", "brkpt")
# Tried by the tests of tensor cores and of textures.
OTHERS = (
    "mma",
    "wmma",
    "wgmma",
    "ldmatrix",
    "stmatrix",
    "movmatrix",
    "tex",
    "tld4",
    "txq",
    "suld",
    "sust",
    "sured",
    "suq",
    "istypep",
)


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
    tests = "\n".join(
        path.read_text() for path in here.glob("test_engine_*.py") if path.name != Path(__file__).name
    )
    written = tests + "\n".join(path.read_text() for path in (here / "ptx").glob("*.ptx"))
    others = "\n".join(
        path.read_text() for path in here.parent.rglob("*.py") if path.name != Path(__file__).name
    )
    accesses = (here / "test_engine_accesses.py").read_text()
    for opcode, pattern in rows(engine_library):
        if opcode in OPERATIONS:
            for form in expanded(opcode, pattern):
                case_of(form)  # LookupError, where it has none
        elif opcode in WRITTEN_OUT:
            for word in re.findall(r"[\w:]+", pattern):
                assert re.search(rf"\b{opcode}(\.[\w:]+)*\.{word}\b", written), f"no test has {opcode}.{word}"
            assert re.search(rf"\b{opcode}\b", written), f"no test has {opcode}"
        elif opcode in OTHERS:
            assert re.search(rf"\b{opcode}\.", others), f"no test has {opcode}"
        else:  # there, forms_of(engine, "opcode") goes through the rows of the table themselves
            assert f'"{opcode}"' in accesses, f"no test goes through the forms of {opcode}"


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

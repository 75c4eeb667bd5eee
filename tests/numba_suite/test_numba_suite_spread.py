"""A spread of numba-cuda's own tests, so that none is lost between two whole runs (`make numba-suite`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.numba_suite.areas import area_of
from tests.numba_suite.expected import PASSED, UNEXPLAINED, Expected, differences, figures, read
from tests.numba_suite.running import ROOT, Result, Suite

_EVERY_FILE = 3
_TESTS_OF_A_FILE = 6
_KNOWN = read()


def _spread() -> dict[str, list[str]]:
    """Of every third file that has tests that launch kernels, up to six of them from all over it."""
    by_file: dict[str, list[str]] = {}
    for row in _KNOWN.values():
        if row.outcome in PASSED and row.launches:
            by_file.setdefault(row.test.partition("::")[0], []).append(row.test)
    chosen = list(by_file)[::_EVERY_FILE]
    return {file: by_file[file][:: -(-len(by_file[file]) // _TESTS_OF_A_FILE)] for file in chosen}


@pytest.fixture(scope="module")
def client() -> Path:
    python = Path(os.environ.get("ALIQUOT_NUMBA_PYTHON", ROOT / ".clients-numba" / "bin" / "python"))
    if not python.exists():
        pytest.skip("no Python with numba-cuda's test-suite: tools/setup clients-numba")
    return python


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "tests"), _spread().items(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_passed_of_numbas_own_tests_still_does(
    file: str, tests: list[str], client: Path, tmp_path: Path
) -> None:
    results = Suite(client, tmp_path).run({file: tests}, jobs=1)
    assert sorted(result.test for result in results) == sorted(tests)
    assert differences(_KNOWN, results, whole=False) == []


def test_every_failure_on_the_list_is_explained() -> None:
    assert [row.test for row in _KNOWN.values() if row.outcome not in PASSED and not row.reason] == []
    assert [row.test for row in _KNOWN.values() if row.reason.startswith(UNEXPLAINED)] == []
    assert {row.area for row in _KNOWN.values()} & {"other"} == set()


def test_the_goals_for_numbas_own_tests_are_met() -> None:
    everything = figures(_KNOWN.values())[-1]
    assert everything.passed / everything.of >= 0.90
    assert everything.launching_passed / everything.launching >= 0.95


@pytest.mark.parametrize(
    ("file", "area"),
    [
        ("cudapy/test_atomics.py", "atomics"),
        ("cudadrv/test_streams.py", "streams, events, threads, IPC and several GPUs"),
        ("cudadrv/test_cuda_memory.py", "driver, contexts and memory"),
        ("cudapy/test_sm.py", "shared memory, warps, barriers, cooperative groups"),
        ("doc_examples/test_laplace.py", "examples of its documentation"),
    ],
)
def test_a_file_lies_in_the_area_of_the_longest_name_that_fits(file: str, area: str) -> None:
    assert area_of(file) == area


def test_a_run_is_compared_test_by_test() -> None:
    known = {
        name: Expected(name, outcome, launches, "because")
        for name, outcome, launches in [
            ("a", "passed", True), ("b", "passed", True), ("c", "failed", True), ("d", "skipped", False),
            ("e", "xfailed", False), ("f", "passed", False),
        ]
    }  # fmt: skip
    results = [
        Result("a", "hung", False, 180.0, "exit status 1"),
        Result("b", "passed", False, 0.1, ""),
        Result("c", "passed", True, 0.1, ""),
        Result("d", "skipped", False, 0.0, "because"),
        Result("e", "passed", False, 0.1, ""),
        Result("g", "failed", False, 0.1, "no"),
    ]
    assert differences(known, results, whole=True) == [
        "passed before, hung now: a: exit status 1",
        "launches no kernel any more: b",
        "failed before, passed now: c: ",
        "new: g failed: no",
        "missing: f",
    ]

"""A pytest plugin, loaded in the client's Python: numba-cuda's tests as they are, and what they gave.

numba-cuda's wheel has the tests and not the conftest.py that they need: the fixture and the option
below are what it would have brought. The rest writes down, one JSON line an event, which test began,
how it ended, and whether a kernel ran on the device meanwhile. A line is written before the next step
is taken, so that a crash or a hang costs one test.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SECONDS = float(os.environ["SUITE_TEST_SECONDS"])
_DONE = frozenset(json.loads(os.environ["SUITE_DONE"]))
_ONLY = frozenset(json.loads(os.environ["SUITE_ONLY"]))
_PACKAGE = "numba_cuda/numba/cuda/tests/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dump-failed-filechecks", action="store_true")


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request: pytest.FixtureRequest) -> None:
    request.cls._dump_failed_filechecks = request.config.getoption("dump_failed_filechecks")


class _Module(pytest.Module):
    """Imported by its real name: pytest's importlib mode gives it one of its own, under which numba's
    import hook loads numba.cuda a second time, and which a child process cannot import."""

    def _getobj(self) -> Any:
        path = str(self.path)
        name = path[path.rindex(_PACKAGE) : -len(".py")].replace("/", ".")
        return importlib.import_module(name.removeprefix("numba_cuda."))


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module:
    return _Module.from_parent(parent, path=module_path)


class _Launches:
    """The launches that the devices have counted, as far as anybody still can see them."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["SUITE_LAUNCHES"])
        self._states = sorted(Path(os.environ["ALIQUOT_STATE_DIR"], "softgpu").glob("*/state"))
        self._slots = (ctypes.c_uint64 * (2 * self._library.slot_count()))()

    def __call__(self) -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        for state in self._states:
            if self._library.count_launches(str(state).encode(), self._slots) == 0:
                seen += zip(self._slots[::2], self._slots[1::2], strict=True)
            else:
                seen += [(0, 0)] * (len(self._slots) // 2)
        return seen


def _context_is_lost() -> bool:
    """A fault ends a context for good, and every later test of the process would fail with it."""
    driver, current = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if driver.cuCtxGetCurrent(ctypes.byref(current)) != 0 or not current:
        return False
    return bool(driver.cuCtxSynchronize() != 0)


class _Recorder:
    def __init__(self) -> None:
        self._events = os.open(os.environ["SUITE_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._launches = _Launches()
        self._pid = os.getpid()
        self._outcome = ("", "")
        self._lost = False

    def _write(self, **event: Any) -> None:
        os.write(self._events, (json.dumps(event) + "\n").encode())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if _ONLY:
            items[:] = [item for item in items if _name(item.nodeid) in _ONLY]
        self._write(collected=[_name(item.nodeid) for item in items])
        items[:] = [item for item in items if _name(item.nodeid) not in _DONE]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(uncollected=_name(report.nodeid), why=_last_line(report))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        name, before, began = _name(item.nodeid), self._launches(), time.monotonic()
        self._write(begun=name)
        self._outcome = ("", "")
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        yield
        faulthandler.cancel_dump_traceback_later()
        if os.getpid() != self._pid:  # a test's forked child that came back through its frames
            os._exit(1)
        outcome, why = self._outcome
        launched = any(
            count > 0 and (process, count) != was
            for (process, count), was in zip(self._launches(), before, strict=True)
        )
        seconds = round(time.monotonic() - began, 2)
        self._write(ended=name, outcome=outcome, launched=launched, seconds=seconds, why=why)
        if outcome == "failed" and _context_is_lost():
            self._lost = True
            item.session.shouldstop = "the context is lost"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of a test's phases and subtests is the test's outcome."""
        outcome, why = str(report.outcome), ""
        if outcome == "passed" and report.when != "call":
            return
        if outcome == "skipped":
            expected = hasattr(report, "wasxfail")
            outcome = "xfailed" if expected else "skipped"
            why = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) and not expected else ""
        elif outcome == "failed":
            why = _last_line(report)
        if _RANK.index(outcome) > _RANK.index(self._outcome[0]):
            self._outcome = (outcome, why)

    def pytest_sessionfinish(self) -> None:
        if not self._lost:
            self._write(finished=True, partly=bool(_ONLY))


# A test of which some subtests were skipped and others passed has passed.
_RANK = ("", "skipped", "passed", "xfailed", "failed")


def _name(node: str) -> str:
    return node.rpartition(_PACKAGE)[2]


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    return " ".join(str(text).split())[:400]


def pytest_configure(config: pytest.Config) -> None:
    faulthandler.enable()
    config.pluginmanager.register(_Recorder())

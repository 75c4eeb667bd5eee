"""The checked-in list of what each of numba-cuda's tests gives, and comparing a run with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.numba_suite.areas import area_of
from tests.numba_suite.running import Result

FILE = Path(__file__).with_name("expected.tsv")
PASSED = frozenset({"passed", "xfailed"})
"""A failure that numba-cuda itself expects, on every driver, is as good as a pass."""
_HEADER = "test\tarea\toutcome\tlaunches\treason"
UNEXPLAINED = "? "
"""Before the reason that a first run wrote down: somebody has yet to look."""


@dataclass(frozen=True)
class Expected:
    test: str
    outcome: str
    launches: bool
    reason: str
    """Why it is skipped or fails."""

    @property
    def area(self) -> str:
        return area_of(self.test.partition("::")[0])


def read(path: Path = FILE) -> dict[str, Expected]:
    rows = {}
    for line in path.read_text().splitlines()[1:]:
        test, _, outcome, launches, reason = line.split("\t")
        rows[test] = Expected(test, outcome, launches == "yes", reason)
    return rows


def write(rows: Iterable[Expected], path: Path = FILE) -> None:
    lines = [
        f"{row.test}\t{row.area}\t{row.outcome}\t{'yes' if row.launches else 'no'}\t{row.reason}"
        for row in sorted(rows, key=lambda row: row.test)
    ]
    path.write_text("\n".join([_HEADER, *lines]) + "\n")


def updated(known: Mapping[str, Expected], results: Iterable[Result], *, whole: bool) -> dict[str, Expected]:
    """What was seen; a reason that somebody wrote stays for as long as the test fails."""
    rows = {} if whole else dict(known)
    for result in results:
        before = known.get(result.test)
        reason = ""
        if result.outcome == "skipped":
            reason = " ".join(result.why.removeprefix("Skipped: ").split())
        elif result.outcome not in PASSED:
            kept = before is not None and before.outcome not in PASSED | {"skipped"}
            reason = before.reason if before is not None and kept else UNEXPLAINED + result.why[:200]
        rows[result.test] = Expected(result.test, result.outcome, result.launched, reason)
    return rows


def differences(known: Mapping[str, Expected], results: Iterable[Result], *, whole: bool) -> list[str]:
    """One line each. `whole`: a test that did not come back at all is one, too."""
    found, seen = [], set()
    for result in results:
        seen.add(result.test)
        row = known.get(result.test)
        if row is None:
            found.append(f"new: {result.test} {result.outcome}: {result.why}")
        elif (row.outcome in PASSED) != (result.outcome in PASSED) or (row.outcome == "skipped") != (
            result.outcome == "skipped"
        ):
            found.append(f"{row.outcome} before, {result.outcome} now: {result.test}: {result.why}")
        elif row.launches and not result.launched and result.outcome in PASSED:
            found.append(f"launches no kernel any more: {result.test}")
    if whole:
        found += [f"missing: {test}" for test in known if test not in seen]
    return found


@dataclass(frozen=True)
class Figures:
    area: str
    passed: int
    of: int
    launching_passed: int
    launching: int
    skipped: int


def figures(rows: Iterable[Expected]) -> list[Figures]:
    """By area, in alphabetical order, and all together last."""
    rows = list(rows)

    def count(area: str, meant: Callable[[Expected], bool]) -> Figures:
        mine = [row for row in rows if meant(row)]
        ran = [row for row in mine if row.outcome != "skipped"]
        launching = [row for row in ran if row.launches]
        good = sum(row.outcome in PASSED for row in ran)
        good_launching = sum(row.outcome in PASSED for row in launching)
        return Figures(area, good, len(ran), good_launching, len(launching), len(mine) - len(ran))

    areas = sorted({row.area for row in rows})
    by_area = [count(area, lambda row, area=area: row.area == area) for area in areas]  # type: ignore[misc]
    return [*by_area, count("all", lambda _: True)]

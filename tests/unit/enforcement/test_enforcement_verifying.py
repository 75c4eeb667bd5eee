"""What the program of ``aliquot verify`` is told, and how its lines are read."""

import json

import pytest
from tests.native.governor.shares import UUIDS, a_lease, some_gpus

from aliquot.enforcement import PROGRAM, program_arguments, program_folder, read_attempts
from aliquot.model import GIB, MIB, AliquotError, Isolation, Outcome, Reason

LINE = {
    "attempt": "allocate",
    "group": "memory",
    "what": "cuMemAlloc",
    "outcome": "held",
    "grantedBytes": 5,
    "limitBytes": 9,
    "result": 2,
    "note": "",
}


def lines(*items: dict[str, object]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def test_the_share_is_told_by_device_in_its_order() -> None:
    lease = a_lease({UUIDS[2]: 2 * GIB, UUIDS[0]: GIB})
    told = program_arguments(lease, some_gpus(10 * MIB))
    assert told == (f"--device={UUIDS[2]}={2 * GIB}={10 * MIB}=0", f"--device={UUIDS[0]}={GIB}={10 * MIB}=0")
    assert program_arguments(a_lease({UUIDS[0]: GIB}), {}) == (f"--device={UUIDS[0]}={GIB}=0=0",)


@pytest.mark.parametrize("lease", [a_lease({UUIDS[0]: GIB}, whole=True), a_lease({UUIDS[0]: None})])
def test_whole_gpus_have_nothing_to_try(lease: object) -> None:
    with pytest.raises(AliquotError, match="no limit within them") as caught:
        program_arguments(lease, {})  # type: ignore[arg-type]
    assert caught.value.reason is Reason.BAD_USAGE


def test_a_line_is_an_attempt_and_what_is_known_follows() -> None:
    timed = LINE | {"attempt": "launch", "group": "compute", "grantedBytes": None, "limitBytes": None}
    timed |= {"achievedThousandths": 253, "allowedThousandths": 250, "errorThousandths": 5, "result": 0}
    first, second, *known = read_attempts(lines(LINE, timed), isolation=Isolation.SOFT)
    assert (first.granted, first.limit, first.result, first.note) == (5, 9, 2, None)
    assert (first.achieved, first.allowed, first.error) == (None, None, None)
    assert (second.granted, second.achieved, second.allowed, second.error) == (None, 253, 250, 5)
    assert second.result is None
    assert {attempt.outcome for attempt in known} == {Outcome.KNOWN}
    assert not any(outcome.failed for outcome in Outcome if outcome not in (Outcome.HOLE, Outcome.BROKEN))


def test_writing_the_limits_is_a_hole_unless_the_share_says_that_it_is_advisory() -> None:
    writable = LINE | {"attempt": "limits-file", "outcome": "hole", "note": "can be written"}
    for isolation in Isolation:
        (attempt, *_) = read_attempts(lines(writable), isolation=isolation)
        expected = Outcome.KNOWN if isolation is Isolation.ADVISORY else Outcome.HOLE
        assert (attempt.outcome, attempt.note) == (expected, "can be written")


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Segmentation fault\n",
        "{}\n",
        "[]\n",
        lines(LINE) + "{",
        lines(LINE | {"outcome": "splendid"}),
        lines(LINE | {"grantedBytes": "many"}),
        lines(LINE | {"result": None}),
    ],
)
def test_what_is_not_its_report_proves_nothing(said: str) -> None:
    with pytest.raises(AliquotError, match="did not run to its end") as caught:
        read_attempts(said, isolation=Isolation.SOFT)
    assert caught.value.reason is Reason.FAILED


def test_a_package_without_the_program_says_how_to_get_it(tmp_path: object) -> None:
    with pytest.raises(AliquotError, match=PROGRAM):
        program_folder(tmp_path)  # type: ignore[arg-type]

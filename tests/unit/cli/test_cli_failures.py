import json
from pathlib import Path

import pytest

from aliquot.cli.border import report
from aliquot.cli.output.failures import failure_document, failure_lines
from aliquot.model import (
    GIB,
    AliquotError,
    Bytes,
    Considered,
    Fit,
    GpuUuid,
    Reason,
    ShareRequest,
    Thousandths,
)


@pytest.fixture
def refusal() -> AliquotError:
    considered = (
        Considered(
            gpu=GpuUuid("GPU-0"),
            index=0,
            name="H100",
            alternative=0,
            fit=Fit.SHORT,
            wanted=ShareRequest(Bytes(20 * GIB), Thousandths(500)),
            capacity=Bytes(80 * GIB),
            free_memory=Bytes(12 * GIB),
            free_compute=Thousandths(400),
            short_memory=Bytes(8 * GIB),
            short_compute=Thousandths(100),
        ),
        Considered(
            gpu=GpuUuid("GPU-1"), index=1, name="H100", alternative=0, fit=Fit.CORDONED, detail="XID 79"
        ),
    )
    return AliquotError(
        Reason.NO_ROOM,
        "No room for 20GiB@50% on node a",
        facts=[
            "gpu0  H100  free 12GiB of 80GiB   compute free 40%   short 8GiB, 10%",
            "gpu1  H100  cordoned (XID 79)",
        ],
        next=[("aliquot plan 12GiB@40%", "fits now on gpu0"), ("aliquot show k3m9x", "alice's")],
        considered=considered,
    )


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def test_a_refusal_reads_as_the_design_shows_it(refusal: AliquotError) -> None:
    assert failure_lines(refusal) == [
        "✗ No room for 20GiB@50% on node a   [no-room]",
        "  gpu0  H100  free 12GiB of 80GiB   compute free 40%   short 8GiB, 10%",
        "  gpu1  H100  cordoned (XID 79)",
        "  try   aliquot plan 12GiB@40%  fits now on gpu0",
        "  or    aliquot show k3m9x      alice's",
    ]


def test_a_caret_keeps_its_place() -> None:
    error = AliquotError(Reason.BAD_SPEC, "10 what?", facts=["10\n  ^ write 10GiB"])
    assert failure_lines(error)[1:] == ["  10", "    ^ write 10GiB"]


def test_programs_get_the_numbers(refusal: AliquotError) -> None:
    error = failure_document(refusal, 4)["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["exitCode"]) == ("no-room", 4)
    assert error["considered"][0]["shortMemoryBytes"] == 8 * GIB
    assert error["considered"][1]["freeMemoryBytes"] is None
    assert error["next"][0] == {"command": "aliquot plan 12GiB@40%", "meaning": "fits now on gpu0"}


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.code)
def test_the_exit_code_belongs_to_the_reason(reason: Reason, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(AliquotError(reason, "x"), ["gpus"]) == reason.exit_code
    assert f"[{reason.code}]" in capsys.readouterr().err


@pytest.mark.parametrize(("reason", "code"), [(Reason.FAILED, 125), (Reason.NO_ROOM, 4), (Reason.NO_GPU, 5)])
def test_a_failure_of_ours_in_run_is_not_taken_for_the_childs(
    reason: Reason, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(AliquotError(reason, "x"), ["run", "--gpu", "1/4", "--", "true"]) == code
    capsys.readouterr()


def test_json_goes_to_stdout_and_words_to_stderr(
    refusal: AliquotError, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["why", "-o", "json"], ["why", "-ojson"], ["why", "--output=json"], ["gpus", "--json"]):
        assert report(refusal, arguments) == 4
        captured = capsys.readouterr()
        assert json.loads(captured.out)["error"]["code"] == "no-room"
        assert captured.err.startswith("✗ No room")


def test_the_childs_own_o_asks_nothing_of_us(
    refusal: AliquotError, capsys: pytest.CaptureFixture[str]
) -> None:
    report(refusal, ["run", "--gpu", "1/4", "--", "gcc", "-o", "json"])
    assert capsys.readouterr().out == ""


def test_an_unexpected_exception_is_one_line_and_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert report(ZeroDivisionError("division\nby zero"), ["gpus"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "✗ aliquot failed: ZeroDivisionError: division by zero   [failed]"
    assert "Traceback" not in "\n".join(lines)
    log = Path(lines[1].split()[1])
    assert "ZeroDivisionError" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_debug_shows_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    try:
        raise ZeroDivisionError("x")
    except ZeroDivisionError as error:
        report(error, ["gpus", "--debug"])
    assert "Traceback" in capsys.readouterr().err


def test_a_temporary_folder_that_cannot_be_written_costs_only_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    assert report(ValueError("x"), ["gpus"]) == 1
    assert "aliquot failed: ValueError: x" in capsys.readouterr().err

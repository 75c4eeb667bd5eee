"""What of a program's output belongs to the story."""

import sys

import pytest

from aliquot.demo.screen import Program, shown_lines
from aliquot.model import AliquotError


def test_of_a_traceback_the_error_is_shown() -> None:
    lines = [
        "first\n",
        "Traceback (most recent call last):\n",
        '  File "x"\n',
        "    call()\n",
        "Error: why\n",
        "\n",
        "last\n",
    ]
    assert list(shown_lines(lines)) == ["first", "Error: why", "last"]


def test_a_warning_and_its_source_line_are_not() -> None:
    lines = ["/a/b.py:1: RuntimeWarning: too old\n", "  options = X(\n", "42 million elements a second\n"]
    assert list(shown_lines(lines)) == ["42 million elements a second"]


def program(code: str) -> Program:
    return Program("it", [sys.executable, "-uc", code], shown="python it.py &")


def test_a_line_is_waited_for_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    it = program("print('one'); print('two')")
    assert it.wait_for("two", within=20) == "two"
    assert it.end(within=20) == 0
    assert it.lines == ["one", "two"]
    assert "it | one" in capsys.readouterr().out


def test_a_program_that_ends_without_the_line_is_not_waited_for() -> None:
    it = program("print('one')")
    with pytest.raises(AliquotError, match="did not print"):
        it.wait_for("two", within=3600)
    it.end(within=20)


def test_one_that_does_not_end_is_killed() -> None:
    it = program("import signal; print('up'); signal.pause()")
    it.wait_for("up", within=20)
    assert it.end(within=0.01) == -9

"""Random command lines: an exit code that is documented, and never a traceback."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.cli.program import invoke
from aliquot.cli.registry import COMMANDS
from aliquot.model import Reason

_DOCUMENTED = {0} | {reason.exit_code for reason in Reason}

# `run` is not among them: it forks, which a test process must not; it has tests of its own.
_COMMANDS = [name for name in COMMANDS if name not in ("run", "demo")]
_WORDS = Path(__file__).with_name("fuzz_words.txt").read_text(encoding="utf-8").split()
_ODD = ["", " ", "\udcff", "\x1b[31m", "a\nb", "'", "x" * 5000, "--name=", "-o=", "=", "%", "@@"]


@pytest.fixture(scope="module", autouse=True)
def _machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALIQUOT_STATE_DIR", str(folder / "state"))
        patch.setenv("ALIQUOT_RUNTIME_DIR", str(folder / "run"))
        patch.setenv("TMPDIR", str(folder))
        yield folder


@given(
    command=st.sampled_from([*_COMMANDS, "", "--", "gpu"]),
    words=st.lists(st.one_of(st.sampled_from(_WORDS), st.sampled_from(_ODD)), max_size=6),
)
@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_command_line_ends_in_a_documented_code_and_no_traceback(
    command: str, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    code = invoke([command, *words])
    captured = capfd.readouterr()
    assert code in _DOCUMENTED
    assert "Traceback" not in captured.err
    assert "aliquot failed" not in captured.err, captured.err
    if code not in (0, 7):
        assert captured.err.startswith(("✗", "x ", "!", "·", ".")) or code in (4, 5)


def test_the_machine_of_this_test_is_its_own(_machine: Path) -> None:  # noqa: PT019 - its value is wanted
    assert os.environ["ALIQUOT_STATE_DIR"].startswith(str(_machine))

"""Random command lines: an exit code that is documented, and never a traceback.

Half of them are sound but for their values, so that they get past the parser; the others
have a word too many, too few or in the wrong place.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aliquot.cli.program import invoke
from aliquot.model import Reason

_DOCUMENTED = {0} | {reason.exit_code for reason in Reason}
_WORDS = Path(__file__).with_name("fuzz_words.txt").read_text(encoding="utf-8").split()
_ODD = ["", " ", "\udcff", "\x1b[31m", "a\nb", "'", "x" * 5000, "--name=", "-o=", "=", "%", "@@"]

_LIST = (
    *(f"-o {form}" for form in ("table", "wide", "json", "jsonl", "yaml", "csv", "name")),
    "-q",
    "-n 1",
    "--sort name",
    "--where name~4",
    "--where name=unknown",
)
_ONE = ("-o json", "-o yaml")
_ASK = ("--policy cap", "--isolation advisory", "--isolation hard", "--placement spread")
_SPECS = ("1/4", "60%", "512MiB@10%", "T4", "2xT4", "500GiB", "A100:1GiB,T4:1GiB", "10", "1GiB@200%", "25%@")
_IDS = ("train", "k3m9x", "0", "7", "GPU-", "T4", "all")
# `run` is not among them: it forks, which a test process must not; it has tests of its own.
_COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gpus": (("",), (*_LIST, "--where free>1GiB", "-l vendor=software", "--sort -free")),
    "leases": (("",), (*_LIST, "--ended", "--all", "--since 7d", "--since 2026-01-01", "-l state=held")),
    "show": (_IDS, _ONE),
    "lease": (
        tuple(f"--gpu {spec}" for spec in _SPECS),
        (*_ASK, *_ONE, "--for 2h", "--name train", "-o env", "-o docker", "-o compose", "-f -"),
    ),
    "release": (_IDS, ("--force", "-q", "train")),
    "plan": ((*_SPECS, "-f -", "-f /dev/null"), (*_ASK, *_ONE, "-o name", "--container")),
    "why": ((*_SPECS, *_IDS), ("--policy cap", "--isolation hard", *_ONE)),
    "usage": (("",), (*_LIST[:7], "--by user", "--by command", "--since 7d", "--until 1h", "--sort key")),
    "softgpu create": (
        ("T4", "2xT4", "2xtiny T4", "T9", "0xT4"),
        ("--memory 1GiB", "--memory 1B", "--name lab", "--name all", "-q"),
    ),
    "softgpu list": (("", "lab"), _LIST),
    "softgpu remove": (("all", "lab", "GPU-", "nothing"), ("-q",)),
    "softgpu env": (("", "lab"), _ONE),
    "softgpu log": (("", "lab"), _ONE),
    "completion": (("bash", "zsh", "fish", "sh"), ()),
    "version": (("",), _ONE),
}


@st.composite
def _lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(list(_COMMANDS)))
    needed, options = _COMMANDS[command]
    parts = [draw(st.sampled_from(needed))]
    if options:
        parts += draw(st.lists(st.sampled_from(options), max_size=3))
    words = [*command.split(), *(word for part in parts for word in part.split())]
    if draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(words)))
        words[at:at] = [draw(st.one_of(st.sampled_from(_WORDS), st.sampled_from(_ODD)))]
    if draw(st.integers(0, 5)) == 0:
        del words[draw(st.integers(0, len(words) - 1))]
    return words


@pytest.fixture(scope="module", autouse=True)
def codes(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Counter[int]"]:
    """How often each code came; the machine is this module's own, with one GPU."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALIQUOT_STATE_DIR", str(folder / "state"))
        patch.setenv("ALIQUOT_RUNTIME_DIR", str(folder / "run"))
        patch.setenv("TMPDIR", str(folder))
        patch.delenv("ALIQUOT_LEASE", raising=False)
        assert invoke(["softgpu", "create", "T4", "-q"]) == 0
        seen: Counter[int] = Counter()
        yield seen
        # A fuzz whose lines never get past the parser proves little.
        assert not seen or min(seen[0], seen[2], seen[3] + seen[4] + seen[5]) >= 10, seen
        assert invoke(["leases", "-q"]) == 0  # the book is sound after all of that


@given(words=_lines())
@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_command_line_ends_in_a_documented_code_and_no_traceback(
    words: list[str], codes: "Counter[int]", capfd: pytest.CaptureFixture[str]
) -> None:
    code = invoke(words)
    codes[code] += 1
    captured = capfd.readouterr()
    assert code in _DOCUMENTED
    assert "Traceback" not in captured.err
    assert "aliquot failed" not in captured.err, captured.err
    if code != 0:
        assert captured.err or captured.out
    if code == 2:
        assert "[bad-" in captured.err or "[name-taken]" in captured.err


def test_the_machine_of_these_tests_is_their_own() -> None:
    assert "fuzz" in os.environ["ALIQUOT_STATE_DIR"]

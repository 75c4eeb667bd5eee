import json

import pytest

from aliquot.cli.program import invoke


@pytest.fixture(autouse=True)
def _utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gpu", "aliquot gpus"),
        ("help run", "aliquot run --help"),
        ("ls", "aliquot leases"),
        ("list -q", "aliquot leases -q"),
        ("ps", "aliquot leases"),
        ("rm k3m9x", "aliquot release k3m9x"),
        ("help", "aliquot --help"),
        ("softgpu ls", "aliquot softgpu list"),
        ("softgpu rm all", "aliquot softgpu remove all"),
        ("gpus -o JSON", "aliquot gpus -o json"),
        ("lease 1/4", "aliquot lease --gpu 1/4"),
        ("lease --for 2h 2xH100", "aliquot lease --for 2h --gpu 2xH100"),
        ("lease", "aliquot lease --gpu 1/4"),
        ("plan", "aliquot plan 1/4"),
        ("lese --gpu 1/4", "aliquot lease --gpu 1/4"),
        ("gpus --were free", "aliquot gpus --where free"),
        ("gpus --were=free", "aliquot gpus --where=free"),
        ("gpus -o jsn", "aliquot gpus -o json"),
        ("gpus --output=jsn", "aliquot gpus --output=json"),
        ("softgpu creat T4", "aliquot softgpu create T4"),
        ("run -- python x.py", "aliquot run --gpu 1/4 -- python x.py"),
        ("run python x.py", "aliquot run --gpu 1/4 -- python x.py"),
        ("run", "aliquot run --gpu 1/4 -- CMD"),
        ("run 10GiB -- python x.py", "aliquot run --gpu 10GiB -- python x.py"),
        ("run 10GiB python x.py", "aliquot run --gpu 10GiB -- python x.py"),
        ("run 2xH100", "aliquot run --gpu 2xH100 -- CMD"),
        ("run python x.py --gpu 1/4", "aliquot run --gpu 1/4 -- python x.py"),
        ("run --gpu 1/4", "aliquot run --gpu 1/4 -- CMD"),
        ("run --gpu 1/4 --", "aliquot run --gpu 1/4 -- CMD"),
        ("run --lease k3m9x", "aliquot run --lease k3m9x -- CMD"),
        ("run --gpo 1/4 -- true", "aliquot run --gpu 1/4 -- true"),
    ],
)
def test_a_mistake_is_answered_with_the_line_that_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(typed.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    first, *rest = captured.err.splitlines()
    assert first.startswith("✗ ")
    assert first.endswith("[bad-usage]")
    steps = [line for line in rest if line.startswith("  try   ")]
    assert [step.removeprefix("  try   ").split("  ")[0] for step in steps] == [meant]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("show", "`aliquot show` needs ID"),
        ("release", "`aliquot release` needs ID..."),
        ("gpus extra words", "`aliquot gpus` takes no argument 'extra words' here"),
        ("softgpu", "`aliquot softgpu` needs one of busy, create, env, fail, list, log, remove"),
        ("lease foo", "`aliquot lease` takes no argument 'foo' here"),
        ("gpus extra", "`aliquot gpus` takes no argument 'extra' here"),
        ("plan 1/4 2/4", "`aliquot plan` takes no argument '2/4' here"),
        ("gpus -n -1", "'-1' is no number of rows"),
        ("gpus -n x", "'x' is no number of rows"),
        ("gpus --where", "--where needs a value"),
        ("lease", "`aliquot lease` needs --gpu SPEC or -f FILE"),
        ("plan", "`aliquot plan` needs SPEC or -f FILE"),
        ("lease --gpu 1/4 -f x", "not both"),
        ("lease --gpu 1/4 --for 5", "5 what? write 5m, 5h or 5d"),
        ("lease --gpu 1/4 --name -x", "--name"),
        ("run --gpu 1/4 --lease a -- true", "not both"),
        ("run --lease a --name b -- true", "belong to a new lease"),
        ("leases --since yesterday", "is no span of time"),
        ("leases --since 2026-13-01", "is no time; write 2026-11-30"),
        ("leases --since 0001-01-01", "is no time from 1970 to 2200"),
        ("usage --until 9999-12-31", "is no time from 1970 to 2200"),
        ("usage --since 1h --until 2h", "--since lies after --until"),
        ("usage --by team", "is not one of"),
        ("softgpu create 2y4", "is not [Nx]PROFILE"),
        ("softgpu create 0xT4", "0 of T4 cannot be made: at least 1"),
        ("softgpu create -1xT4", "'-1xT4' begins with a minus: a size and a count are above 0"),
        ("resize k3m9x -5GiB", "'-5GiB' begins with a minus: a size and a count are above 0"),
        ("extend k3m9x --for 0s", "--for: 0s is no time at all; write 90m, 2h, 1h30m or 7d"),
        ("softgpu create T4 --memory 25%", "write a size such as 2GiB"),
        ("softgpu create T4 --memory H100:2GiB", "write a size such as 2GiB"),
        ("completion tcsh", "is not one of"),
        ("--nothing", "No option --nothing"),
    ],
)
def test_a_mistake_says_what_is_wrong_on_one_line(
    typed: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(typed.split()) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "[bad-usage]" in captured.err.splitlines()[0]
    assert "Traceback" not in captured.err
    assert "Usage:" not in captured.err


def test_a_word_that_means_two_commands_offers_both_and_no_line_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["status"]) == 2
    lines = capsys.readouterr().err.splitlines()[1:]
    assert [" ".join(line.split()[1:3]) for line in lines] == [
        "aliquot doctor",
        "aliquot gpus",
        "aliquot --help",
    ]
    assert invoke(["help"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_size_that_cannot_be_read_keeps_its_own_reason(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("plan 10", "lease --gpu 10", "run --gpu 10 -- true", "softgpu create T4 --memory 10"):
        assert invoke(typed.split()) == 2
        err = capsys.readouterr().err
        assert "[bad-spec]" in err
        assert "^" in err


def test_a_file_that_cannot_be_read_is_a_bad_file(
    capsys: pytest.CaptureFixture[str], tmp_path: "object"
) -> None:
    for file in (f"{tmp_path}/missing.yaml", str(tmp_path), "/proc/self/mem", "/dev/zero"):
        assert invoke(["plan", "-f", file]) == 2
        assert "[bad-file]" in capsys.readouterr().err


def test_programs_get_the_mistake_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["gpus", "--were", "x", "-o", "json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "bad-usage"
    assert error["next"][0]["command"] == "aliquot gpus --where x -o json"

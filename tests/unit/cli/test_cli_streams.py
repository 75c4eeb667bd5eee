import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.cli.output.streams import presentable, printable, speaks_unicode

_PRINT = [sys.executable, "-c"]


def _run(code: str, env: dict[str, str], **kwargs: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [*_PRINT, code], env={"PATH": os.environ["PATH"], **env}, capture_output=True, timeout=30, **kwargs
    )


_SPEAK = "from aliquot.cli.output.streams import out; out('✗ — … josé \\udce9')"


@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C"},
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"},
        {},
        {"LANG": "C", "PYTHONUTF8": "1"},
        {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "latin-1:strict"},
    ],
    ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()) or "no locale",
)
def test_a_terminal_that_is_not_utf8_gets_ascii(env: dict[str, str]) -> None:
    done = _run(_SPEAK, env)
    assert done.stderr == b""
    assert done.stdout == rb"x - ~ jos\xe9 \udce9" + b"\n"


@pytest.mark.parametrize("env", [{"LC_ALL": "C.UTF-8"}, {"LANG": "en_GB.utf8"}])
def test_a_terminal_that_is_utf8_gets_the_signs(env: dict[str, str]) -> None:
    assert _run(_SPEAK, env).stdout.decode() == "✗ — … josé \\udce9\n"


def test_data_for_programs_is_utf8_in_every_locale() -> None:
    code = "from aliquot.cli.output.streams import out_exactly; out_exactly('\"josé — …\"')"
    assert _run(code, {"LC_ALL": "C"}).stdout.decode() == '"josé — …"\n'


def test_ascii_forms_keep_columns_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    signs = "—–…✗✓×→·"
    assert len(presentable(signs)) == len(signs)


def test_no_stream_speaks_nothing() -> None:
    assert not speaks_unicode(None)


def test_control_characters_are_shown_and_not_sent() -> None:
    assert printable("a\nb\x1b[2J\tc\udcff") == r"a\nb\x1b[2J\tc\udcff"
    assert printable("größe 10 ×") == "größe 10 ×"


def test_a_reader_that_leaves_is_no_failure() -> None:
    code = (
        "from aliquot.cli.output.streams import out, say\n"
        "for number in range(100000): out(str(number))\n"
        "say('end')"
    )
    with subprocess.Popen(
        [*_PRINT, code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"LC_ALL": "C.UTF-8"}
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b"end\n"
        assert process.wait(30) == 0


def test_a_closed_stdout_is_no_traceback() -> None:
    shell = f"{sys.executable} -m aliquot.cli --help >&-; echo $?"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", ["--version", "version", "--help", "version -o json"])
def test_a_full_disk_behind_stdout_is_said_and_fails(arguments: str, aliquot_env: dict[str, str]) -> None:
    shell = f"{sys.executable} -m aliquot.cli {arguments} >/dev/full"
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, timeout=30, check=False, env=aliquot_env
    )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "aliquot failed" not in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_is_130_and_silent(tmp_path: Path, aliquot_env: dict[str, str]) -> None:
    fifo = tmp_path / "ask.yaml"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [sys.executable, "-m", "aliquot.cli", "plan", "-f", str(fifo)],
        env=aliquot_env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        with fifo.open("wb"):  # returns once the command has opened it, and waits for what never comes
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert (out.strip(), err.strip()) == (b"", b"")

"""A child that executes only at our word, and what its end means."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aliquot.node.supervising import fork_waiting


def run(*argv: str) -> int:
    return fork_waiting(argv, os.environ).go()


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -TERM $$"), 128 + signal.SIGTERM),
        (("sh", "-c", "kill -KILL $$"), 128 + signal.SIGKILL),
        (("/nowhere/at/all",), 127),
        (("/etc/passwd",), 126),
    ],
)
def test_the_childs_end_is_told_as_a_shell_would(argv: tuple[str, ...], code: int) -> None:
    assert run(*argv) == code


def test_a_child_that_is_never_told_to_go_executes_nothing(tmp_path: Path) -> None:
    child = fork_waiting(["touch", str(tmp_path / "ran")], os.environ)
    child.abandon()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_the_environment_is_the_one_given() -> None:
    assert (
        fork_waiting(["sh", "-c", 'test "$ONLY" = this'], {"ONLY": "this", "PATH": os.environ["PATH"]}).go()
        == 0
    )


def test_our_signal_mask_is_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run("true")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_child_has_the_signals_and_mask_of_any_child(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a program that inherits that never ends at a closed pipe."""
    look = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    expected = subprocess.run(["sh", "-c", look], capture_output=True, text=True, check=True).stdout
    assert run("sh", "-c", f"{look} > {tmp_path}/seen") == 0
    assert (tmp_path / "seen").read_text() == expected


_PARENT = """
import os, sys
from aliquot.node.supervising import fork_waiting
child = fork_waiting(["touch", sys.argv[1]], os.environ)
print(child.pid, flush=True)
if sys.argv[2] == "die-before":
    os.kill(os.getpid(), 9)
child.go()
"""


def test_killed_before_the_word_nothing_was_executed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PARENT, str(tmp_path / "ran"), "die-before"],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL  # stdout is closed by the child's end too: it has ended
    assert not (tmp_path / "ran").exists()


_FORWARD = """
import os, sys
from aliquot.node.supervising import fork_waiting
sys.exit(fork_waiting(["sh", "-c", sys.argv[1]], os.environ).go())
"""


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "USR2", "INT", "QUIT"])
def test_a_signal_sent_to_us_reaches_the_child(name: str) -> None:
    script = f"trap 'echo got; exit 3' {name}; echo ready; while :; do read -r _ || sleep 0.05; done"
    process = subprocess.Popen(
        [sys.executable, "-c", _FORWARD, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, f"SIG{name}"))
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("got\n", 3)


def test_a_child_stopped_by_somebody_else_is_waited_for() -> None:
    """Only Ctrl-Z stops us with it: who stops the child alone continues the child alone."""
    script = "echo $$; read -r _; exit 5"
    process = subprocess.Popen(
        [sys.executable, "-c", _FORWARD, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP, signal.SIGCONT):
        os.kill(child, number)
    process.communicate("\n", timeout=20)
    assert process.returncode == 5

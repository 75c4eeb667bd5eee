"""Who is there: real processes, real zombies, real namespaces."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aliquot.lease import describe, is_alive, processes_carrying
from aliquot.model import ProcessHolder, lease_id

# Of this process alone: another's processes, of the same tests, would be found as well.
FIRST, SECOND = lease_id(2 * os.getpid()), lease_id(2 * os.getpid() + 1)
Waiting = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    """Start a process that has executed and waits; ended at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*argv: str, **environ: str) -> "subprocess.Popen[bytes]":
        command = argv or ("sh", "-c", "echo up; read line")
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environ}
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_we_ourselves_are_alive_and_described_as_the_kernel_does(me: ProcessHolder) -> None:
    assert is_alive(me)
    assert me.pid == os.getpid()
    assert me.pid_namespace == os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116


def test_a_process_is_gone_once_it_has_ended(waiting: Waiting) -> None:
    process = waiting()
    holder = describe(process.pid)
    assert is_alive(holder)
    process.kill()
    process.wait()
    assert not is_alive(holder)
    with pytest.raises(ProcessLookupError):
        describe(process.pid)


def test_a_zombie_is_gone(waiting: Waiting) -> None:
    process = waiting()
    holder = describe(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert describe(process.pid).start_time == holder.start_time, "it is still listed"
    assert not is_alive(holder)


def test_a_process_whose_main_thread_left_lives_on_in_the_others(waiting: Waiting) -> None:
    code = (
        "import ctypes, sys, threading\n"
        "def stay():\n"
        "    while open(f'/proc/self/task/{pid}/stat').read().rpartition(')')[2].split()[0] != 'Z': pass\n"
        "    print('up', flush=True); sys.stdin.read()\n"
        "import os; pid = os.getpid(); main = threading.current_thread()\n"
        "threading.Thread(target=stay).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    process = waiting(sys.executable, "-c", code)
    assert is_alive(describe(process.pid))


def test_a_pid_that_was_given_to_another_process_is_not_taken_for_the_first(waiting: Waiting) -> None:
    holder = describe(waiting().pid)
    assert not is_alive(replace(holder, start_time=holder.start_time - 1))


def test_a_stopped_process_is_alive(waiting: Waiting) -> None:
    process = waiting()
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert is_alive(describe(process.pid))


def test_a_process_of_another_pid_namespace_is_never_called_gone(me: ProcessHolder) -> None:
    assert is_alive(replace(me, pid=4_194_305, pid_namespace=me.pid_namespace - 1))


def test_a_command_name_full_of_parentheses_is_read_right(waiting: Waiting) -> None:
    code = "open('/proc/self/comm', 'w').write(') Z 1 ('); print('up', flush=True); input()"
    assert is_alive(describe(waiting(sys.executable, "-c", code).pid))


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to mount /proc with hidepid",
)
def test_a_process_that_proc_hides_counts_as_alive(waiting: Waiting, me: ProcessHolder) -> None:
    """As another user under hidepid=2 sees root's processes: not at all."""
    holder = describe(waiting().pid)
    code = f"""
import os, subprocess, sys
subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
from aliquot.lease import is_alive
from aliquot.model import ProcessHolder
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
assert not os.path.exists("/proc/{holder.pid}")
alive = ProcessHolder({holder.pid}, {holder.start_time}, {holder.pid_namespace})
gone = ProcessHolder(4194305, 1, {holder.pid_namespace})
print(is_alive(alive), is_alive(gone))
"""
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True False\n", "")
    assert is_alive(me)


def test_processes_of_a_lease_are_found_by_their_environment(waiting: Waiting) -> None:
    one, other = waiting(ALIQUOT_LEASE=FIRST), waiting(ALIQUOT_LEASE=FIRST)
    waiting(ALIQUOT_LEASE=FIRST[:-1])
    waiting(NOT_ALIQUOT_LEASE=FIRST, X=f"ALIQUOT_LEASE={FIRST}")
    assert processes_carrying([FIRST, SECOND]) == {FIRST: tuple(sorted((one.pid, other.pid)))}
    assert processes_carrying([]) == {}


def test_an_orphan_of_a_double_fork_is_still_found(waiting: Waiting) -> None:
    script = "pid=$(sleep 60 > /dev/null & echo $!); echo up; echo $pid; read line"
    process = waiting("sh", "-c", script, ALIQUOT_LEASE=FIRST)
    assert process.stdout is not None
    orphan = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        assert processes_carrying([FIRST]) == {FIRST: (orphan,)}
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_a_process_in_the_middle_of_exec_is_still_found(waiting: Waiting, tmp_path: Path) -> None:
    """It has no environment there, as a shell's child has none when the shell is gone already."""
    script = tmp_path / "again"
    script.write_text('exec sh "$0"\n')
    process = waiting("sh", "-c", f"echo up; exec sh {script}", ALIQUOT_LEASE=FIRST)
    for _ in range(100):
        assert processes_carrying([FIRST]) == {FIRST: (process.pid,)}


def test_a_process_without_environment_belongs_to_nobody(waiting: Waiting) -> None:
    process = waiting("env", "-i", "sh", "-c", "echo up; read line", ALIQUOT_LEASE=FIRST)
    assert Path(f"/proc/{process.pid}/environ").read_bytes() == b""
    assert processes_carrying([FIRST]) == {}

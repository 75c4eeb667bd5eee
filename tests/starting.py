"""`aliquot` commands as processes of their own, without a start of Python and its imports for each.

The tests give some hundreds of commands, and nine tenths of what one costs is the start. Here one
process has everything imported and forks for each command: own pid, own environment, own streams,
own working folder. What a start itself does (locale, streams, what is imported when) is tested with
real starts: tests/unit/cli/test_cli_streams.py, test_cli_imports.py, and every program in a share.
"""

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


class Starter:
    """Ended by the end of its socket, however the tests end."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )

    def close(self) -> None:
        self._socket.close()
        self._process.wait(timeout=30)

    def run(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        input: str = "",  # noqa: A002 - as subprocess.run calls it
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """As subprocess.run gives it."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(input.encode())
            files[0].seek(0)
            answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(answers)
            with theirs:
                self._ask(words, env, cwd, [*(file.fileno() for file in files), theirs.fileno()])
            answers.settimeout(timeout)
            pid = int(answers.recv(64))
            try:
                code = int(answers.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), timeout) from None
            for file in files[1:]:
                file.seek(0)
            out, err = (file.read().decode(errors="surrogateescape") for file in files[1:])
        return subprocess.CompletedProcess(list(words), code, out, err)

    def _ask(
        self, words: Sequence[str], env: Mapping[str, str], cwd: Path | None, descriptors: list[int]
    ) -> None:
        order = json.dumps({"words": list(words), "env": dict(env), "cwd": str(cwd or Path.cwd())})
        with tempfile.TemporaryFile() as written:  # a packet has a largest size, an environment has none
            written.write(order.encode())
            written.flush()
            rights = array.array("i", [*descriptors, written.fileno()])
            self._socket.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])


@functools.cache
def starter() -> Starter:
    """The one of this process."""
    made = Starter()
    atexit.register(made.close)
    return made


def _serve(listening: socket.socket) -> None:
    import aliquot

    for module in pkgutil.walk_packages(aliquot.__path__, "aliquot."):
        if not module.name.endswith("__main__") and ".demo" not in module.name:
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    while True:
        _, descriptors, _, _ = socket.recv_fds(listening, 1, 5)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not descriptors:
            return
        if os.fork() == 0:
            listening.close()
            _wait_for_command(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _wait_for_command(descriptors: list[int]) -> None:
    """In a fork: start the command as a child, tell its pid and then its code."""
    answers = socket.socket(fileno=descriptors[3])
    pid = os.fork()
    if pid == 0:
        answers.close()
        _become_command(descriptors)
    for descriptor in descriptors[:3]:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # whoever asked may be gone
        answers.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        answers.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become_command(descriptors: list[int]) -> None:
    code = 1
    try:
        with os.fdopen(descriptors[4], "rb") as written:
            written.seek(0)
            order = json.load(written)
        for number in range(3):
            os.dup2(descriptors[number], number)
            os.close(descriptors[number])
        sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        sys.argv = ["aliquot", *order["words"]]
        from aliquot.cli.main import main

        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))

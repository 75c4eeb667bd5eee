"""Gives `aliquot` commands and kills each at the step that it is told: SIGKILL, in a process of its own.

One line of JSON an order: {"words": ["resize", …], "at": 3, "by": "call"}; one an answer: {"killed": true,
"step": "pwrite64"}. Steps by `call` are the system calls that change something, each stopped before it is
made; steps by `line` are the lines of the Python modules in which a change is decided and written, so that
a kill between two stores into a mapped file is one of them as well.
"""

import contextlib
import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
from types import FrameType
from typing import Any

import aliquot
from aliquot.cli.main import main

_TRACEME, _CONT, _GETREGS, _SYSCALL, _SETOPTIONS = 0, 7, 12, 24, 0x4200
_KILL_WITH_TRACER, _MARK_CALLS = 0x100000, 1
_THIRD_ARGUMENT, _CALL = 12, 15
"""Places in the registers of x86-64 as ptrace gives them: rdx and orig_rax."""
_CHANGING = {
    1: "write",
    18: "pwrite64",
    11: "munmap",
    26: "msync",
    73: "flock",
    74: "fsync",
    75: "fdatasync",
    77: "ftruncate",
    82: "rename",
    83: "mkdir",
    87: "unlink",
    90: "chmod",
    91: "fchmod",
    257: "openat",
    263: "unlinkat",
    268: "fchmodat",
    316: "renameat2",
}
_DECIDING = (
    "enforcement/limits.py",
    "node/changing.py",
    "lease/writing.py",
    "lease/book.py",
    "lease/storage.py",
)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def _command(order: dict[str, Any]) -> None:
    """In the fork: what `aliquot WORDS` does. Never returns."""
    sink = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(sink, stream)
    sys.argv = ["aliquot", *order["words"]]
    code: object = 1
    try:
        if order["by"] == "call":
            _libc.ptrace(_TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            _kill_at_line(order["at"])
        main()
    except SystemExit as left:
        code = left.code
    finally:
        sys.settrace(None)
        os._exit(code if isinstance(code, int) else 1)


def _kill_at_line(at: int) -> None:
    left = at

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if event == "line":
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
        return trace if frame.f_code.co_filename.endswith(_DECIDING) else None

    sys.settrace(trace)


def _wait_for(pid: int) -> dict[str, Any]:
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return {"killed": True, "step": "line"}
    return {"killed": False, "code": os.waitstatus_to_exitcode(status)}


def _kill_at_call(pid: int, at: int) -> dict[str, Any]:
    """Each call stops twice, before and after; signals are passed on."""
    registers = (ctypes.c_ulonglong * 27)()
    os.waitpid(pid, 0)
    _libc.ptrace(_SETOPTIONS, pid, None, _MARK_CALLS | _KILL_WITH_TRACER)
    before, left, passed_on = False, at, 0
    while True:
        _libc.ptrace(_SYSCALL, pid, None, passed_on)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            return {"killed": False, "code": os.waitstatus_to_exitcode(status)}
        if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
            passed_on = os.WSTOPSIG(status)
            continue
        passed_on, before = 0, not before
        if not before:
            continue
        _libc.ptrace(_GETREGS, pid, None, registers)
        step = _CHANGING.get(registers[_CALL])
        if step == "openat" and not registers[_THIRD_ARGUMENT] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            step = None
        if step is not None and left == 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"killed": True, "step": step}
        left -= step is not None


def _serve() -> None:
    for module in pkgutil.walk_packages(aliquot.__path__, "aliquot."):
        if not module.name.endswith("__main__") and ".demo" not in module.name:
            importlib.import_module(module.name)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _command(order)
        by_call = order["by"] == "call"
        print(json.dumps(_kill_at_call(pid, order["at"]) if by_call else _wait_for(pid)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _serve()

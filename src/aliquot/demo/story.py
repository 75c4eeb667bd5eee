"""The story, in the order it happens. Every figure in it is measured while it is told."""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from aliquot.demo.screen import ALIQUOT, Program, ask, command, heading, say
from aliquot.demo.stage import Stage, set_stage
from aliquot.model import AliquotError, Reason

PROGRAMS = Path(__file__).parent / "programs"
_START = 60.0
"""Seconds a program may take to import numba and compile its kernel, cold."""


def tell(*, python: Path | None) -> int:
    """Tell it all. Gives the exit code. Leaves nothing behind, also when it fails midway."""
    began = monotonic()
    stage = set_stage(python)
    try:
        _shares(stage)
        if stage.software:
            _without(stage)
        heading("At the end")
        command("leases")
        stage.clear()
    finally:
        stage.clear()
    say(f"\nThat took {monotonic() - began:.0f} s. Next:")
    if shutil.which("aliquot") is None:
        say(f"  first                  export PATH={Path(sys.executable).parent}:$PATH")
    say("  on a box with GPUs     aliquot gpus                        read-only, no root")
    say("  without a GPU          aliquot softgpu create T4           a software GPU that stays")
    say(f"  your own program       aliquot run --gpu 1/4 -- {_short(stage.python)} your_program.py")
    say("  in a container         aliquot run --gpu 1/4 -- docker run IMAGE …")
    return 0


def _short(path: Path) -> str:
    """As one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _shares(stage: Stage) -> None:
    heading(f"Two programs, two shares of one {stage.kind}")
    greedy = neighbour = None
    try:
        neighbour = _start(stage, "neighbour", stage.small)
        neighbour.wait_for("million elements", within=_START)
        greedy = _start(stage, "greedy", stage.large)
        pid = _pid(greedy)
        greedy.wait_for("taken, then", within=_START)
        neighbour.wait_for("million elements", within=_START)
        command("leases")
        heading("Who holds what?")
        command("why", stage.large, expect=4)
        heading("The greedy one is killed, with SIGKILL")
        before = _gpu(stage)["usedMemoryBytes"]
        say(f"$ kill -9 {pid}")
        os.kill(pid, signal.SIGKILL)
        seconds = _seconds_until_less(stage, before - _largest_share() // 2)
        say(f"  its memory is free after {seconds:.2f} s; the neighbour goes on:")
        neighbour.forget()
        neighbour.wait_for("million elements", within=_START)
        greedy.end(within=10)
        heading("Was the neighbour's work right?")
        _stop(neighbour)
    finally:
        for program in (greedy, neighbour):
            if program is not None:
                program.terminate()
                program.end(within=5)


def _start(stage: Stage, name: str, spec: str) -> Program:
    shown = f"aliquot run --gpu {spec} -- python {name}.py &"
    argv = [*ALIQUOT, "run", "--gpu", spec, "--", str(stage.python), str(PROGRAMS / f"{name}.py")]
    return Program(name, argv, shown=shown)


def _pid(program: Program) -> int:
    return int(program.wait_for("process ", within=_START).rpartition(" ")[2])


def _stop(program: Program) -> None:
    program.terminate()
    program.wait_for("equal to numpy's result: yes", within=30)
    if program.end(within=10) != 0:
        raise AliquotError(Reason.FAILED, f"{program.name} did not end well")


def _seconds_until_less(stage: Stage, memory: int) -> float:
    """From now until the GPU shows less than ``memory`` bytes in use."""
    began = monotonic()
    while monotonic() - began < 10:
        used = _gpu(stage)["usedMemoryBytes"]
        if used is not None and used < memory:
            return monotonic() - began
        sleep(0.02)
    raise AliquotError(Reason.FAILED, "the killed program's memory is not free after 10 s")


def _largest_share() -> int:
    leases: list[dict[str, Any]] = json.loads(ask("leases", "-o", "json"))["items"]
    largest: int = max(lease["memoryBytes"] for lease in leases)
    return largest


def _gpu(stage: Stage) -> dict[str, Any]:
    items: list[dict[str, Any]] = json.loads(ask("gpus", "-o", "json"))["items"]
    return next(item for item in items if item["uuid"] == stage.uuid)


def _without(stage: Stage) -> None:
    heading("The same two without Aliquot")
    environ: dict[str, str] = json.loads(ask("softgpu", "env", "-o", "json"))["env"]
    environ["CUDA_VISIBLE_DEVICES"] = stage.uuid
    greedy = Program("greedy", _bare(stage, "greedy"), shown="python greedy.py &", environ=environ)
    neighbour = None
    try:
        greedy.wait_for("taken, then", within=_START)
        neighbour = Program(
            "neighbour", _bare(stage, "neighbour"), shown="python neighbour.py &", environ=environ
        )
        code = neighbour.end(within=_START)
        if code == 0:
            raise AliquotError(Reason.FAILED, "the neighbour was expected to fail without Aliquot")
        say(f"  the neighbour failed (exit {code}): the greedy one has all the memory")
    finally:
        for program in (greedy, neighbour):
            if program is not None:
                program.terminate()
                program.end(within=5)


def _bare(stage: Stage, name: str) -> list[str]:
    return [str(stage.python), str(PROGRAMS / f"{name}.py")]

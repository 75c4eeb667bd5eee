"""On what the story is told: an idle NVIDIA GPU if there is one, else a software GPU."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aliquot.demo.screen import ask, command, heading, say
from aliquot.model import GIB, MIB, AliquotError, Reason

_OF_A_REAL_CARD = 1 * GIB
"""All that the demo may take of somebody's card."""
_SHARE_OF_A_REAL_CARD = 96 * MIB
"""The rest of that is for two contexts: the driver takes some 400 MiB for each by itself."""


@dataclass(slots=True)
class Stage:
    python: Path
    uuid: str
    software: bool
    kind: str
    large: str
    """SPEC of the greedy program's share."""
    small: str
    """SPEC of the neighbour's."""
    made_here: bool

    def clear(self) -> None:
        """Remove the software GPU where the demo made it. May be called twice."""
        if self.made_here:
            self.made_here = False
            command("softgpu", "remove", self.uuid)


def set_stage(python: Path | None) -> Stage:
    program_python = _client_python(python)
    gpus = _gpus()
    idle = [gpu for gpu in gpus if _idle_card(gpu)]
    if idle:
        gpu = idle[0]
        say(f"Using GPU {gpu['index']} ({gpu['name']}), idle, and at most 1 GiB of it.")
        spec = f"{gpu['uuid'][:12]}:{_SHARE_OF_A_REAL_CARD // MIB}MiB"
        return Stage(program_python, gpu["uuid"], False, gpu["name"], spec, spec, made_here=False)
    say("No idle NVIDIA GPU here: using a software GPU, which runs real CUDA kernels on the CPU.")
    heading("A software GPU appears")
    before = {gpu["uuid"] for gpu in gpus}
    command("softgpu", "create", "T4")
    uuid = next(gpu["uuid"] for gpu in _gpus() if gpu["uuid"] not in before)
    card = f"{uuid[:12]}:" if before else ""  # where it is not the only one
    stage = Stage(program_python, uuid, True, "software GPU", f"{card}60%", f"{card}30%", made_here=True)
    try:
        command("gpus")
    except BaseException:
        stage.clear()
        raise
    return stage


def _gpus() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(ask("gpus", "-o", "json"))["items"]
    return items


def _idle_card(gpu: dict[str, Any]) -> bool:
    used, memory = gpu["usedMemoryBytes"], gpu["memoryBytes"]
    return (
        gpu["vendor"] == "nvidia"
        and gpu["health"] not in ("lost", "unhealthy")
        and not gpu["cordoned"]
        and used is not None
        and memory is not None
        and used < 256 * MIB
        and memory >= _OF_A_REAL_CARD
    )


def _client_python(given: Path | None) -> Path:
    """A Python with numba-cuda. Raises AliquotError(MISSING_EXTRA) with how to make one."""
    checkout = Path(__file__).resolve().parents[3]
    named = os.environ.get("ALIQUOT_CLIENT_PYTHON")
    candidates = [given] if given else [Path(named)] if named else []
    candidates += [checkout / ".clients/bin/python", Path.cwd() / ".clients/bin/python"]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.absolute()
    raise AliquotError(
        Reason.MISSING_EXTRA,
        "the demo's programs need a Python with numba-cuda, and none was found at "
        + ", ".join(str(candidate) for candidate in candidates),
        next=[
            (
                f"{Path(sys.executable).name} -m venv .clients && "
                ".clients/bin/pip install 'numba-cuda[cu13]' nvidia-ml-py",
                "makes one here",
            )
        ],
    )

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
_PROFILES = ("T4", "A100-40", "H100")


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
        size = _OF_A_REAL_CARD // 2 // MIB
        return Stage(
            program_python, gpu["uuid"], False, gpu["name"], f"{size}MiB", f"{size}MiB", made_here=False
        )
    say("No idle NVIDIA GPU here: using a software GPU, which runs real CUDA kernels on the CPU.")
    heading("A software GPU appears")
    profile = _profile(gpus)
    before = {gpu["uuid"] for gpu in gpus}
    command("softgpu", "create", profile)
    made = next(gpu for gpu in _gpus() if gpu["uuid"] not in before)
    # Where there are other GPUs, only the model's name leads the shares to this one.
    model = f"{profile}:" if before else ""
    stage = Stage(
        program_python, made["uuid"], True, "software GPU", f"{model}60%", f"{model}30%", made_here=True
    )
    try:
        command("gpus")
    except BaseException:
        stage.clear()
        raise
    return stage


def _profile(gpus: list[dict[str, Any]]) -> str:
    """A profile that no GPU here has, so that its name means the one about to be made."""
    for profile in _PROFILES:
        if not any(profile.partition("-")[0] in gpu["name"] for gpu in gpus):
            return profile
    raise AliquotError(
        Reason.FAILED,
        "this machine has a GPU of every model that the demo could make, so their names lead nowhere",
        next=[("ALIQUOT_STATE_DIR=$(mktemp -d) aliquot demo", "tells the story with a book of its own")],
    )


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

"""Software GPUs made by hand, and programs that run on them as a tenant's program would: as processes
of their own, which find the libraries through LD_LIBRARY_PATH and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
# Another build of the libraries (with sanitizers, say) can be put to the same tests.
LIBRARIES = Path(os.environ.get("SOFTGPU_LIBRARIES") or ROOT / "src" / "aliquot" / "_native" / "softgpu")
PROGRAMS = Path(__file__).parent / "programs"
SONAMES = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvJitLink.so.12", "libnvJitLink.so.13")
MIB = 1 << 20

FACTS: dict[str, object] = {
    "name": "Aliquot Test GPU",
    "profile": "A100",
    "memory_bytes": 256 * MIB,
    "memory_reserved_bytes": 16 * MIB,
    "context_bytes": 20 * MIB,
    "compute_major": 8,
    "compute_minor": 0,
    "multiprocessors": 16,
    "clock_khz": 1410000,
    "memory_clock_khz": 1215000,
    "bus_width_bits": 5120,
    "l2_bytes": 40 * MIB,
    "shared_per_block_bytes": 49152,
    "shared_per_block_optin_bytes": 166912,
    "shared_per_multiprocessor_bytes": 167936,
    "registers_per_block": 65536,
    "threads_per_multiprocessor": 2048,
    "blocks_per_multiprocessor": 32,
    "power_limit_mw": 400000,
    "ecc": 1,
    "mig_instances": 7,
}


@dataclass
class Box:
    """A machine's state folder with software GPUs in it, and a way to run programs there."""

    state: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def devices(self) -> Path:
        return self.state / "softgpu"

    def add_device(self, *, bus: int = 0x3B, **facts: object) -> Path:
        identity = f"GPU-{uuid.uuid4()}"
        folder = self.devices / identity
        folder.mkdir(parents=True)
        values = {"uuid": identity, "pci_id": f"00000000:{bus:02X}:00.0", **FACTS, **facts}
        (folder / "device").write_text(
            "".join(f"{key} {value}\n" for key, value in values.items() if value is not None)
        )
        for name in ("arena", "state", "log"):
            (folder / name).touch()
        return folder

    def environment(self, **extra: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "NUMBA_"))}
        kept["ALIQUOT_STATE_DIR"] = str(self.state)
        kept["LD_LIBRARY_PATH"] = str(LIBRARIES)
        return kept | extra

    def start(
        self, program: str, *arguments: str, python: str = sys.executable, **extra: str
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [python, str(PROGRAMS / program), *arguments],
            env=self.environment(**extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(
        self, program: str, *arguments: str, python: str = sys.executable, **extra: str
    ) -> dict[str, Any]:
        """Run a program to its end; its last line of output is its answer, as JSON."""
        process = self.start(program, *arguments, python=python, **extra)
        out, errors = process.communicate(timeout=100)
        assert process.returncode == 0, f"{program} ended with {process.returncode}:\n{out}\n{errors}"
        answer = json.loads(out.splitlines()[-1])
        assert isinstance(answer, dict)
        return answer

    def log(self, device: Path) -> list[str]:
        return (device / "log").read_text().splitlines()

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


def first_answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The first line that a program writes, as JSON: it is where it said it would be."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, errors = process.communicate()
        raise AssertionError(errors)
    answer = json.loads(line)
    assert isinstance(answer, dict)
    return answer

"""The software GPU beside plain C: kernels on one core, checked accesses and all, and what calls cost.

A kernel's figure is the time of the same loop in plain C at -O2 over the kernel's, the two taking
turns in one process, medians of CPU time; a wrong result makes the row short. PTX is what NVRTC of the
clients makes of softgpu_kernels.cu, and numba's of the engine's tests.
"""

import ctypes
import math
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from aliquot.softgpu.creating import create
from aliquot.softgpu.libraries import environment, library_folder
from row import print_row

_HERE = Path(__file__).resolve().parent
_NUMBA = _HERE.parent / "tests" / "native" / "engine" / "ptx" / "numba_vector_add.ptx"
_RATIOS = {
    "vector add": 0.25,
    "vector add, numba": 0.1,  # indices of 64 bits, and a wrap-around for negative ones, three times
    "tiled matmul": 1.0,
    "reduction": 0.25,
    "softmax": 0.3,
    "histogram": 0.5,
}
_STARTS = 15
_PAIRS = 5


class Bench:
    """The compiled programs, and a machine of one software GPU to run them on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ptx = folder / "kernels.ptx"
        self.hundred = folder / "hundred.ptx"
        root = folder / "softgpu"
        root.mkdir()
        create(root, profile="A100-40", at=time.time_ns(), entropy=lambda: secrets.randbits(128))
        self.environment = os.environ | environment(library_folder()) | {"ALIQUOT_STATE_DIR": str(folder)}
        for name in ("softgpu_kernels", "softgpu_costs"):
            options = ["-std=gnu11", "-O2", f"-L{library_folder()}", "-l:libcuda.so.1", "-lm"]
            subprocess.run(["cc", _HERE / f"{name}.c", "-o", folder / name, *options], check=True)

    def lines(self, program: str, *arguments: str | Path, cpus: Iterable[int] = ()) -> list[str]:
        """What the program prints, on the given CPUs only; nothing where it fails."""
        allowed = set(cpus) or os.sched_getaffinity(0)
        done = subprocess.run(
            ["taskset", "--cpu-list", ",".join(map(str, sorted(allowed))), self.folder / program, *arguments],
            env=self.environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        print(done.stderr, file=sys.stderr, end="")
        return done.stdout.splitlines() if done.returncode == 0 else []

    def cost(self, what: str, text: Path) -> float:
        lines = self.lines("softgpu_costs", what, text)
        return float(lines[0]) if lines else math.nan


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="aliquot-bench-") as folder:
        bench = Bench(Path(folder))
        bench.ptx.write_text(_nvrtc((_HERE / "softgpu_kernels.cu").read_text()))
        bench.hundred.write_text(_hundred_instructions())
        held = [*_ratios(bench), _threads(bench), *_costs(bench)]
    return 0 if all(held) else 1


def _row(figure: str, measured: float, unit: str, goal: str, holds: Callable[[float], bool]) -> bool:
    print_row(figure, measured, unit, goal, holds(measured))
    return holds(measured)


def _ratios(bench: Bench) -> list[bool]:
    lines = bench.lines("softgpu_kernels", bench.ptx, _NUMBA, cpus=[min(os.sched_getaffinity(0))])
    measured = {name: float(value) for name, value in (line.split("\t") for line in lines)}
    return [
        _row(name, measured.get(name, math.nan), "of plain C", f"≥{goal:g}", partial(_at_least, goal))
        for name, goal in _RATIOS.items()
    ]


def _at_least(goal: float, value: float) -> bool:
    return value >= goal


def _threads(bench: Bench) -> bool:
    """One and two CPUs in turns, so that a neighbour's load meets both."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    speedups = []
    for _ in range(_PAIRS if len(cpus) == 2 else 0):
        one, two = (
            bench.lines("softgpu_kernels", bench.ptx, _NUMBA, "threads", cpus=part)
            for part in (cpus[:1], cpus)
        )
        if one and two:
            speedups.append(float(one[0].split("\t")[1]) / float(two[0].split("\t")[1]))
    measured = statistics.median(speedups) if speedups else math.nan
    return _row("two threads, matmul", measured, "of one", "≥1.7", partial(_at_least, 1.7))


def _costs(bench: Bench) -> list[bool]:
    start = statistics.median(bench.cost("init", bench.ptx) for _ in range(_STARTS))
    return [
        _row("empty launch", bench.cost("launch", bench.ptx), "µs", "≤10 µs", lambda value: value <= 10),
        _row("module load, 100 instructions", bench.cost("load", bench.hundred) / 1000, "ms", "≤5 ms",
             lambda value: value <= 5),
        _row("first cuInit", start / 1000, "ms", "≤20 ms", lambda value: value <= 20),
        _row("16 processes, one counter, updates lost", bench.cost("updates", bench.ptx), "", "=0",
             lambda value: value == 0),
        _row("memory of a process", bench.cost("memory", bench.ptx), "MiB", "≤20 MiB",
             lambda value: value <= 20),
    ]  # fmt: skip


def _hundred_instructions() -> str:
    steps = "".join(
        f"fma.rn.f32 %f{i % 8}, %f{(i + 1) % 8}, %f{(i + 2) % 8}, %f{i % 8};\n" for i in range(97)
    )
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        f".reg .f32 %f<8>; .reg .b64 %d<2>;\n"
        f"ld.param.u64 %d1, [out];\n{steps}st.global.f32 [%d1], %f0;\nret;\n}}\n"
    )


def _nvrtc(source: str) -> str:
    """PTX for compute capability 8.0 from the NVRTC that is installed with the clients."""
    found = sorted((_HERE.parent / ".clients").glob("lib/python*/site-packages/nvidia/*/lib/libnvrtc.so.*"))
    if not found:
        raise SystemExit("no NVRTC in .clients: make clients")
    nvrtc = ctypes.CDLL(str(found[0]))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_80")
    if nvrtc.nvrtcCompileProgram(program, 1, options) != 0:
        raise SystemExit("NVRTC does not compile softgpu_kernels.cu")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text.value.decode()


if __name__ == "__main__":
    sys.exit(main())

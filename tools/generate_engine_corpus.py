"""Write tests/native/engine/ptx/*.ptx: what compilers really emit, as test data.

Run by hand, with a Python that has numba-cuda, NVRTC and nvidia-cuda-crt (mma.h); none needs a GPU::

    python tools/generate_engine_corpus.py

The sources are numba_kernels.py, kernels.cu and algorithms.cu of tests/native/engine/corpus. Look at the diff
before committing it: a new compiler may emit forms that the engine does not run yet.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests" / "native" / "engine"


def _write(name: str, text: str) -> None:
    (TESTS / "ptx" / f"{name}.ptx").write_text(text.rstrip("\0\n ") + "\n")
    print(f"{name}: {len(text)} bytes")


def _shortened(text: str) -> str:
    """Numba's mangled names run to 500 bytes and are repeated for each parameter: kept whole in one file, cut
    in the others, which would be ten times as large."""
    stems = {re.sub(r"_param_\d+$", "", name) for name in re.findall(r"_ZN[0-9A-Za-z_$]{100,}", text)}
    for number, stem in enumerate(sorted(stems, key=lambda stem: (-len(stem), stem))):
        text = text.replace(stem, f"{stem[:40]}_{number}")
    return text


def numba_corpus() -> None:
    sys.path.insert(0, str(TESTS / "corpus"))
    kernels: dict[str, Any] = importlib.import_module("numba_kernels").KERNELS
    cuda: Any = importlib.import_module("numba.cuda")
    # Numba asks the driver for the card when it compiles a function that a kernel calls. Here is none.
    card = SimpleNamespace(compute_capability=(8, 0))
    importlib.import_module("numba.cuda.dispatcher").get_current_device = lambda: card  # type: ignore[attr-defined]
    for name, (function, signature, keywords) in kernels.items():
        function.__code__ = function.__code__.replace(co_filename="numba_kernels.py")  # for debug sections
        text, _ = cuda.compile_ptx(function, signature, cc=(8, 0), device=False, **keywords)
        _write(name, text if name == "numba_vector_add" else _shortened(text))


def _nvrtc(source: str, options: list[str]) -> str:
    nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
    if not any(option.startswith("--gpu-architecture") for option in options):
        options = [*options, "--gpu-architecture=compute_80"]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    folders = [Path(part) / "cu13" / "include" for part in importlib.import_module("nvidia").__path__]
    options = [*options, "--device-int128", *(f"--include-path={folder}" for folder in folders)]
    arguments = [option.encode() for option in options]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(arguments), arguments)
    if error:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return str(text, "utf-8")


def nvrtc_corpus() -> None:
    for file in ("kernels.cu", "algorithms.cu"):
        parts = re.split(r"^//// (.*)$", (TESTS / "corpus" / file).read_text(), flags=re.MULTILINE)[1:]
        for head, source in zip(parts[::2], parts[1::2], strict=True):
            name, *options = head.split()
            _write(f"nvrtc_{name}", _nvrtc(source, options))


if __name__ == "__main__":
    os.chdir("/")  # NVRTC writes where it was called into debug sections
    numba_corpus()
    nvrtc_corpus()

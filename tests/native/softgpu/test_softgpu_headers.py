"""Our declarations of NVIDIA's types against NVIDIA's own header."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
DRIVER = HERE.parents[2] / "native" / "softgpu" / "driver"


def test_our_declarations_are_laid_out_as_in_cuda_h(
    tmp_path: Path, cuda_headers: Path, compile_c: Callable[..., Path]
) -> None:
    source = HERE / "c" / "cuda_layout.c"
    subprocess.run(
        ["cc", "-c", "-DREAL_HEADER", f"-I{cuda_headers}", str(source), "-o", str(tmp_path / "real.o")],
        check=True,
    )
    program = compile_c(source, tmp_path / "real.o", flags=(f"-I{DRIVER}",))
    result = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout

"""Unmodified Triton, as `aliquot softgpu env` prepares a shell for it: on a whole card, and in a share."""

import json
from pathlib import Path

import pytest
from tests.flow.box import Box

_CHECKOUT = Path(__file__).resolve().parents[2]
_PROGRAM = _CHECKOUT / "tests" / "native" / "softgpu" / "programs" / "triton_kernels.py"


@pytest.fixture
def triton_python() -> str:
    python = _CHECKOUT / ".clients-more" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no Python with Triton at {python}: run `make clients-more`")
    return str(python)


@pytest.mark.slow
def test_triton_multiplies_on_a_card_and_in_a_share_of_it(
    box: Box, triton_python: str, tmp_path: Path
) -> None:
    assert box.aliquot("softgpu", "create", "H100").returncode == 0
    box.environ |= json.loads(box.aliquot("softgpu", "env", "-o", "json").stdout)["env"]
    box.environ |= {"TRITON_CACHE_DIR": str(tmp_path / "triton"), "TRITON_DEFAULT_FP_FUSION": "1"}
    whole = ("--gpu", "H100")
    part = ("--gpu", "8GiB")
    for asked in (whole, part):
        done = box.aliquot("run", "-q", *asked, "--", triton_python, str(_PROGRAM), "matmul_f16")
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads(done.stdout) == {"right": True, "instructions": ["wgmma"]}
    assert box.aliquot("softgpu", "remove", "all").returncode == 0

"""The package's public face, and what it costs to take one thing from it."""

import subprocess
import sys
from pathlib import Path

import aliquot.injection


def test_every_public_name_is_there_and_none_is_a_module() -> None:
    for name in aliquot.injection.__all__:
        assert type(getattr(aliquot.injection, name)).__name__ != "module", name


def test_no_module_is_called_like_a_public_name() -> None:
    folder = Path(aliquot.injection.__file__).parent
    assert not {path.stem for path in folder.glob("*.py")} & set(aliquot.injection.__all__)


def test_a_process_share_loads_nothing_that_only_engines_need() -> None:
    code = (
        "import sys; from aliquot.injection import ShareFolder, child_environment, process_edits, "
        "container_command; container_command(['python']); print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"subprocess", "json", "hashlib", "tempfile", "csv", "urllib.parse"} & set(said.split())

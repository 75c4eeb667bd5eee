"""What a call pays for: the modules it imports, in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

# Each costs every call of a command milliseconds of CPU time, and none of them is needed.
_HEAVY = (
    "asyncio",
    "concurrent.futures",
    "ctypes.util",
    "email",
    "http",
    "hypothesis",
    "multiprocessing",
    "numpy",
    "pytest",
    "rich",
    "ssl",
    "unittest",
    "urllib.request",
    "xml",
    "yaml",
)


def _imported(*arguments: str, env: dict[str, str] | None = None) -> set[str]:
    """Names of the modules that ``aliquot ARGUMENTS`` leaves imported at its end."""
    code = (
        "import json, sys\n"
        "from aliquot.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=dict(os.environ) | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def _heavy(modules: set[str]) -> list[str]:
    return sorted(name for name in _HEAVY if name in modules)


@pytest.mark.parametrize("arguments", [["--version"], ["version"]])
def test_the_version_imports_nothing_of_ours_but_the_entry_point(arguments: list[str]) -> None:
    modules = _imported(*arguments)
    ours = {name for name in modules if name.startswith("aliquot")}
    assert ours == {"aliquot", "aliquot.cli", "aliquot.cli.main"}
    # json is this test's own; os and site come with the interpreter.
    assert not {"click", "re", "dataclasses", "typing_extensions", "sqlite3", "msgspec"} & (
        modules - _imported_by_json()
    )


def _imported_by_json() -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", "import json, sys; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def test_help_imports_no_command_and_no_machine() -> None:
    modules = _imported("--help")
    assert not any(name.startswith(("aliquot.cli.commands", "aliquot.node")) for name in modules)
    assert _heavy(modules) == []


def test_a_commands_help_imports_no_machine() -> None:
    modules = _imported("run", "--help")
    assert not any(name.startswith("aliquot.node") for name in modules)
    assert {name for name in modules if name.startswith("aliquot.cli.commands.")} == {
        "aliquot.cli.commands.run"
    }


def test_gpus_imports_nothing_heavy(aliquot_env: dict[str, str]) -> None:
    modules = _imported("gpus", env=aliquot_env)
    assert "aliquot.node" in modules
    assert _heavy(modules) == []
    assert "msgspec" not in modules  # only a document needs it


def test_run_imports_nothing_heavy(aliquot_env: dict[str, str]) -> None:
    modules = _imported("run", "--gpu", "1GiB", "--", "true", env=aliquot_env)
    assert "aliquot.node" in modules
    assert _heavy(modules) == []

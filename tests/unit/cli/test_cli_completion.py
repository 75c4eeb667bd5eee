"""What the shell is offered, through click's own way of asking."""

import subprocess
from collections.abc import Callable

import pytest
from click.shell_completion import ShellComplete

from aliquot.cli.program import PROGRAM, program

Aliquot = Callable[..., "subprocess.CompletedProcess[str]"]


def _offered(line: str) -> list[tuple[str, str]]:
    """(value, type) of each item that may stand at the end of ``line``."""
    *words, incomplete = line.split(" ")
    items = ShellComplete(program, {}, PROGRAM, "_ALIQUOT_COMPLETE").get_completions(words, incomplete)
    return [(item.value, item.type) for item in items]


def _values(line: str) -> list[str]:
    return [value for value, _ in _offered(line)]


@pytest.mark.parametrize("line", ["release ", "show ", "why ", "run --lease "])
def test_a_lease_is_offered_by_id_and_by_name(typed: Aliquot, line: str) -> None:
    assert typed("softgpu", "create", "tiny", "-q").returncode == 0
    lease = typed("lease", "--gpu", "1/4", "--name", "night", "-o", "name").stdout.strip()
    assert _values(line) == [lease, "night"]
    assert _values(line + "ni") == ["night"]


def test_software_gpus_are_offered_by_uuid(typed: Aliquot) -> None:
    uuid = typed("softgpu", "create", "tiny", "-q").stdout.strip()
    assert _values("softgpu remove ") == [uuid, "all"]
    assert _values("softgpu remove GPU-") == [uuid]


def test_sets_of_software_gpus_are_offered_by_name(typed: Aliquot) -> None:
    made = typed("softgpu", "create", "2xtiny", "--name", "lab", "-q").stdout.split()
    assert _values("softgpu remove ") == [*made, "lab", "all"]
    assert _values("softgpu list l") == _values("softgpu env l") == ["lab"]


def test_profiles_are_offered_with_the_count_that_was_typed() -> None:
    assert {"T4", "A100-80", "tiny"} <= set(_values("softgpu create "))
    assert _values("softgpu create t4") == ["T4"]
    assert _values("softgpu create 2xA100-8") == ["2xA100-80"]


@pytest.mark.parametrize(
    "line",
    ["plan -f as", "run --gpu 1/4 -- pyt", "run --gpu 1/4 -- python tr", "run --gpu 1/4 -- python -"],
)
def test_files_are_left_to_the_shell(line: str) -> None:
    assert _offered(line) == [(line.rpartition(" ")[2], "file")]


def test_a_machine_that_cannot_be_asked_offers_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: "object"
) -> None:
    monkeypatch.setenv("ALIQUOT_STATE_DIR", "/proc/nowhere")
    monkeypatch.setenv("ALIQUOT_RUNTIME_DIR", f"{tmp_path}/run")
    assert _values("release ") == []

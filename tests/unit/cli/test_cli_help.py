from importlib import import_module

import click
import pytest

from aliquot.cli.program import Command, invoke, program
from aliquot.cli.registry import COMMANDS


def _every_command() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = import_module(f"aliquot.cli.commands.{name}").command
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {sub}", command.commands[sub]) for sub in command.commands]
    return found


@pytest.mark.parametrize(("path", "command"), _every_command(), ids=lambda value: str(value))
def test_help_fits_80_columns_and_shows_examples_first(
    path: str, command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([*path.split(), "--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.index("Examples:") == 2
    assert lines.index("Examples:") < next(
        index for index, line in enumerate(lines) if line.startswith("Usage:")
    )
    if isinstance(command, Command):
        assert command.examples
        assert all("aliquot " in line for line, _ in command.examples)


def test_the_registry_says_what_the_commands_say() -> None:
    for path, command in _every_command():
        if path in COMMANDS:
            assert (command.help or "").splitlines()[0] == COMMANDS[path].summary
            assert command.name == path


def test_aliquot_alone_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 0
    text = capsys.readouterr().out
    assert all(f"\n  {name} " in text for name in COMMANDS)


def test_every_option_of_every_command_has_help() -> None:
    for path, command in _every_command():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, (path, parameter.name)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_calls_back(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["completion", shell]) == 0
    assert f"_ALIQUOT_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_the_program_loads_no_command_before_it_is_called() -> None:
    assert program.commands == {}

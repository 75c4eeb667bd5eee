"""The click program: a group whose commands are imported only when called, and one way out.

``invoke`` is the border of the command line: whatever happens behind it becomes an exit code
and, where something failed, an ``AliquotError`` in its one shape.
"""

from collections.abc import Callable, Sequence
from typing import Any

import click

from aliquot.cli.registry import COMMANDS
from aliquot.model import AliquotError, Reason

PROGRAM = "aliquot"
WIDTH = 80
OUR_FAILURE_IN_RUN = 125
"""The exit code of ``run`` for a failure of Aliquot itself: the child's own 1 means something else."""


class Command(click.Command):
    """A command whose help begins with examples and fits 80 columns anywhere."""

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params.append(_debug_option())

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_summary(self, formatter)
        self.format_usage(ctx, formatter)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def get_help(self, ctx: click.Context) -> str:
        return _help_text(self, ctx)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:  # noqa: ARG002 - click's face
        return _help_option(self)


class Group(click.Group):
    """A group of such commands; an unknown one is answered with the nearest."""

    examples: Sequence[tuple[str, str]] = ()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _format_summary(self, formatter)
        self.format_usage(ctx, formatter)
        self.format_options(ctx, formatter)

    def get_help(self, ctx: click.Context) -> str:
        return _help_text(self, ctx)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:  # noqa: ARG002 - click's face
        return _help_option(self)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and name not in self.list_commands(ctx):
            from aliquot.cli.usage_errors import unknown_command

            raise unknown_command(ctx.command_path, args, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class Program(Group):
    """``aliquot`` itself: commands by the registry, each imported when it is called."""

    examples = (
        ("aliquot gpus", "what is here, and what is free"),
        ("aliquot run --gpu 1/4 -- python train.py", "a quarter of a GPU"),
        ("aliquot why 20GiB", "does it fit, and who holds what"),
    )

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's face
        return list(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's face
        cmd_name: str,
    ) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"aliquot.cli.commands.{cmd_name}").command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's face
        formatter: click.HelpFormatter,
    ) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, entry in COMMANDS.items():
            groups.setdefault(entry.group, []).append((name, entry.summary))
        for group, rows in groups.items():
            with formatter.section(group.capitalize()):
                formatter.write_dl(rows, col_max=12)


def command(
    name: str, *, examples: Sequence[tuple[str, str]] = (), **settings: Any
) -> Callable[[Callable[..., int | None]], Command]:
    """Declare the command ``name`` of the registry; the docstring continues its help."""

    import inspect

    def declare(function: Callable[..., int | None]) -> Command:
        text = COMMANDS[name].summary
        if function.__doc__:
            text += "\n\n" + inspect.cleandoc(function.__doc__)
        return click.command(name, cls=Command, help=text, examples=examples, **settings)(function)

    return declare


@click.group(
    PROGRAM,
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
    help="Share a GPU: cut it into shares of memory and compute, and hold every tenant to its share.",
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of a failure.")
@click.pass_context
def program(context: click.Context, version: bool) -> None:
    if version:
        from aliquot import __version__
        from aliquot.cli.output.streams import out

        out(f"{PROGRAM} {__version__}")
        context.exit(0)
    if context.invoked_subcommand is None:
        from aliquot.cli.output.streams import out

        out(context.get_help())


def invoke(arguments: Sequence[str]) -> int:
    """Run ``aliquot ARGUMENTS`` and return its exit code; nothing but Ctrl-C is raised."""
    try:
        result = program.main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.Abort as interrupted:
        raise KeyboardInterrupt from interrupted
    except Exception as error:
        from aliquot.cli.border import report

        return report(error, arguments)


def _debug_option() -> click.Option:
    return click.Option(["--debug"], is_flag=True, expose_value=False, hidden=True)


def _help_option(owner: click.Command) -> click.Option:
    """``-h, --help``, printed by our own writer: it knows pipes that close and plain terminals."""
    if owner._help_option is None:
        owner._help_option = click.Option(
            ["-h", "--help"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_help,
            help="Show this and leave.",
        )
    return owner._help_option


def _print_help(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from aliquot.cli.output.streams import out

        out(context.get_help())
        context.exit(0)


def _help_text(owner: click.Command, context: click.Context) -> str:
    formatter = click.HelpFormatter(width=WIDTH, max_width=WIDTH)
    owner.format_help(context, formatter)
    return formatter.getvalue().rstrip("\n")


def _format_summary(owner: click.Command, formatter: click.HelpFormatter) -> None:
    """The first line, the examples, and then what else there is to say."""
    import inspect

    summary, _, rest = inspect.cleandoc(owner.help or "").partition("\n\n")
    formatter.write_text(summary)
    examples = getattr(owner, "examples", ())
    if examples:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in _example_lines(examples)))
    if rest:
        formatter.write_paragraph()
        formatter.write_text(inspect.cleandoc(rest))
    formatter.write_paragraph()


def _example_lines(examples: Sequence[tuple[str, str]]) -> list[str]:
    """Commands beside their meaning, and above it where both do not fit on one line."""
    column = max((len(line) for line, _ in examples if len(line) <= WIDTH // 2 + 6), default=0)
    lines = []
    for line, meaning in examples:
        if len(line) <= column and column + len(meaning) + 4 <= WIDTH:
            lines.append(f"{line.ljust(column)}  {meaning}".rstrip())
        else:
            lines += [line, f"    {meaning}"] if meaning else [line]
    return lines


def usage_error(message: str, *, steps: Sequence[tuple[str, str]] = ()) -> AliquotError:
    """A mistake on the command line that no parser sees, such as two options that contradict."""
    return AliquotError(Reason.BAD_USAGE, message, next=steps)


def debugging(arguments: Sequence[str]) -> bool:
    """Whether ``--debug`` stands among Aliquot's own arguments, not the child's, or ALIQUOT_DEBUG is set."""
    import os

    own = list(arguments)
    if "--" in own:
        own = own[: own.index("--")]
    return "--debug" in own or os.environ.get("ALIQUOT_DEBUG", "") not in ("", "0")

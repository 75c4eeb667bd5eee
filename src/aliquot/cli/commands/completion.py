"""``aliquot completion SHELL``."""

import click

from aliquot.cli.program import command as declare

SHELLS = ("bash", "zsh", "fish")


@declare(
    "completion",
    examples=[
        ('eval "$(aliquot completion bash)"', "in ~/.bashrc"),
        ('eval "$(aliquot completion zsh)"', "in ~/.zshrc"),
        ("aliquot completion fish > ~/.config/fish/completions/aliquot.fish", "once"),
    ],
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """It completes commands, options, leases, software GPUs and their profiles, and files."""
    from click.shell_completion import get_completion_class

    from aliquot.cli.output.streams import out_exactly
    from aliquot.cli.program import PROGRAM, program

    found = get_completion_class(shell)
    if found is None:
        raise RuntimeError(f"click has no completion for {shell}")
    script = found(program, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE")
    # Not source(): for bash that runs a bash to ask for its version, which a cron job may lack.
    out_exactly(script.source_template % script.source_vars())

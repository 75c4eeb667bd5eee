"""``aliquot demo``."""

from pathlib import Path

import click

from aliquot.cli.program import command as declare


@declare(
    "demo",
    examples=[
        ("aliquot demo", "two programs in two shares of one GPU"),
        ("aliquot demo --python .clients/bin/python", "with the numba-cuda that is there"),
    ],
)
@click.option(
    "--python",
    "python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A Python with numba-cuda and nvidia-ml-py; default: .clients of the checkout.",
)
def command(python: Path | None) -> int:
    """On an idle NVIDIA GPU it takes at most 1 GiB; without one it makes a software GPU, and
    removes it at the end. Nothing is left behind."""
    from aliquot.demo import tell

    return tell(python=python)

"""This user's machine for the length of one command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aliquot.node import Machine


@contextmanager
def this_machine() -> Iterator["Machine"]:
    """The machine; at the end what happened on the way is said on stderr, and its book closed."""
    from aliquot.node import open_machine

    machine = open_machine()
    try:
        yield machine
    finally:
        say_what_happened(machine)
        machine.close()


def say_what_happened(machine: "Machine") -> None:
    """Say and clear the machine's notices, such as what a killed command left and was cleaned."""
    from aliquot.cli.views.notices import say_notices

    say_notices(machine.notices)
    machine.notices.clear()

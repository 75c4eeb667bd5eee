"""Kinds of arguments whose values the shell is offered; what none of them does is judge a value."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from aliquot.model import Gpu
    from aliquot.node import Machine

    _Text = click.ParamType[str]
else:  # generic since click 8.5 only
    _Text = click.ParamType

_Answer = TypeVar("_Answer")


class _Offering(_Text):
    """A text of which the shell is offered what ``offers`` gives."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's face
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> "list[CompletionItem]":
        return self.offers(incomplete)

    def offers(self, incomplete: str) -> "list[CompletionItem]":
        raise NotImplementedError


class LeaseIdentity(_Offering):
    """A lease's id or name, completed from the book."""

    name = "lease"

    def offers(self, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        items: list[CompletionItem] = []
        for lease in _asked_machine(lambda machine: machine.leases()):
            items.append(CompletionItem(str(lease.id), help=lease.name or lease.ask))
            if lease.name is not None:
                items.append(CompletionItem(lease.name, help=f"{lease.id} {lease.ask}"))
        return [item for item in items if item.value.startswith(incomplete)]


class SoftGpuIdentity(_Offering):
    """A software GPU's UUID, the name of a set or ``all``, completed from what is on disk."""

    name = "uuid"

    def offers(self, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        gpus = _asked_machine(lambda machine: machine.softgpu_list())
        items = [CompletionItem(str(gpu.uuid), help=gpu.name) for gpu in gpus]
        sets = sorted({gpu.set_name for gpu in gpus if gpu.set_name is not None})
        items += [CompletionItem(name, help=_members(gpus, name)) for name in sets]
        items.append(CompletionItem("all", help="every software GPU"))
        return [item for item in items if item.value.startswith(incomplete)]


def _members(gpus: "Sequence[Gpu]", set_name: str) -> str:
    return ", ".join(gpu.name for gpu in gpus if gpu.set_name == set_name)


class ProfileCount(_Offering):
    """``[Nx]PROFILE`` of a software GPU, its profile completed."""

    name = "profile"

    def offers(self, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        from aliquot.node import softgpu_profiles

        digits = incomplete[: len(incomplete) - len(incomplete.lstrip("0123456789"))]
        count = f"{digits}x" if digits else ""
        names = [count + profile.profile for profile in softgpu_profiles()]
        return [CompletionItem(name) for name in names if name.lower().startswith(incomplete.lower())]


class ShellFile(_Offering):
    """A text that the shell completes as it completes files: ``-f FILE``, and a command after ``--``."""

    name = "file"

    def offers(self, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def _asked_machine(question: "Callable[[Machine], Sequence[_Answer]]") -> "Sequence[_Answer]":
    """The answer, or none: a shell that completes has nowhere to show an error."""
    from contextlib import closing

    from aliquot.node import open_machine

    try:
        with closing(open_machine()) as machine:
            return question(machine)
    except Exception:
        return ()

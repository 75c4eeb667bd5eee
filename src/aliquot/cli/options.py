"""Arguments and options that mean the same in every command that has them."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aliquot.cli.completions import LeaseIdentity as LeaseIdentity
from aliquot.cli.output.choices import FORMS, Choice
from aliquot.cli.output.durations import parse_duration
from aliquot.cli.program import usage_error
from aliquot.model import AliquotError, Ask, Isolation, PlacementPolicy, Policy, Reason, Unknown

if TYPE_CHECKING:
    from pathlib import Path

    from aliquot.cli.output.columns import Listing
    from aliquot.model import Lease
    from aliquot.node import Machine

    _Nanoseconds = click.ParamType[int]
    _Number = click.ParamType[int]
else:  # generic since click 8.5 only
    _Nanoseconds = _Number = click.ParamType

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Duration(_Nanoseconds):
    """``2h``, ``90m``, ``7d`` → nanoseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            span = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span == 0:
            self.fail(f"{value} is no time at all; write 90m, 2h, 1h30m or 7d", param, ctx)
        return span


class Moment(_Nanoseconds):
    """A span back from now (``7d``) or a time (``2026-11-30``, ``2026-11-30T12:00``; UTC) → nanoseconds."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if value[:4].isdigit() and value[4:5] == "-":
            return self._time(value, param, ctx)
        try:
            return time.time_ns() - parse_duration(value)
        except ValueError as error:
            self.fail(f"{error}, or a time such as 2026-11-30T12:00", param, ctx)

    def _time(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from datetime import UTC, datetime

        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-11-30 or 2026-11-30T12:00", param, ctx)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        if not 1970 <= moment.year <= 2200:  # what the book's 64 bits of nanoseconds can hold
            self.fail(f"{value!r} is no time from 1970 to 2200", param, ctx)
        return int(moment.timestamp()) * 1_000_000_000


class RowCount(_Number):
    """A whole number from 0 on; click's own range adds ``[x>=0]`` to the help."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            self.fail(f"{value!r} is no number of rows; write 0, 1, 2 …", param, ctx)
        return int(value)


def list_options(listing: "Listing[Any]") -> Callable[[_Function], _Function]:
    """``-o -l --where --sort -n -q`` of ``listing`` as one ``choice``."""

    def decorated(function: _Function) -> _Function:
        return _with_list_options(function, listing)

    return decorated


def _with_list_options(function: _Function, listing: "Listing[Any]") -> _Function:
    def gathered(**values: Any) -> Any:
        form, quiet = values.pop("form"), values.pop("quiet")
        choice = Choice(
            form="name" if quiet else form,
            labels=values.pop("labels"),
            where=values.pop("where"),
            sort=values.pop("sort"),
            limit=values.pop("limit"),
        )
        return function(choice=choice, **values)

    gathered.__doc__ = function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(
        (
            click.option(
                "-o",
                "--output",
                "form",
                type=click.Choice(FORMS),
                default="table",
                metavar="FORM",
                help=f"{'|'.join(FORMS)}.",
            ),
            click.option("--json", "form", flag_value="json", hidden=True),
            click.option(
                "-l", "labels", multiple=True, metavar="KEY=VALUE", help="Only what has it; again for more."
            ),
            click.option("--where", metavar="CONDITION", help=f"Such as '{listing.example}'."),
            click.option("--sort", metavar="COLUMN", help="Smallest first; -COLUMN for largest first."),
            click.option("-n", "limit", type=RowCount(), metavar="N", help="At most N rows."),
            click.option("-q", "--quiet", is_flag=True, help="Names only, as -o name."),
        )
    ):
        option(gathered)
    return gathered  # type: ignore[return-value]


def form_option(*forms: str, default: str = "text") -> Callable[[_Function], _Function]:
    """``-o`` of a command that shows one thing."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice((default, *forms)),
        default=default,
        metavar="FORM",
        help=f"{'|'.join((default, *forms))}.",
    )


def ask_options(function: _Function) -> _Function:
    """``--policy --isolation --unknown``: what belongs to an ask and not to its SPEC."""
    for option in (
        click.option(
            "--unknown",
            type=click.Choice([unknown.value for unknown in Unknown]),
            metavar="HOW",
            help="Driver functions newer than Aliquot: refuse, or pass (uncounted).",
        ),
        click.option(
            "--isolation",
            type=click.Choice([isolation.value for isolation in Isolation]),
            metavar="LEVEL",
            help="At least hard|firm|soft|advisory; without it any.",
        ),
        click.option(
            "--policy",
            type=click.Choice([policy.value for policy in Policy]),
            metavar="POLICY",
            help="Idle compute of others: fair (use it), cap, priority.",
        ),
    ):
        option(function)
    return function


placement_option = click.option(
    "--placement",
    type=click.Choice([policy.value for policy in PlacementPolicy]),
    default=PlacementPolicy.PACK.value,
    metavar="WHERE",
    help="pack (keep large holes; default) or spread.",
)


def asked(
    spec: str | None,
    *,
    policy: str | None = None,
    isolation: str | None = None,
    unknown: str | None = None,
    file: str | None = None,
) -> Ask:
    """The ask that ``SPEC`` or ``-f FILE`` states, with the options of ``ask_options`` over it."""
    from dataclasses import replace

    from aliquot.ask import parse

    if (spec is None) == (file is None):
        raise _one_of_both(given=spec is not None)
    ask = parse(spec) if spec is not None else read_ask(file or "-")
    if policy is not None:
        ask = replace(ask, policy=Policy(policy))
    if unknown is not None:
        ask = replace(ask, unknown=Unknown(unknown))
    return ask if isolation is None else replace(ask, isolation=Isolation(isolation))


def lease_called(machine: "Machine", what: str) -> "Lease | None":
    """Of an argument ``SPEC|ID``: the lease called so; ``None`` where none is, and it may be a size."""
    machine.reap()
    try:
        return machine.find_lease(what)
    except AliquotError as error:
        if error.reason is Reason.NOT_FOUND:
            return None
        raise


def size_called(what: str, *, policy: str | None, isolation: str | None, unknown: str | None) -> Ask:
    """Of an argument ``SPEC|ID`` that is no lease."""
    try:
        return asked(what, policy=policy, isolation=isolation, unknown=unknown)
    except AliquotError as error:
        raise AliquotError(
            error.reason,
            f"{what!r} is neither a lease here nor a size: {error.message}",
            facts=error.facts,
            next=[*error.next, ("aliquot leases", "lists the leases")],
        ) from error


def _one_of_both(*, given: bool) -> AliquotError:
    """Where the command got both a SPEC and a FILE, or neither."""
    context = click.get_current_context()
    path = context.command_path
    by_option = any("--gpu" in parameter.opts for parameter in context.command.params)
    size = "--gpu SPEC" if by_option else "SPEC"
    return usage_error(
        f"`{path}` takes {size} or -f FILE, not both" if given else f"`{path}` needs {size} or -f FILE",
        steps=[
            (f"{path} --gpu 1/4" if by_option else f"{path} 1/4", "a quarter of a GPU"),
            ("aliquot plan 1/4 -o yaml", "makes a FILE"),
        ],
    )


def read_ask(file: str) -> Ask:
    """The ask in ``file`` (``-`` is stdin); ``AliquotError`` (bad-file) where it is none."""
    import sys
    from pathlib import Path

    from aliquot.ask import from_document

    try:
        data = sys.stdin.buffer.read(_LARGEST_FILE + 1) if file == "-" else _head(Path(file))
        text = data.decode("utf-8")
    except OSError as error:
        raise AliquotError(Reason.BAD_FILE, f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise AliquotError(Reason.BAD_FILE, f"{file} is not text (UTF-8)") from error
    if len(data) > _LARGEST_FILE:
        raise AliquotError(Reason.BAD_FILE, f"{file} is larger than {_LARGEST_FILE >> 10} KiB; no Ask is")
    return from_document(text, source="stdin" if file == "-" else file)


_LARGEST_FILE = 1 << 20


def _head(path: "Path") -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST_FILE + 1)


def lease_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of ``--name``."""
    from aliquot.model import is_lease_name

    if value is not None and not is_lease_name(value):
        raise usage_error(f"--name {value!r}: a letter, then up to 62 of A-Z a-z 0-9 _ . -")
    return value

"""``aliquot softgpu fail|log|busy``: what a device does wrong, what it said, what its processes truly had."""

import re
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from aliquot.cli.completions import SoftGpuIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.options import form_option
from aliquot.cli.program import Command

if TYPE_CHECKING:
    from aliquot.softgpu.busy import Account, Busy

_CAPITAL = re.compile("_([a-z])")


@click.command(
    "fail",
    cls=Command,
    help="""Let a software GPU fail, while programs run on it.

FAILURE is one of, or several separated by commas:

\b
alloc=N         the N-th allocation of each process fails; N+: later ones too
xid=N           an XID, once: NVML tells it, contexts end as on a card; after
                one that needs a reset, `aliquot gpus` says unhealthy
ecc=corrected:N ecc=uncorrected:N   errors of memory, once
lost            the device is lost
hang            kernels do not end until this is cleared
slow=FACTOR     kernels take so many times as long
driver=BRANCH   a driver such as 535, without what came later
without=PART    NVML does not know: power, temperature, ecc, clocks, usage,
                processes, pcie, accounting, fields, topology

Without FAILURE: what the device is told now.""",
    examples=[
        ("aliquot softgpu fail GPU-5f3a12bc xid=79", "the card falls off the bus"),
        ("aliquot softgpu fail GPU-5f3a12bc slow=2,alloc=10+", ""),
        ("aliquot softgpu fail GPU-5f3a12bc", "lists"),
        ("aliquot softgpu fail GPU-5f3a12bc --clear xid", "takes back one, by its name"),
        ("aliquot softgpu fail GPU-5f3a12bc --clear", "all is well again"),
    ],
)
@click.argument("which", type=SoftGpuIdentity(), metavar="UUID")
@click.argument("failures", nargs=-1, metavar="[FAILURE...]")
@click.option("--clear", is_flag=True, help="Take back the named ones, or all.")
@form_option("json", "yaml")
def fail(which: str, failures: tuple[str, ...], clear: bool, form: str) -> None:
    from aliquot.cli.output.documents import as_json, as_yaml, document
    from aliquot.cli.output.streams import out, out_exactly, say

    with this_machine() as machine:
        device, told = machine.softgpu_fail(which, ",".join(failures) or None, clear=clear)
    if form == "text":
        for failure in told:
            out(str(failure))
        if not told:
            say(f"{device.uuid} is told no failure")
        return
    body = document("Failures", {"gpu": device.uuid, "failures": [str(failure) for failure in told]})
    out_exactly(as_json(body) if form == "json" else as_yaml(body))


@click.command(
    "log",
    cls=Command,
    help="""Show what the driver refused, and which kernels failed.

Calls and instructions that are not there are named once. With several devices the
beginning of the UUID stands before each line.""",
    examples=[("aliquot softgpu log", "of all"), ("aliquot softgpu log GPU-5f3a12bc", "")],
)
@click.argument("which", nargs=-1, type=SoftGpuIdentity(), metavar="[SET|UUID]...")
@form_option("json", "yaml")
def log(which: tuple[str, ...], form: str) -> None:
    from aliquot.cli.output.documents import as_json, as_yaml, document
    from aliquot.cli.output.streams import out, out_exactly, say
    from aliquot.cli.views.gpus import short_uuids

    with this_machine() as machine:
        logs = machine.softgpu_log(which)
    if form != "text":
        body = document("Log", {"gpus": [{"gpu": gpu.uuid, "lines": list(lines)} for gpu, lines in logs]})
        out_exactly(as_json(body) if form == "json" else as_yaml(body))
        return
    short = short_uuids([gpu.uuid for gpu, _ in logs])
    for gpu, lines in logs:
        for line in lines:
            out(f"{short[gpu.uuid]}  {line}" if len(logs) > 1 else line)
    if not any(lines for _, lines in logs):
        say("nothing was refused, and no kernel failed")


@click.command(
    "busy",
    cls=Command,
    help="""Show what each process truly had of a software GPU: engine time, kernels, bytes.

Nanoseconds are of the device's own clock. NVML tells percents of the last second; this is all since
the process came, and what processes had that ended.""",
    examples=[("aliquot softgpu busy GPU-5f3a12bc -o json", "")],
)
@click.argument("which", type=SoftGpuIdentity(), metavar="UUID")
@form_option("json", "yaml")
def busy(which: str, form: str) -> None:
    from aliquot.cli.output.documents import as_json, as_yaml, document
    from aliquot.cli.output.streams import out, out_exactly

    with this_machine() as machine:
        device, seen = machine.softgpu_busy(which)
    if form != "text":
        body = document("Busy", {"gpu": device.uuid, **_in_camel_case(seen)})
        out_exactly(as_json(body) if form == "json" else as_yaml(body))
        return
    out(f"{device.uuid}  {seen.time} time  now {seen.now_ns} ns  kernels {seen.compute_ns} ns")
    for one in seen.accounts:
        who = "—" if one.pid is None else str(one.pid)
        ended = "" if one.living else "  ended"
        out(f"{who:>8}  {one.compute_ns:>16} ns  {one.kernels:>8} kernels  {one.name}{ended}")


def _in_camel_case(record: "Busy | Account") -> dict[str, object]:
    """As all documents are; the fields' names end in their units already."""
    return {
        _CAPITAL.sub(lambda found: found[1].upper(), field.name): (
            [_in_camel_case(one) for one in value] if isinstance(value, tuple) else value
        )
        for field in fields(record)
        for value in [getattr(record, field.name)]
    }

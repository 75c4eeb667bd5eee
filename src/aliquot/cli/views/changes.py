"""What a change of a lease made of it, in one line for people."""

from typing import TYPE_CHECKING

from aliquot.cli.output.durations import format_time
from aliquot.cli.output.streams import printable, say
from aliquot.cli.views.leases import lease_rows, share_text

if TYPE_CHECKING:
    from aliquot.model import Lease
    from aliquot.node import Machine


def say_change(machine: "Machine", lease: "Lease", done: str) -> None:
    """``resized k3m9x · 12GiB · gpu0 12GiB 40% · fair``; whether it is paused stands there as well."""
    (row,) = lease_rows([lease], machine.look())
    parts = [f"{done} {lease.id}", lease.ask, ", ".join(share_text(share, row) for share in lease.shares)]
    parts.append(lease.policy.value)
    if lease.paused_at is not None:
        parts.append(f"paused, its launches wait until `aliquot resume {lease.id}`")
    if done == "extended" and lease.expires_at is not None:
        parts.append(f"until {format_time(lease.expires_at)}")
    say(printable(" · ".join(parts)))

"""``aliquot keeper ID``."""

import click

from aliquot.cli.completions import LeaseIdentity
from aliquot.cli.machines import this_machine
from aliquot.cli.program import command as declare


@declare(
    "keeper",
    examples=[
        ("aliquot keeper k3m9x &", "where `aliquot leases` says that its keeper is gone"),
        ("setsid -f aliquot keeper k3m9x", "one that outlives this shell"),
    ],
)
@click.argument("identity", type=LeaseIdentity(), metavar="ID")
def command(identity: str) -> int:
    """It names the share's processes to the driver's monitors, charges what the driver took by itself,
    watches for programs without a governor and for nonsense that shares write to each other, and ends with
    the lease. Every share starts with one; killed, the share is held at its guarantee until one is back."""
    import os
    import signal
    import threading

    from aliquot.cli.output.streams import say

    ended = threading.Event()
    os.chdir("/")  # it may outlive the folder that it was started in
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    with this_machine() as machine:
        lease = machine.find_lease(identity)
        other = machine.keep(lease, wait=ended.wait)
    if other is not None:
        who = f"process {other}" if other else "another process"
        say(f"lease {lease.id} has its keeper already: {who}")
    return 0

"""The end of a share: stop new work, read the ledger into usage, commit, remove the files."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import replace

from aliquot.enforcement import read_ledger, write_limits
from aliquot.lease import Book
from aliquot.metering import settle
from aliquot.model import AliquotError, Bytes, Gpu, GpuUuid, Lease, Reason, Usage
from aliquot.node.cdi import remove_specs
from aliquot.node.paths import Paths
from aliquot.node.share_folder import ledger_file, limits_file, remove_share_folder


def stop_new_work(paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu]) -> None:
    """Limits of zero: what runs keeps what it has and gets no more."""
    limits = limits_file(paths, lease.id)
    if lease.governed and limits.exists():
        nothing = tuple(replace(share, memory=Bytes(0)) for share in lease.shares)
        write_limits(limits, lease=replace(lease, shares=nothing), gpus=gpus)


def release_lease(
    paths: Paths, book: Book, lease: Lease, *, why: str, seen: Lease | None = None
) -> tuple[Usage, ...]:
    """Of a lease that nobody uses any more, as far as can be seen. Done again after a kill, it finishes
    the rest. A program that hid (it dropped the variables that it is found by) still has the limits mapped:
    it reads there that it gets nothing more.

    ``seen``: the lease that this was seen of; StaleDecisionError where it changed since.

    The files go last: a kill before that leaves a folder without a lease, which the next
    command removes; a kill after would have left a lease without its figures.
    """
    try:
        now = time.time_ns()
        ledger = read_ledger(ledger_file(paths, lease.id), devices=len(lease.shares))
        past = book.stretches(lease.id).get(lease.id, ())
        usages = settle(lease, ledger, at=now, past=past)
        book.end(lease.id, at=now, why=why, usages=usages, seen=seen)
    except AliquotError as error:
        if error.reason is not Reason.LEASE_ENDED:
            raise
        # Another command saw its end too and was first; its figures are as good as ours.
        usages = book.usages(lease=lease.id)
    with contextlib.suppress(OSError, AliquotError):  # the next command removes what stays now
        stop_new_work(paths, lease, {})
        remove_specs(paths, lease.id)
        remove_share_folder(paths, lease.id)
    return usages

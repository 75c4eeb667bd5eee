"""From an ask to a held lease: look, place, reserve, files, held."""

import os
import pwd
import time
from collections.abc import Callable
from dataclasses import dataclass

from aliquot.enforcement import UNKNOWN_PASSES, achievable_isolation
from aliquot.lease import Book, LeaseDraft
from aliquot.model import (
    AliquotError,
    Ask,
    DriverFiles,
    Gpu,
    GpuUuid,
    Holder,
    Isolation,
    Lease,
    Notice,
    Placed,
    PlacementPolicy,
    Reason,
    Refused,
    Severity,
    Snapshot,
    Unknown,
    Vendor,
    is_lease_name,
)
from aliquot.node.cdi import remove_specs
from aliquot.node.looking import boot_id, driver_for
from aliquot.node.paths import Paths
from aliquot.node.share_folder import make_share_folder, remove_share_folder
from aliquot.placement import place


@dataclass(frozen=True, slots=True)
class Terms:
    """All of a lease that does not come from placing it."""

    ask: Ask
    holder: Holder
    placement: PlacementPolicy = PlacementPolicy.PACK
    name: str | None = None
    command: str | None = None
    expires_at: int | None = None
    container: bool = False
    """Whether a container will hold it, which the tenant cannot leave by a library path."""
    apart: bool = False
    """Whether a process under a uid of its own will, in private mounts."""
    isolation_why: str | None = None


def achievable(ask: Ask, snapshot: Snapshot, *, container: bool, apart: bool = False) -> Isolation:
    """The strongest isolation that holds whichever alternative is placed.

    A real card in a book that is not root's may be leased in another user's book as well, which
    no isolation of ours can hold.
    """
    if os.geteuid() != 0 and any(gpu.vendor is not Vendor.SOFTWARE for gpu in snapshot.gpus):
        return Isolation.ADVISORY
    whole = all(alternative.amount.whole for alternative in ask.alternatives)
    passing = ask.unknown is Unknown.PASS
    return achievable_isolation(whole=whole, container=container, apart=apart, unknown_passes=passing)


def reserve(book: Book, snapshot: Snapshot, terms: Terms) -> Lease:
    """A lease in PREPARING. Raises AliquotError with the refusal, or NAME_TAKEN."""
    if terms.name is not None and not is_lease_name(terms.name):
        raise AliquotError(
            Reason.BAD_USAGE,
            f"`{terms.name}` is no name for a lease: a letter, then up to 62 letters, digits, `_`, `.`, `-`",
        )

    isolation = achievable(terms.ask, snapshot, container=terms.container, apart=terms.apart)

    def decide(live: tuple[Lease, ...]) -> Placed | Refused:
        held = [share for lease in live for share in lease.shares]
        return place(
            terms.ask,
            snapshot,
            held,
            policy=terms.placement,
            achievable=isolation,
        )

    now = time.time_ns()
    draft = LeaseDraft(
        ask=str(terms.ask),
        policy=terms.ask.policy,
        isolation=isolation,
        isolation_why=UNKNOWN_PASSES if terms.ask.unknown is Unknown.PASS else terms.isolation_why,
        unknown=terms.ask.unknown,
        holder=terms.holder,
        user=user_name(),
        command=terms.command,
        name=terms.name,
        created_at=now,
        expires_at=terms.expires_at,
        boot_id=boot_id(),
    )
    result = book.reserve(draft, decide)
    if isinstance(result, Refused):
        from aliquot.node.explaining import refusal

        raise refusal(terms.ask, result, snapshot, book.leases(live=True))
    return result


def other_books(lease: Lease, snapshot: Snapshot) -> Notice | None:
    """The warning that a lease of a real card in a user's own book needs."""
    real = [gpu for gpu in snapshot.gpus if gpu.vendor is not Vendor.SOFTWARE]
    if os.geteuid() == 0 or not any(share.gpu == gpu.uuid for share in lease.shares for gpu in real):
        return None
    text = f"lease {lease.id} is in your own book: another user may have leased the same part of the card"
    return Notice("own-book", Severity.WARNING, text, "lease as root, whose book is the machine's")


def user_name() -> str:
    """Who we act for: behind sudo the person, not root."""
    sudo = os.environ.get("SUDO_USER")
    if sudo and os.geteuid() == 0:
        return sudo
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def driver_of(paths: Paths, lease: Lease, gpus: dict[GpuUuid, Gpu]) -> DriverFiles | None:
    """The driver files of the lease's GPUs; None for cards that have no CUDA driver.

    Raises AliquotError(DRIVER_BROKEN) where the card or its driver is not there (any more).
    """
    vendors = {gpus[share.gpu].vendor for share in lease.shares if share.gpu in gpus}
    if len(vendors) != 1:  # placement gives one vendor; none is left where the card was taken out
        raise AliquotError(
            Reason.DRIVER_BROKEN,
            f"the GPU of lease {lease.id} is no longer here",
            next=[("aliquot gpus", "shows the GPUs that are"), (f"aliquot release {lease.id}", "ends it")],
        )
    vendor = vendors.pop()
    if vendor not in (Vendor.NVIDIA, Vendor.SOFTWARE):
        return None
    files = driver_for(paths, vendor)
    if files is None:
        raise AliquotError(
            Reason.DRIVER_BROKEN,
            "the driver's libcuda.so.1 was not found on this machine",
            next=[("aliquot doctor", "says where it was looked for")],
        )
    return files


def prepare(
    paths: Paths, book: Book, lease: Lease, gpus: dict[GpuUuid, Gpu], *, then: Callable[[Lease], Lease]
) -> Lease:
    """Make the files of a PREPARING lease, then ``then`` (which commits HELD).

    Whatever fails, or Ctrl-C, ends the lease and removes its files before it is raised on.
    """
    try:
        make_share_folder(paths, lease, gpus=gpus, driver=driver_of(paths, lease, gpus))
        return then(lease)
    except BaseException:
        undo(paths, book, lease)
        raise


def undo(paths: Paths, book: Book, lease: Lease) -> None:
    """End a lease whose program never started."""
    book.end(lease.id, at=time.time_ns(), why="failed", usages=())
    remove_specs(paths, lease.id)
    remove_share_folder(paths, lease.id)

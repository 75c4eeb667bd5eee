"""One folder a share: what the governor reads, what it writes, and what it opens.

The folder can be entered by anybody (0711) but listed by nobody else. The ledger's true
place is a folder of the owner's alone, and containers get it by a mount: a tenant that
changed its uid on the host finds the governor, cannot open the ledger, and so fails closed;
it never falls through to the system's libcuda.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from aliquot.enforcement import (
    create_ledger,
    create_turns,
    governor_folder,
    write_limits,
)
from aliquot.injection import ShareFolder
from aliquot.model import AliquotError, DriverFiles, Gpu, GpuUuid, Lease, LeaseId, Reason
from aliquot.node.libraries import ensure_copied
from aliquot.node.paths import Paths, make_folder, unwritable

_ENTERED_BY_ANYBODY = 0o711


def folder_of(paths: Paths, lease: LeaseId) -> ShareFolder:
    return ShareFolder(root=str(paths.share(lease)))


def limits_file(paths: Paths, lease: LeaseId) -> Path:
    return paths.share(lease) / "limits"


def ledger_file(paths: Paths, lease: LeaseId) -> Path:
    return paths.share(lease) / "private" / "ledger"


def keeper_file(paths: Paths, lease: LeaseId) -> Path:
    """Locked by who keeps the share, whose pid stands in it."""
    return paths.share(lease) / "private" / "keeper"


def mark_of_trial(paths: Paths, lease: LeaseId) -> Path:
    """Locked by who verifies the share; in it the policy that the lease had before."""
    return paths.share(lease) / "private" / "tried"


def page_file(paths: Paths, lease: LeaseId, index: int) -> Path:
    """The page of turns of the share's device ``index``."""
    return paths.share(lease) / "private" / "turns" / str(index)


def make_share_folder(
    paths: Paths, lease: Lease, *, gpus: Mapping[GpuUuid, Gpu], driver: DriverFiles | None
) -> ShareFolder:
    """Everything a tenant of ``lease`` needs, anew; what a killed try left is replaced.

    ``driver`` is None for cards without a CUDA driver, which are leased whole.
    Raises AliquotError: FILES_UNWRITABLE (nothing stays), GOVERNOR_MISSING.
    """
    governor = ensure_copied(governor_folder(), paths.libraries) if lease.governed else None
    make_folder(paths.runtime, _ENTERED_BY_ANYBODY)
    make_folder(paths.shares, _ENTERED_BY_ANYBODY)
    make_folder(paths.turns, 0o700)
    root = paths.share(lease.id)
    try:
        remove_share_folder(paths, lease.id)
        _make_folders(root)
        if driver is not None:
            _link_driver(root / "driver", lease, driver)
        if governor is not None:
            _place_governor(paths, lease, governor, gpus)
    except OSError as error:
        with contextlib.suppress(OSError):
            remove_share_folder(paths, lease.id)
        raise unwritable(root, error) from error
    return folder_of(paths, lease.id)


def _make_folders(root: Path) -> None:
    for path, mode in (
        (root, _ENTERED_BY_ANYBODY),
        (root / "private", 0o700),
        (root / "lib", 0o755),
        (root / "driver", 0o755),
    ):
        path.mkdir()
        path.chmod(mode)


def _link_driver(where: Path, lease: Lease, driver: DriverFiles) -> None:
    for soname, library in driver.libraries:
        (where / soname).symlink_to(library)
    if driver.folder is None:
        return
    visible = where / "softgpu"
    visible.mkdir()
    visible.chmod(0o755)
    for share in lease.shares:
        (visible / share.gpu).symlink_to(Path(driver.folder) / share.gpu)


def _place_governor(paths: Paths, lease: Lease, governor: Path, gpus: Mapping[GpuUuid, Gpu]) -> None:
    root = paths.share(lease.id)
    write_limits(limits_file(paths, lease.id), lease=lease, gpus=gpus, keeper_from=time.monotonic_ns())
    create_ledger(ledger_file(paths, lease.id), devices=len(lease.shares))
    (root / "ledger").symlink_to("private/ledger")
    _link_turns(paths, lease, root / "private" / "turns")
    (root / "turns").symlink_to("private/turns")
    for library in governor.iterdir():
        (root / "lib" / library.name).symlink_to(library)


def _link_turns(paths: Paths, lease: Lease, where: Path) -> None:
    """The page of each device under its number in the share: a hard link, which also holds where only the
    share's folder is mounted."""
    where.mkdir()
    for index, share in enumerate(lease.shares):
        create_turns(paths.turns / share.gpu)
        (where / str(index)).hardlink_to(paths.turns / share.gpu)


def remove_share_folder(paths: Paths, lease: LeaseId) -> None:
    """Remove it if it is there. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(paths.share(lease))


def missing_files(paths: Paths, lease: Lease) -> tuple[Path, ...]:
    """Of the files that a governed tenant cannot do without, those that are not there."""
    root = paths.share(lease.id)
    needed = (root / "limits", root / "private" / "ledger", root / "lib" / "libcuda.so.1")
    return tuple(path for path in needed if not path.exists()) if lease.governed else ()


def refuse_without_governor(paths: Paths, lease: Lease) -> None:
    """The last look before a program starts: without them it would find the system's libcuda.

    Raises AliquotError(GOVERNOR_MISSING).
    """
    missing = missing_files(paths, lease)
    if missing:
        raise AliquotError(
            Reason.GOVERNOR_MISSING,
            f"{missing[0]} of lease {lease.id} is not there, so nothing would hold its programs",
            facts=["something removed it: a cleaner of /tmp, or a logout that took the runtime folder"],
            next=[
                (f"aliquot release --force {lease.id}", "ends the lease and its programs"),
                (f"aliquot lease --gpu {lease.ask}", "takes a new one"),
            ],
        )


def folders_present(paths: Paths) -> tuple[LeaseId, ...]:
    """The ids of all share folders there are, of live leases or left by a kill."""
    try:
        return tuple(LeaseId(name) for name in sorted(os.listdir(paths.shares)))  # noqa: PTH208
    except FileNotFoundError:
        return ()

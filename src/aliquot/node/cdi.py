"""Which CDI specifications were written for a lease, so that its end removes them.

The path is noted in the share's folder before the file is made: an engine may be told to
read any folder, so it could not be found again by looking in the usual ones.
"""

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from aliquot import injection
from aliquot.model import DriverFiles, Edits, Gpu, GpuUuid, Lease, LeaseId
from aliquot.node.paths import Paths, unwritable
from aliquot.node.share_folder import folder_of

USUAL_FOLDERS = ("/etc/cdi", "/var/run/cdi")
"""In the engines' own order: the last has precedence."""


def edits_inside(
    paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu], driver: DriverFiles | None
) -> Edits:
    return injection.container_edits(
        lease, folder=folder_of(paths, lease.id), driver=driver, gpus=tuple(gpus.values())
    )


def write_spec(paths: Paths, lease: LeaseId, edits: Edits, cdi_folder: str) -> None:
    """Raises AliquotError: FILES_UNWRITABLE, NO_CDI."""
    note = _note(paths, lease)
    try:
        with note.open("a") as file:
            file.write(f"{cdi_folder}\n")
    except OSError as error:
        raise unwritable(note, error) from error
    injection.write_cdi_spec(edits, lease, folder=folder_of(paths, lease), cdi_folder=cdi_folder)


def remove_specs(paths: Paths, lease: LeaseId) -> None:
    """Remove all that were written for ``lease``. Raises AliquotError (NO_CDI) where one stays."""
    for cdi_folder in _noted(paths, lease):
        injection.remove_cdi_spec(lease, folder=folder_of(paths, lease), cdi_folder=cdi_folder)


def remove_stale_specs(paths: Paths, live: Iterable[LeaseId]) -> None:
    """Those of this book in the usual folders whose lease is gone and whose note went with it."""
    keep = set(live)
    for cdi_folder in USUAL_FOLDERS:
        for lease in stale_specs(paths, cdi_folder, keep):
            with contextlib.suppress(OSError):
                injection.remove_cdi_spec(lease, folder=folder_of(paths, lease), cdi_folder=cdi_folder)


def stale_specs(paths: Paths, cdi_folder: str, live: Iterable[LeaseId]) -> tuple[LeaseId, ...]:
    any_share = folder_of(paths, LeaseId("any"))
    keep = set(live)
    return tuple(
        lease for lease in injection.listed_cdi_specs(cdi_folder, folder=any_share) if lease not in keep
    )


def _note(paths: Paths, lease: LeaseId) -> Path:
    return paths.share(lease) / "private" / "cdi"


def _noted(paths: Paths, lease: LeaseId) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(_note(paths, lease).read_text().split("\n")[:-1]))
    except OSError:
        return ()

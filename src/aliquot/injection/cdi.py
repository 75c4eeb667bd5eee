"""CDI: one specification file a lease, that Podman and newer Docker engines read by name.

Source: the CNCF's Container Device Interface specification, 1.1.0. The version written is the
lowest that has what is used: Podman 4.3 reads 0.3.0 to 0.5.0 and calls a device of a newer
specification "unresolvable".
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aliquot.injection.share_folder import ShareFolder
from aliquot.model import AliquotError, DeviceNode, Edits, Hook, LeaseId, Mount, Reason, is_lease_id

KIND = "aliquot.dev/share"
_PREFIX = "aliquot.dev-share_"
_MOUNT_OPTIONS = ("nosuid", "nodev", "bind")


def cdi_device(lease_id: LeaseId) -> str:
    """The device's full name, as ``--device`` takes it."""
    return f"{KIND}={lease_id}"


def cdi_spec(edits: Edits, lease_id: LeaseId) -> dict[str, Any]:
    """The specification of one lease as JSON would hold it. Pure."""
    container_edits: dict[str, Any] = {
        "env": [f"{name}={value}" for name, value in edits.env],
        "deviceNodes": [_device_node(node) for node in edits.device_nodes],
        "mounts": [_mount(mount) for mount in edits.mounts],
        "hooks": [_hook(hook) for hook in edits.hooks],
    }
    return {
        "cdiVersion": _lowest_version(edits),
        "kind": KIND,
        "devices": [
            {
                "name": str(lease_id),
                "containerEdits": {key: value for key, value in container_edits.items() if value},
            }
        ],
    }


def _lowest_version(edits: Edits) -> str:
    """0.5.0 brought ``hostPath`` of a device node; nothing newer is used.

    Lease ids begin with a letter, so the digit rule of 0.5.0 never applies.
    """
    moved = any(node.path != node.host_path for node in edits.device_nodes)
    return "0.5.0" if moved else "0.3.0"


def _device_node(node: DeviceNode) -> dict[str, Any]:
    return {"path": node.path} | ({"hostPath": node.host_path} if node.path != node.host_path else {})


def _mount(mount: Mount) -> dict[str, Any]:
    # Without `type`, a field of 0.4.0: "bind" among the options says the same to every runtime.
    options = ["ro" if mount.read_only else "rw", *_MOUNT_OPTIONS]
    return {"hostPath": mount.source, "containerPath": mount.target, "options": options}


def _hook(hook: Hook) -> dict[str, Any]:
    described: dict[str, Any] = {"hookName": hook.name, "path": hook.path}
    return (
        described
        | ({"args": list(hook.args)} if hook.args else {})
        | ({"env": list(hook.env)} if hook.env else {})
    )


def spec_path(cdi_folder: str, folder: ShareFolder, lease_id: LeaseId) -> Path:
    """Where the lease's specification lies in ``cdi_folder``. Pure.

    The name carries a mark of the runtime folder, since several books (root's, a test's) may
    write into one CDI folder and must never take each other's files for stale.
    """
    return Path(cdi_folder) / f"{_PREFIX}{lease_id}_{_mark(folder)}.json"


def _mark(folder: ShareFolder) -> str:
    return hashlib.sha256(os.fsencode(Path(folder.root).parent)).hexdigest()[:8]


def writable_cdi_folder(cdi_folders: Sequence[str]) -> str | None:
    """The folder, of those that an engine reads, to write into; ``None`` where none is writable.

    The last one first: engines give it precedence, and it is the one under /run, which a reboot
    empties together with the share's files. A folder that is missing counts where it can be made.
    """
    for candidate in reversed(cdi_folders):
        place = Path(candidate)
        while not os.path.exists(place) and place != place.parent:  # noqa: PTH110 - never raises
            place = place.parent
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return candidate
    return None


def write_cdi_spec(edits: Edits, lease_id: LeaseId, *, folder: ShareFolder, cdi_folder: str) -> Path:
    """Write the lease's specification so that no reader ever sees half of it, and return its path.

    Temporary file, fsync, rename, fsync of the folder. The temporary name does not end in .json,
    or an engine that watches the folder would read it. Raises ``AliquotError`` (``no-cdi``).
    """
    path = spec_path(cdi_folder, folder, lease_id)
    text = json.dumps(cdi_spec(edits, lease_id), indent=1) + "\n"
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            Path(temporary).rename(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise AliquotError(
            Reason.NO_CDI,
            f"cannot write {path}: {error.strerror}",
            next=[(f"mkdir -p {path.parent}", "makes the folder; it must be writable")],
        ) from error
    return path


def remove_cdi_spec(lease_id: LeaseId, *, folder: ShareFolder, cdi_folder: str) -> bool:
    """Remove the lease's specification; ``False`` where there was none.

    Raises ``AliquotError`` (``no-cdi``) where it is there and stays.
    """
    path = spec_path(cdi_folder, folder, lease_id)
    try:
        path.unlink()
        _sync_folder(path.parent)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise AliquotError(Reason.NO_CDI, f"cannot remove {path}: {error.strerror}") from error
    return True


def listed_cdi_specs(cdi_folder: str, *, folder: ShareFolder) -> tuple[LeaseId, ...]:
    """The leases whose specification lies in ``cdi_folder``, of the book that ``folder`` belongs to.

    ``folder`` may be any share's: only its parent counts. Temporary files of a killed writer
    are removed on the way.
    """
    return tuple(_listed(Path(cdi_folder), _mark(folder)))


def _listed(place: Path, mark: str) -> Iterator[LeaseId]:
    ours = re.compile(rf"(\.?){re.escape(_PREFIX)}(\w+)_{mark}(\.json|\.\w+\.tmp)")
    try:
        paths = sorted(place.iterdir())
    except OSError:
        return
    for path in paths:
        match = ours.fullmatch(path.name)
        if match is None or not is_lease_id(match[2]):
            continue
        if match[1] and match[3].endswith(".tmp"):
            path.unlink(missing_ok=True)
        elif not match[1] and match[3] == ".json":
            yield LeaseId(match[2])


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

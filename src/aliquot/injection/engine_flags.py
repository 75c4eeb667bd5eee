"""The edits as options of an engine's ``run``: for engines without CDI, and for a service's file."""

import csv
import io
from collections.abc import Iterator

from aliquot.injection.cdi import cdi_device
from aliquot.injection.engine import Engine
from aliquot.model import AliquotError, Edits, LeaseId, Mount, Reason

LABEL = "aliquot.lease"
"""By this label, and nothing else, a lease's container is found again."""


def flags(edits: Edits, *, lease_id: LeaseId, engine: Engine | None = None) -> tuple[str, ...]:
    """Everything as plain options; the same for Docker and Podman, of any release. Pure.

    ``--mount``, never ``-v``: Docker makes a folder where the source of a ``-v`` is missing, and
    a container would start without its limits after a reboot. With ``--mount`` the start fails.
    """
    words: list[str] = []
    for name, value in edits.env:
        words += ["--env", f"{name}={value}"]
    for node in edits.device_nodes:
        same = node.path == node.host_path
        words += ["--device", node.host_path if same else f"{node.host_path}:{node.path}"]
    for mount in edits.mounts:
        words += ["--mount", _mount(mount)]
    if edits.hooks:
        raise AliquotError(Reason.NO_CDI, "the share needs an OCI hook, which only CDI can carry")
    return (*words, *_common(lease_id, engine))


def cdi_flags(lease_id: LeaseId, *, engine: Engine | None = None) -> tuple[str, ...]:
    """The same by the name of the lease's CDI specification, which must be written before. Pure."""
    return ("--device", cdi_device(lease_id), *_common(lease_id, engine))


def _common(lease_id: LeaseId, engine: Engine | None) -> Iterator[str]:
    if engine is not None and engine.selinux:
        # SELinux keeps containers from files and device nodes that are not labelled for them.
        # Relabelling (`z`) was rejected: it would change the driver's own files. This is what
        # NVIDIA documents for its CDI too.
        yield from ("--security-opt", "label=disable")
    yield from ("--label", f"{LABEL}={lease_id}")


def _mount(mount: Mount) -> str:
    """One value of ``--mount``: the engines read it as a line of CSV."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields + (["readonly"] if mount.read_only else []))
    return line.getvalue()

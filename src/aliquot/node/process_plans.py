"""How a process is started in a share: in mounts of its own where it can be, else by library path."""

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass

from aliquot.enforcement import why_advisory
from aliquot.injection import GOVERNED, PAST_THE_GOVERNOR, child_environment, private_edits, process_edits
from aliquot.inventory import every_library
from aliquot.lease import describe
from aliquot.model import AliquotError, DriverFiles, Edits, Gpu, GpuUuid, Lease, Reason, Snapshot
from aliquot.node.looking import by_uuid
from aliquot.node.orders import Order, Plan, Started
from aliquot.node.paths import Paths
from aliquot.node.private_mounts import PrivateMounts, enter, fixed_path
from aliquot.node.share_folder import folder_of, refuse_without_governor
from aliquot.node.supervising import NotReadyError, fork_waiting
from aliquot.node.taking import driver_of


@dataclass(frozen=True, slots=True)
class _Tenant:
    """Whom a process runs as."""

    uid: int
    gid: int
    name: str
    home: str
    shell: str

    def become(self) -> None:
        """Groups first: without root they could not be given up. Raises OSError."""
        os.initgroups(self.name, self.gid)
        os.setgid(self.gid)
        os.setuid(self.uid)

    def environment(self) -> dict[str, str]:
        return {"USER": self.name, "LOGNAME": self.name, "HOME": self.home, "SHELL": self.shell}


def process_plan(paths: Paths, snapshot: Snapshot, order: Order) -> Plan:
    """Raises AliquotError where ``order`` names a user who cannot be given a share of his own."""
    tenant = _tenant_of(order)
    gpus = by_uuid(snapshot)

    def start(lease: Lease) -> Started:
        driver = driver_of(paths, lease, gpus)
        if not lease.governed or driver is None:
            edits = process_edits(lease, folder=folder_of(paths, lease.id), driver=driver)
            return Started(fork_waiting(order.command, child_environment(edits, os.environ)))
        refuse_without_governor(paths, lease)
        return _start_governed(paths, lease, order, tenant, gpus, driver)

    return Plan(holder=describe, start=start, apart=tenant is not None)


def _start_governed(
    paths: Paths,
    lease: Lease,
    order: Order,
    tenant: _Tenant | None,
    gpus: Mapping[GpuUuid, Gpu],
    driver: DriverFiles,
) -> Started:
    uid = os.geteuid()
    unmounted = "--inject path"
    if order.inject != "path":
        try:
            edits, private = _private(paths, lease, gpus, driver)
            environ = child_environment(edits, os.environ) | (tenant.environment() if tenant else {})

            def ready() -> None:
                enter(private)
                if tenant is not None:
                    tenant.become()

            child = fork_waiting(order.command, environ, ready=ready)
            why = why_advisory(tenant=tenant.uid if tenant else uid, owner=uid, unmounted=None)
            return Started(child, why)
        except NotReadyError as error:
            unmounted = str(error)
        except AliquotError as error:
            unmounted = error.message
    if tenant is not None:
        raise _not_apart(tenant.name, unmounted)
    edits = process_edits(lease, folder=folder_of(paths, lease.id), driver=driver)
    child = fork_waiting(order.command, child_environment(edits, os.environ))
    return Started(child, why_advisory(tenant=uid, owner=uid, unmounted=unmounted))


def _private(
    paths: Paths, lease: Lease, gpus: Mapping[GpuUuid, Gpu], driver: DriverFiles
) -> tuple[Edits, PrivateMounts]:
    where = fixed_path(os.geteuid())
    own = dict(driver.libraries)
    covered = {
        soname: tuple(
            dict.fromkeys([*map(str, every_library(soname)), *([own[soname]] if soname in own else [])])
        )
        for soname in (*GOVERNED, *PAST_THE_GOVERNOR)
    }
    edits = private_edits(
        lease,
        folder=folder_of(paths, lease.id),
        driver=driver,
        gpus=tuple(gpus.values()),
        where=where,
        covered=covered,
    )
    return edits, PrivateMounts(where, edits.mounts)


def _tenant_of(order: Order) -> _Tenant | None:
    if order.user is None:
        return None
    if os.geteuid() != 0:
        raise AliquotError(
            Reason.BAD_USAGE, "--user needs root: only root may run a program as somebody else"
        )
    try:
        entry = pwd.getpwuid(int(order.user)) if order.user.isdigit() else pwd.getpwnam(order.user)
    except (KeyError, OverflowError):
        raise AliquotError(Reason.NOT_FOUND, f"there is no user {order.user!r} on this machine") from None
    if entry.pw_uid == 0:
        raise AliquotError(
            Reason.BAD_USAGE, "--user is for running a program as somebody else than root; leave it out"
        )
    if order.inject == "path":
        raise _not_apart(entry.pw_name, "--inject path")
    return _Tenant(entry.pw_uid, entry.pw_gid, entry.pw_name, entry.pw_dir, entry.pw_shell)


def _not_apart(name: str, unmounted: str) -> AliquotError:
    return AliquotError(
        Reason.NOT_ENFORCEABLE,
        f"a share of {name} needs a mount namespace of its own, and there is none: {unmounted}",
        facts=["its files are root's, so that only mounts can lead another user to them"],
        next=[
            ("aliquot doctor", "says what this machine allows"),
            ("su NAME -c 'aliquot run …'", "uses NAME's own book"),
        ],
    )

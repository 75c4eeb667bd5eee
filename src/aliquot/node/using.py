"""Who uses a lease right now: looked at, never guessed."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aliquot import injection
from aliquot.enforcement import live_slots, read_ledger
from aliquot.lease import ContainerState, Evidence, describe, is_alive, processes_carrying
from aliquot.model import ContainerHolder, Lease, LeaseId, ProcessHolder
from aliquot.node.looking import boot_id, pid_namespace
from aliquot.node.paths import Paths
from aliquot.node.share_folder import ledger_file


@dataclass(frozen=True, slots=True)
class Users:
    pids: tuple[int, ...]
    """In our pid namespace."""
    elsewhere: int
    """Live slots of processes in other pid namespaces: containers'."""
    containers: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.pids or self.elsewhere or self.containers)

    def __str__(self) -> str:
        counted = (
            (len(self.pids), "process", "processes"),
            (len(self.containers), "container", "containers"),
            # Those of a container are counted as that container.
            (0 if self.containers else self.elsewhere, "process in a container", "processes in containers"),
        )
        return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)

    def lines(self) -> tuple[str, ...]:
        return (
            *(f"process {pid}  {_command(pid)}" for pid in self.pids),
            *(f"container {name[:12]}" for name in self.containers),
        )


def users_of(paths: Paths, lease: Lease) -> Users:
    pids = set(processes_carrying([lease.id]).get(lease.id, ()))
    if isinstance(lease.holder, ProcessHolder) and is_alive(lease.holder):
        pids.add(lease.holder.pid)
    elsewhere = 0
    ledger = read_ledger(ledger_file(paths, lease.id), devices=len(lease.shares))
    if ledger is None:  # overwritten, say: who they are is unknown, that they live is not
        elsewhere = live_slots(ledger_file(paths, lease.id)) or 0
    for slot in ledger.slots if ledger else ():
        if slot.alive and slot.pid_namespace == pid_namespace():
            pids.add(slot.pid)
        elif slot.alive:
            elsewhere += 1
    pids.discard(os.getpid())
    containers = container_ids(lease)
    return Users(tuple(sorted(pids)), elsewhere, containers)


def container_ids(lease: Lease) -> tuple[str, ...]:
    """Of a container's lease, the containers that its engine knows; none where it does not answer."""
    if not isinstance(lease.holder, ContainerHolder):
        return ()
    states = injection.containers_of(
        injection.Client.of(lease.holder.engine, lease.holder.endpoint), [lease.id]
    )
    found = (states or {}).get(lease.id)
    return found.ids if found else ()


def gather(paths: Paths, leases: Iterable[Lease]) -> Evidence:
    """One look at everything that ``lease.due`` asks about ``leases``."""
    looked_at = tuple(leases)
    named: set[ProcessHolder] = set()
    for lease in looked_at:
        if lease.worker is not None:
            named.add(lease.worker)
        if isinstance(lease.holder, ProcessHolder):
            named.add(lease.holder)
        elif isinstance(lease.holder, ContainerHolder) and lease.holder.client is not None:
            named.add(lease.holder.client)
    own = describe(os.getpid())
    return Evidence(
        boot_id=boot_id(),
        # A release that this very process began and left (an expired lease, still in use) is
        # nobody's work any more: it would else wait for our end.
        alive={holder: holder != own and is_alive(holder) for holder in named},
        carrying=processes_carrying([lease.id for lease in looked_at]),
        slots={lease.id: _live_slots(paths, lease) for lease in looked_at},
        containers=_container_states(looked_at),
    )


def _live_slots(paths: Paths, lease: Lease) -> int | None:
    """By their locks alone: what a tenant writes into the file keeps no lease and ends none."""
    path = ledger_file(paths, lease.id)
    live = live_slots(path)
    return 0 if live is None and not path.exists() else live


def _container_states(leases: Iterable[Lease]) -> dict[LeaseId, ContainerState | None]:
    """One question to each engine, for all the leases it has."""
    by_client: dict[injection.Client, list[LeaseId]] = {}
    for lease in leases:
        if isinstance(lease.holder, ContainerHolder):
            client = injection.Client.of(lease.holder.engine, lease.holder.endpoint)
            by_client.setdefault(client, []).append(lease.id)
    states: dict[LeaseId, ContainerState | None] = {}
    for client, ids in by_client.items():
        answer = injection.containers_of(client, ids)
        for lease_id in ids:
            if answer is None:
                states[lease_id] = None
            elif lease_id not in answer:
                states[lease_id] = ContainerState.ABSENT
            else:
                running = answer[lease_id].running
                states[lease_id] = ContainerState.RUNNING if running else ContainerState.STOPPED
    return states


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)[:100]

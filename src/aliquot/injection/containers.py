"""Asking an engine about images, and about the containers of leases."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from aliquot.injection.asking import PATIENCE, ask
from aliquot.injection.engine import Client, EngineKind
from aliquot.injection.engine_flags import LABEL
from aliquot.model import AliquotError, LeaseId


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The containers of one lease: there is at least one."""

    ids: tuple[str, ...]
    running: bool
    """Whether one of them runs (paused and restarting ones do)."""


_RUNNING = ("running", "paused", "restarting", "stopping")


def containers_of(
    client: Client,
    lease_ids: Collection[LeaseId],
    *,
    environ: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> Mapping[LeaseId, ContainerState] | None:
    """The containers, running or not, of each of ``lease_ids``; a lease without one is left out.

    ``None`` where the engine does not answer: nothing is known then, least of all that a
    container is gone.
    """
    template = "{{json .}}" if client.kind is EngineKind.DOCKER else "json"
    question = ["ps", "--all", "--no-trunc", "--filter", f"label={LABEL}", "--format", template]
    try:
        status, said, _ = ask([*client.command, *question], environ=environ, timeout=timeout)
        rows = _rows(client.kind, said) if status == 0 else None
    except (AliquotError, ValueError):
        return None
    if rows is None:
        return None
    states: dict[LeaseId, ContainerState] = {}
    for lease, container, state in rows:
        if lease in lease_ids:
            before = states.get(LeaseId(lease), ContainerState((), False))
            states[LeaseId(lease)] = ContainerState(
                (*before.ids, container), before.running or state.lower() in _RUNNING
            )
    return states


def _rows(kind: EngineKind, said: str) -> list[tuple[str, str, str]]:
    """(value of our label, container id, state) a container. Raises ValueError."""
    if kind is EngineKind.DOCKER:
        entries: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines() if line.strip()]
        return [(_label(entry["Labels"]), entry["ID"], entry["State"]) for entry in entries]
    entries = json.loads(said) or []
    return [((entry["Labels"] or {}).get(LABEL, ""), entry["Id"], entry["State"]) for entry in entries]


def _label(labels: str) -> str:
    """Ours out of Docker's ``a=b,c=d``; a value with a comma splits, but ours has none."""
    found = [pair.partition("=")[2] for pair in labels.split(",") if pair.partition("=")[0] == LABEL]
    return found[-1] if found else ""


def image_environment(
    client: Client,
    image: str,
    *,
    environ: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> tuple[str, ...] | None:
    """The ``NAME=value`` pairs that an image sets; ``None`` where it is not here yet, or not known."""
    question = [*client.command, "image", "inspect", "--format", "{{json .Config.Env}}", image]
    try:
        status, said, _ = ask(question, environ=environ, timeout=timeout)
        return tuple(json.loads(said) or ()) if status == 0 else None
    except (AliquotError, ValueError):
        return None

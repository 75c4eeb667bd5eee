"""Whether one GPU satisfies one alternative, and if not, what is in the way.

Asked in an order that decides what people read: first what no waiting changes (model,
vendor, size), then what a person can mend (isolation, cordon, health, MIG mode), last what
leases that end will change. So ``short`` is never said of a card that is broken.
"""

from dataclasses import dataclass

from aliquot.model import (
    WHOLE,
    Alternative,
    Bytes,
    Considered,
    Fit,
    Gpu,
    HealthState,
    Mig,
    ShareRequest,
    Thousandths,
    format_bytes,
)
from aliquot.placement.models import is_that_card, matches, short_name
from aliquot.placement.rooms import CUDA_VENDORS, Room

_EVER = (Fit.CORDONED, Fit.UNHEALTHY, Fit.MIG)


@dataclass(frozen=True, slots=True)
class Obstacle:
    fit: Fit
    detail: str | None = None


def consider(room: Room, alternative: Alternative, position: int, *, unheld: str | None) -> Considered:
    """One GPU as one alternative, the ``position``-th of its ask, sees it.

    ``unheld`` says why the isolation asked for cannot be had here; None where it can.
    """
    gpu = room.gpu
    wanted = request(gpu, alternative) if other_card(gpu, alternative) is None else None
    obstacle = _obstacle(room, alternative, wanted, unheld)
    free = room.free_memory
    memory = wanted.memory if wanted else None
    return Considered(
        gpu=gpu.uuid,
        index=gpu.index,
        name=gpu.name,
        alternative=position,
        fit=obstacle.fit,
        wanted=wanted,
        capacity=room.capacity,
        free_memory=free,
        free_compute=room.free_compute,
        outside_memory=room.outside,
        short_memory=None if memory is None or free is None else Bytes(max(0, memory - free)),
        short_compute=Thousandths(max(0, wanted.compute - room.free_compute)) if wanted else None,
        detail=obstacle.detail,
    )


def other_card(gpu: Gpu, alternative: Alternative) -> Obstacle | None:
    """What rules out the kind of card, whatever is on it."""
    model = alternative.model
    meant = (
        model is None
        or model == gpu.set_name  # of software GPUs; small letters, so that `T4` never means a set `t4`
        or is_that_card(model, gpu.uuid)
        or matches(model, gpu.name, exact=alternative.exact)
    )
    if not meant:
        return Obstacle(Fit.OTHER_MODEL)
    if gpu.vendor not in CUDA_VENDORS and model is None:
        return Obstacle(Fit.WHOLE_ONLY, f"has no CUDA and is leased only by name: {short_name(gpu.name)}")
    if gpu.shareable or alternative.amount.whole:
        return None
    if gpu.vendor in CUDA_VENDORS and gpu.health.state in (HealthState.LOST, HealthState.UNHEALTHY):
        return Obstacle(Fit.UNHEALTHY, _ailment(gpu))  # a lost card does not tell its memory any more
    if gpu.vendor in CUDA_VENDORS:
        return Obstacle(Fit.WHOLE_ONLY, "does not tell its memory and is leased only whole")
    return Obstacle(Fit.WHOLE_ONLY, f"is leased only whole: {short_name(gpu.name)}")


def request(gpu: Gpu, alternative: Alternative) -> ShareRequest:
    """What the alternative means on that card, which ``other_card`` does not rule out."""
    if alternative.amount.whole:
        return ShareRequest(None if gpu.capacity is None else Bytes(max(0, gpu.capacity)), WHOLE)
    capacity = max(0, gpu.capacity or 0)
    return ShareRequest(alternative.amount.memory_of(capacity), alternative.amount.compute_of(capacity))


def closed(gpu: Gpu) -> Obstacle | None:
    """What a person has to mend before anything is leased of it."""
    if gpu.cordoned:
        return Obstacle(Fit.CORDONED, gpu.health.why)
    if gpu.health.state in (HealthState.LOST, HealthState.UNHEALTHY):
        return Obstacle(Fit.UNHEALTHY, _ailment(gpu))
    if gpu.mig is Mig.ENABLED:
        return Obstacle(Fit.MIG, f"to open it: nvidia-smi -i {gpu.pci_id} -mig 0")
    if gpu.memory is not None and gpu.memory_used is None and gpu.outside_memory is None:
        return Obstacle(Fit.UNHEALTHY, "its driver does not tell how much memory is in use")
    return None


def occupied(room: Room, wanted: ShareRequest, *, whole: bool) -> Obstacle | None:
    """What only leases and programs that end can mend."""
    if room.held_whole:
        return Obstacle(Fit.HELD_WHOLE)
    if not whole:
        short = wanted.memory is None or room.free_memory is None or wanted.memory > room.free_memory
        return Obstacle(Fit.SHORT) if short or wanted.compute > room.free_compute else None
    if room.shares:
        number = f"{room.shares} shares hold" if room.shares > 1 else "a share holds"
        return Obstacle(Fit.NOT_EMPTY, f"{number} {format_bytes(room.held_memory)}")
    if room.outside is not None and room.outside > room.idle_limit:
        return Obstacle(Fit.NOT_EMPTY, f"other programs hold {format_bytes(room.outside)}")
    return None


def below_context(gpu: Gpu, memory: int) -> bool:
    """Whether no program could start in that much memory of it."""
    return memory < max(1, gpu.context_bytes or 0)


def could_fit_empty(considered: Considered) -> bool:
    """Whether that GPU, were it empty, healthy and open, would fit."""
    return considered.wanted is not None and (considered.fit.passes or considered.fit in _EVER)


def _obstacle(
    room: Room, alternative: Alternative, wanted: ShareRequest | None, unheld: str | None
) -> Obstacle:
    gpu, whole = room.gpu, alternative.amount.whole
    if wanted is None:
        return other_card(gpu, alternative) or Obstacle(Fit.OTHER_MODEL)
    if not whole and wanted.memory is not None and room.capacity is not None:
        if wanted.memory > room.capacity:
            return Obstacle(Fit.TOO_SMALL)
        if below_context(gpu, wanted.memory):
            cost = f"one context takes {format_bytes(gpu.context_bytes)} by itself"
            return Obstacle(
                Fit.BELOW_CONTEXT, cost if gpu.context_bytes else "that part is less than one byte"
            )
    if unheld is not None:
        return Obstacle(Fit.NOT_ENFORCEABLE, unheld)
    return closed(gpu) or occupied(room, wanted, whole=whole) or Obstacle(Fit.FITS)


def _ailment(gpu: Gpu) -> str:
    state = gpu.health.state.value
    return f"{state}: {gpu.health.why}" if gpu.health.why else state

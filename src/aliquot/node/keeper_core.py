"""What a share's keeper decides: pure, ``(state, event) -> (state, commands)``.

The rim (``keeping``) wakes it each second, makes the looks that it orders, hands back what was seen, and
performs the rest. Time comes in; nothing here reads a clock, a file or a process. An agent that keeps many
shares runs one of these a share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from aliquot.enforcement import Nonsense, Outside
from aliquot.model import Bytes, GpuUuid, LeaseId, LedgerSlot

TICK = 1.0
"""Seconds between two looks; the governors' patience is ten of them."""
_SECOND = 1_000_000_000
_PROCESSES_EVERY = 5 * _SECOND
_LEASE_EVERY = 5 * _SECOND
_NOISE = 2 << 20
"""Bytes: drivers round what they list."""

SCRIBBLED = "scribbled"
REPAIRED = "turns-repaired"
"""Of lines in a lease's story: it wrote nonsense into a page of turns; one of its pages was repaired."""


# ---- what happened ----


@dataclass(frozen=True, slots=True)
class Woke:
    now: int
    """CLOCK_MONOTONIC, in nanoseconds; in the other events too."""


@dataclass(frozen=True, slots=True)
class SawLease:
    live: bool
    over: bool = False
    """Whether its time has run out."""


@dataclass(frozen=True, slots=True)
class SawProcesses:
    """The living slots of the share, and what the driver says of their processes."""

    slots: tuple[LedgerSlot, ...]
    outer: Mapping[int, int]
    """Slot → pid in our namespace, of those that were found."""
    memory: Mapping[tuple[int, int], Bytes]
    """(pid, device of the share) → what the driver has for it; missing where it does not say."""
    limits: tuple[Bytes | None, ...]
    """Of the share, by device."""
    exports: bool = False
    """Whether processes hold memory of each other: drivers differ in whom they list it for, and nothing new
    is said."""


@dataclass(frozen=True, slots=True)
class Intruder:
    """A process of a lease that has a page in its hands beside its governor."""

    pid: int
    lease: LeaseId
    how: str
    """A clause."""


@dataclass(frozen=True, slots=True)
class SawPage:
    gpu: GpuUuid
    nonsense: tuple[Nonsense, ...]
    """Seen twice, unchanged."""
    intruders: tuple[Intruder, ...] = ()
    sitting: frozenset[LeaseId] = frozenset()
    """Leases with living processes on the device."""
    strangers: bool = False
    """Whether somebody sits on it, or did a moment ago, of whom no lease is known any more."""


Event = Woke | SawLease | SawProcesses | SawPage


# ---- what to do ----


@dataclass(frozen=True, slots=True)
class Beat:
    at: int


@dataclass(frozen=True, slots=True)
class LookAtPages:
    pass


@dataclass(frozen=True, slots=True)
class LookAtProcesses:
    """Also at those that attest nothing."""


@dataclass(frozen=True, slots=True)
class LookAtLease:
    pass


@dataclass(frozen=True, slots=True)
class Repair:
    gpu: GpuUuid
    nonsense: Nonsense


@dataclass(frozen=True, slots=True)
class Flag:
    """A line in the story of ``lease`` (None: the one that is kept), once."""

    lease: LeaseId | None
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Tell:
    said: Outside


@dataclass(frozen=True, slots=True)
class Reap:
    """The lease's time is over: end it where nobody uses it."""


@dataclass(frozen=True, slots=True)
class End:
    pass


Command = Beat | LookAtPages | LookAtProcesses | LookAtLease | Repair | Flag | Tell | Reap | End


@dataclass(frozen=True, slots=True)
class Keeper:
    """What it remembers between two events."""

    began: int
    processes_due: int
    lease_due: int
    surplus: Mapping[tuple[int, int, int], int]
    """(slot, start time, device) → bytes beyond what is charged, at the last look."""
    told: Mapping[int, Outside]
    """By slot."""
    suspects: Mapping[GpuUuid, frozenset[LeaseId]]
    """Of nonsense whose writer was not seen: who was there each time and was not hurt."""
    sat: Mapping[GpuUuid, frozenset[LeaseId]]
    """Who was there at the last look: who wrote may have gone since."""
    living: Mapping[tuple[GpuUuid, int, str], int]
    """What is nonsense only of one who lives, as it was at the last look: ``Nonsense.living``."""


def begin(now: int) -> Keeper:
    return Keeper(
        began=now, processes_due=now, lease_due=now, surplus={}, told={}, suspects={}, sat={}, living={}
    )


def step(keeper: Keeper, event: Event) -> tuple[Keeper, tuple[Command, ...]]:
    match event:
        case Woke(now):
            return _wake(keeper, now)
        case SawLease():
            return keeper, () if event.live and not event.over else (Reap(),) if event.live else (End(),)
        case SawProcesses():
            return _true_up(keeper, event)
        case SawPage():
            return _judge_page(keeper, event)


def _wake(keeper: Keeper, now: int) -> tuple[Keeper, tuple[Command, ...]]:
    commands: list[Command] = [Beat(now)]
    if now >= keeper.lease_due:
        commands.append(LookAtLease())
        keeper = replace(keeper, lease_due=now + _LEASE_EVERY)
    commands.append(LookAtPages())
    if now >= keeper.processes_due:
        commands.append(LookAtProcesses())
        keeper = replace(keeper, processes_due=now + _PROCESSES_EVERY)
    return keeper, tuple(commands)


# ---- what the driver has beyond what is charged ----


def _true_up(keeper: Keeper, seen: SawProcesses) -> tuple[Keeper, tuple[Command, ...]]:
    """Told is what was so at two looks: an allocation under way is charged before the driver has it."""
    if seen.exports:
        return replace(keeper, surplus={}), ()
    surplus = {
        (slot.index, slot.start_time, device): found
        for slot in seen.slots
        for device in range(len(slot.used))
        if (found := _surplus(slot, device, seen)) is not None
    }
    told = {
        slot.index: said for slot in seen.slots if (said := _said(slot, keeper, surplus, seen)) is not None
    }
    commands = [Tell(said) for index, said in told.items() if keeper.told.get(index) != said]
    return replace(keeper, surplus=surplus, told=told), tuple(commands)


def _surplus(slot: LedgerSlot, device: int, seen: SawProcesses) -> int | None:
    """None where somebody does not say; below 0 where more is charged than the driver has."""
    pid = seen.outer.get(slot.index)
    has = None if pid is None else seen.memory.get((pid, device))
    used, taken = slot.used[device], _taken(slot, device)
    return None if has is None or used is None else has - (used - taken)


def _taken(slot: LedgerSlot, device: int) -> int:
    taken = slot.taken[device] if device < len(slot.taken) else None
    return min(taken or 0, slot.used[device] or 0)


def _said(
    slot: LedgerSlot, keeper: Keeper, surplus: Mapping[tuple[int, int, int], int], seen: SawProcesses
) -> Outside | None:
    pid = seen.outer.get(slot.index)
    if pid is None:
        return None
    before = keeper.told.get(slot.index)
    if before is not None and before.start_time != slot.start_time:
        before = None
    beyond = []
    for device in range(len(slot.used)):
        key = (slot.index, slot.start_time, device)
        now, last = surplus.get(key), keeper.surplus.get(key)
        kept = before.beyond[device] if before is not None else Bytes(0)
        steady = now is not None and last is not None and abs(now - last) <= _NOISE
        beyond.append(
            bounded(min(now, last), seen.limits[device])
            if steady and now is not None and last is not None
            else kept
        )
    return Outside(slot.index, slot.start_time, pid, tuple(beyond))


def bounded(surplus: int, limit: Bytes | None) -> Bytes:
    """At most half of the share: a driver that says nonsense takes none away. Nothing for a rounding."""
    most = surplus if limit is None else min(surplus, limit // 2)
    return Bytes(most if most > _NOISE else 0)


# ---- nonsense on a page ----


def _judge_page(keeper: Keeper, seen: SawPage) -> tuple[Keeper, tuple[Command, ...]]:
    nonsense = tuple(one for one in seen.nonsense if _is_so(one, seen.gpu, keeper))
    there = seen.sitting | keeper.sat.get(seen.gpu, frozenset())
    living = {(seen.gpu, one.at, one.what): one.living for one in seen.nonsense if one.living is not None}
    others = {key: value for key, value in keeper.living.items() if key[0] != seen.gpu}
    keeper = replace(keeper, sat={**keeper.sat, seen.gpu: seen.sitting}, living={**others, **living})
    repairs: list[Command] = [Repair(seen.gpu, found) for found in nonsense]
    if all(one.residue for one in nonsense):
        return keeper, tuple(repairs)
    if seen.intruders:
        return keeper, (*repairs, *_named(seen))
    hurt = {LeaseId(found.victim) for found in nonsense if found.victim is not None}
    left = keeper.suspects.get(seen.gpu, there) & there - hurt
    # All are hurt, or those that were left have gone: it says nothing of anybody.
    keeper = replace(keeper, suspects={**keeper.suspects, seen.gpu: left or there})
    return keeper, (*repairs, *_suspected(seen, left, hurt))


def _is_so(one: Nonsense, gpu: GpuUuid, keeper: Keeper) -> bool:
    """Of one who lives, where he has looked since we saw it first."""
    if one.living is None:
        return True
    before = keeper.living.get((gpu, one.at, one.what))
    return before is not None and before < one.living


def _named(seen: SawPage) -> Iterable[Command]:
    for intruder in seen.intruders:
        detail = (
            f"nonsense was found on the page of turns of {seen.gpu}; process {intruder.pid} {intruder.how}"
        )
        yield Flag(intruder.lease, SCRIBBLED, detail)


def _suspected(seen: SawPage, suspects: frozenset[LeaseId], hurt: set[LeaseId]) -> Iterable[Command]:
    where = f"the page of turns of {seen.gpu}"
    if len(suspects) == 1 and not seen.strangers:
        (only,) = suspects
        why = "the seats of all others there were hurt" if hurt else "it is alone there"
        yield Flag(only, SCRIBBLED, f"nonsense was found on {where}; {why}")
        return
    known = suspects and not seen.strangers
    who = f"one of {', '.join(sorted(suspects))}" if known else "not known"
    yield Flag(None, REPAIRED, f"nonsense was found on {where} and repaired; whose it was is {who}")

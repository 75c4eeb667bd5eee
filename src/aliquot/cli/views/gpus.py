"""GPUs: what is here, what is leased of each, and what is free."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aliquot.cli.output.columns import Column, Listing, Shown
from aliquot.cli.output.kinds import BYTES, COMPUTE, COUNT, DEGREES, FLAG, PERCENT
from aliquot.model import Bytes, Gpu, HealthState, Lease, Share, Snapshot, Thousandths, Vendor

_UUID_SHOWN = 12


@dataclass(frozen=True, slots=True)
class GpuRow:
    gpu: Gpu
    shares: tuple[tuple[Lease, Share], ...] | None
    """Of live leases on it; ``None`` where the book could not be read."""
    short_uuid: str

    @property
    def leased_memory(self) -> Bytes | None:
        """``None`` where the book is not known, or a share of unknown size is on the card."""
        if self.shares is None:
            return None
        sizes = [self.gpu.capacity if share.whole else share.memory for _, share in self.shares]
        known = [size for size in sizes if size is not None]
        return Bytes(sum(known)) if len(known) == len(sizes) else None

    @property
    def leased_compute(self) -> Thousandths | None:
        if self.shares is None:
            return None
        return Thousandths(sum(share.compute for _, share in self.shares))

    @property
    def free_memory(self) -> Bytes | None:
        """What a lease could still get: neither leased nor in use by anybody outside the book."""
        parts = (self.gpu.capacity, self.leased_memory, self.gpu.outside_memory)
        capacity, leased, outside = parts
        if capacity is None or leased is None or outside is None:
            return None
        return Bytes(max(0, capacity - leased - outside))

    @property
    def health(self) -> str:
        """Of two troubles the worse one: a sick card that is cordoned as well shows as sick."""
        state = self.gpu.health.state
        sick = state in (HealthState.UNHEALTHY, HealthState.LOST)
        return "cordoned" if self.gpu.cordoned and not sick else str(state.value)


def gpu_rows(snapshot: Snapshot, leases: Iterable[Lease] | None) -> list[GpuRow]:
    live = None if leases is None else [lease for lease in leases if lease.state.live]
    short = short_uuids([gpu.uuid for gpu in snapshot.gpus])
    return [
        GpuRow(
            gpu=gpu,
            shares=None
            if live is None
            else tuple((lease, share) for lease in live for share in lease.shares if share.gpu == gpu.uuid),
            short_uuid=short[gpu.uuid],
        )
        for gpu in sorted(snapshot.gpus, key=lambda gpu: gpu.index)
    ]


def short_uuids(uuids: Sequence[str]) -> dict[str, str]:
    """Prefixes of one length that tell ``uuids`` apart, so that each can be typed back."""
    length = _UUID_SHOWN
    longest = max(map(len, uuids), default=0)
    while length < longest and len({uuid[:length] for uuid in uuids}) < len(set(uuids)):
        length += 1
    return {uuid: uuid[:length] for uuid in uuids}


def short_model(name: str) -> str:
    """The name without its maker, which the narrow table has no room for."""
    for maker in ("NVIDIA ", "AMD ", "Intel "):
        name = name.removeprefix(maker)
    return name


def shortest_model(row: GpuRow) -> str:
    """``H100``: without memory and socket as well; a software one still says so."""
    from aliquot.placement import short_name

    name = short_name(row.gpu.name)
    return f"software {name}" if row.gpu.vendor is Vendor.SOFTWARE else name


def is_model(row: GpuRow, model: str) -> bool:
    """Whether the model of a SPEC (``A100``, ``H100!``) means this card."""
    from aliquot.placement import matches

    return matches(model.removesuffix("!"), row.gpu.name, exact=model.endswith("!"))


def _capability(row: GpuRow) -> str | None:
    capability = row.gpu.compute_capability
    return None if capability is None else f"{capability[0]}.{capability[1]}"


def _nested(row: GpuRow) -> dict[str, object]:
    gpu = row.gpu
    return {
        "healthWhy": gpu.health.why,
        "processes": None
        if gpu.processes is None
        else [
            {
                "pid": process.pid,
                "memoryBytes": process.memory,
                "utilisationPercent": process.utilisation,
                "command": process.command,
            }
            for process in gpu.processes
        ],
        "leases": None if row.shares is None else [lease.id for lease, _ in row.shares],
    }


GPUS: Listing[GpuRow] = Listing(
    kind="Gpu",
    name=lambda row: row.gpu.uuid,
    empty="",  # the snapshot's own notice says why, with the fix
    columns=(
        Column("index", lambda row: row.gpu.index, COUNT, header="GPU"),
        Column("uuid", lambda row: row.gpu.uuid, brief=lambda row: row.short_uuid, spare=1),
        Column(
            "name",
            lambda row: row.gpu.name,
            brief=lambda row: short_model(row.gpu.name),
            narrow=shortest_model,
            narrowest=14,
        ),
        Column("memory", lambda row: row.gpu.memory, BYTES, key="memoryBytes"),
        Column(
            "free",
            lambda row: row.free_memory,
            BYTES,
            key="freeMemoryBytes",
            whole=lambda row: row.gpu.capacity,
        ),
        Column(
            "leased",
            lambda row: row.leased_memory,
            BYTES,
            key="leasedMemoryBytes",
            whole=lambda row: row.gpu.capacity,
        ),
        Column(
            "outside",
            lambda row: row.gpu.outside_memory,
            BYTES,
            key="outsideMemoryBytes",
            spare=3,
            whole=lambda row: row.gpu.capacity,
        ),
        Column("compute", lambda row: row.leased_compute, COMPUTE, key="leasedComputeThousandths"),
        Column("util", lambda row: row.gpu.utilisation, PERCENT, key="utilisationPercent", spare=2),
        Column("health", lambda row: row.health, narrowest=7),
        Column(
            "used",
            lambda row: row.gpu.memory_used,
            BYTES,
            key="usedMemoryBytes",
            shown=Shown.WIDE,
            whole=lambda row: row.gpu.capacity,
        ),
        Column("capacity", lambda row: row.gpu.capacity, BYTES, key="capacityBytes", shown=Shown.WIDE),
        Column("context", lambda row: row.gpu.context_bytes, BYTES, key="contextBytes", shown=Shown.WIDE),
        Column("vendor", lambda row: row.gpu.vendor.value, shown=Shown.WIDE),
        Column("set", lambda row: row.gpu.set_name, shown=Shown.WIDE),
        Column("pci", lambda row: row.gpu.pci_id, key="pciId", shown=Shown.WIDE),
        Column("capability", _capability, key="computeCapability", shown=Shown.WIDE),
        Column("sms", lambda row: row.gpu.multiprocessors, COUNT, key="multiprocessors", shown=Shown.WIDE),
        Column("temp", lambda row: row.gpu.temperature, DEGREES, key="temperatureCelsius", shown=Shown.WIDE),
        Column("mig", lambda row: row.gpu.mig.value if row.gpu.mig else None, shown=Shown.WIDE),
        Column("cordoned", lambda row: row.gpu.cordoned, FLAG, shown=Shown.WIDE),
        Column(
            "processes",
            lambda row: None if row.gpu.processes is None else len(row.gpu.processes),
            COUNT,
            key="processCount",
            shown=Shown.WIDE,
        ),
        Column("shareable", lambda row: row.gpu.shareable, FLAG, shown=Shown.WIDE),
    ),
    labels={
        "vendor": lambda row: [row.gpu.vendor.value],
        "health": lambda row: [row.health],
        "uuid": lambda row: [row.gpu.uuid, row.short_uuid],
        "set": lambda row: [row.gpu.set_name],
        "user": lambda row: [lease.user for lease, _ in row.shares or ()],
        "lease": lambda row: [
            text for lease, _ in row.shares or () for text in (lease.id, lease.name) if text is not None
        ],
    },
    matchers={"model": is_model},
    example="free>=10GiB and health=healthy",
    nested=_nested,
)

"""One GPU in full: its figures, its leases, its processes."""

from aliquot.cli.output.kinds import UNKNOWN
from aliquot.cli.output.streams import printable
from aliquot.cli.output.tables import aligned
from aliquot.cli.views.gpus import GpuRow
from aliquot.cli.views.leases import holder_text
from aliquot.model import Lease, Share, format_bytes, format_compute


def gpu_lines(row: GpuRow) -> list[str]:
    gpu = row.gpu
    capability = ".".join(map(str, gpu.compute_capability)) if gpu.compute_capability else UNKNOWN
    health = f"{row.health} ({gpu.health.why})" if gpu.health.why else row.health
    fields = [
        ("uuid", gpu.uuid),
        ("pci", gpu.pci_id),
        ("vendor", gpu.vendor.value),
        ("health", printable(health)),
        ("memory", f"{format_bytes(gpu.memory)}, {format_bytes(gpu.capacity)} of it can be leased"),
        ("free", format_bytes(row.free_memory)),
        ("leased", f"{format_bytes(row.leased_memory)}, compute {format_compute(row.leased_compute)}"),
        (
            "outside",
            f"{format_bytes(gpu.outside_memory)} in use by processes in no lease or beyond theirs",
        ),
        ("context", f"{format_bytes(gpu.context_bytes)} for each process that uses it"),
        ("utilisation", UNKNOWN if gpu.utilisation is None else f"{gpu.utilisation}%"),
        ("capability", capability),
        ("multiprocessors", UNKNOWN if gpu.multiprocessors is None else str(gpu.multiprocessors)),
        ("mig", gpu.mig.value if gpu.mig else UNKNOWN),
    ]
    lines = [f"gpu{gpu.index}  {printable(gpu.name)}", *_indented(aligned(fields))]
    return lines + _lease_lines(row) + _process_lines(row)


def _lease_lines(row: GpuRow) -> list[str]:
    if row.shares is None:
        return [f"leases  {UNKNOWN} (the book cannot be read)"]
    if not row.shares:
        return ["leases  none"]
    return ["leases", *_indented(aligned([_lease_row(lease, share) for lease, share in row.shares]))]


def _lease_row(lease: Lease, share: Share) -> tuple[str, ...]:
    size = "whole" if share.whole else format_bytes(share.memory)
    return (
        lease.id,
        printable(lease.user),
        size,
        format_compute(share.compute),
        lease.isolation.value,
        holder_text(lease),
        printable(lease.command or lease.name or ""),
    )


def _process_lines(row: GpuRow) -> list[str]:
    processes = row.gpu.processes
    if processes is None:
        return [f"processes  {UNKNOWN} (the driver does not tell)"]
    if not processes:
        return ["processes  none"]
    rows = [
        (
            f"pid {process.pid}",
            format_bytes(process.memory),
            UNKNOWN if process.utilisation is None else f"{process.utilisation}%",
            printable(process.command or ""),
        )
        for process in processes
    ]
    return ["processes", *_indented(aligned(rows))]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]

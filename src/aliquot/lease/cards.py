"""What the book keeps of cards: when they were here, how large they are, who closed them."""

from collections.abc import Sequence
from sqlite3 import Connection

from aliquot.lease.storage import BookFile
from aliquot.model import Bytes, Gpu, GpuUuid, KnownGpu


def note(file: BookFile, gpus: Sequence[Gpu], at: int) -> None:
    if not gpus:
        return
    before = {gpu.uuid: gpu for gpu in known(file)}
    # A later sight of the same card is worth a commit but no wait for the disk: the next sight
    # tells as much.
    news = any(_is_news(gpu, before.get(gpu.uuid)) for gpu in gpus)
    with file.transaction(on_disk=news) as db:
        # The clock may have been set back: the earliest and the latest sight are kept.
        db.executemany(
            "INSERT INTO gpu (uuid, name, capacity, first_seen, last_seen) VALUES (?1, ?2, ?3, ?4, ?4) "
            "ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, "
            "capacity = coalesce(excluded.capacity, capacity), "
            "first_seen = min(first_seen, excluded.first_seen), "
            "last_seen = max(last_seen, excluded.last_seen)",
            [(gpu.uuid, gpu.name, gpu.capacity, at) for gpu in gpus],
        )


def _is_news(gpu: Gpu, before: KnownGpu | None) -> bool:
    if before is None or before.name != gpu.name:
        return True
    return gpu.capacity is not None and gpu.capacity != before.capacity


def known(file: BookFile) -> tuple[KnownGpu, ...]:
    rows = file.rows("SELECT uuid, name, capacity, first_seen, last_seen FROM gpu ORDER BY uuid")
    return tuple(
        KnownGpu(
            uuid=GpuUuid(uuid),
            name=name,
            capacity=None if capacity is None else Bytes(capacity),
            first_seen=first,
            last_seen=last,
        )
        for uuid, name, capacity, first, last in rows
    )


def capacities(db: Connection, gpus: Sequence[GpuUuid]) -> dict[GpuUuid, Bytes | None]:
    """Of the cards among ``gpus`` that were ever seen."""
    marks = ", ".join("?" * len(gpus))
    return dict(db.execute(f"SELECT uuid, capacity FROM gpu WHERE uuid IN ({marks})", gpus).fetchall())


def cordon(file: BookFile, gpu: GpuUuid, reason: str | None, at: int) -> None:
    with file.transaction(on_disk=True) as db:
        db.execute(
            "INSERT INTO cordon (gpu, reason, at) VALUES (?, ?, ?) "
            "ON CONFLICT (gpu) DO UPDATE SET reason = excluded.reason, at = excluded.at",
            (gpu, reason, at),
        )


def uncordon(file: BookFile, gpu: GpuUuid) -> bool:
    with file.transaction(on_disk=True) as db:
        return db.execute("DELETE FROM cordon WHERE gpu = ?", (gpu,)).rowcount == 1


def cordons(file: BookFile) -> dict[GpuUuid, str | None]:
    rows = file.rows("SELECT gpu, reason FROM cordon ORDER BY gpu")
    return {GpuUuid(gpu): reason for gpu, reason in rows}

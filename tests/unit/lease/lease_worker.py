"""A process that uses a book, for the tests to kill, stop and race. Its first argument says how."""

import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

from aliquot.lease import Book, LeaseDraft, describe, open_book
from aliquot.model import (
    AliquotError,
    Bytes,
    GpuUuid,
    Isolation,
    Lease,
    LeaseId,
    LeaseState,
    Placed,
    Policy,
    Reason,
    Refused,
    Share,
    Thousandths,
    Usage,
)

CAPACITY = 1000
GPUS = ("GPU-a", "GPU-b")


def draft() -> LeaseDraft:
    return LeaseDraft(
        ask="100MB",
        policy=Policy.FAIR,
        isolation=Isolation.SOFT,
        holder=describe(os.getpid()),
        user="worker",
        command="worker",
        created_at=time.time_ns(),
    )


def decide(live: tuple[Lease, ...]) -> Placed | Refused:
    """100 bytes and a tenth of the first card with room: never more than ten on a card."""
    for gpu in GPUS:
        held = sum(share.memory or 0 for lease in live for share in lease.shares if share.gpu == gpu)
        if held + 100 <= CAPACITY:
            return Placed((Share(GpuUuid(gpu), Bytes(100), Thousandths(100)),), 0, ())
    return Refused(Reason.NO_ROOM, (), True)


def pair(book: Book, tell: bool = False) -> Lease | None:
    lease = book.reserve(draft(), decide)
    if isinstance(lease, Refused):
        return None
    if tell:
        print(f"reserved {lease.id}", flush=True)
    book.advance(lease.id, LeaseState.HELD, at=time.time_ns())
    if tell:
        print(f"held {lease.id}", flush=True)
    book.advance(lease.id, LeaseState.RELEASING, at=time.time_ns())
    share = lease.shares[0]
    usage = Usage(lease.id, share.gpu, 1, share.memory, share.compute)
    book.end(lease.id, at=time.time_ns(), why="released", usages=[usage])
    if tell:
        print(f"ended {lease.id}", flush=True)
    return lease


def main() -> None:
    how, path, *rest = sys.argv[1:]
    if how == "pairs-for":
        pairs_for(Path(path), float(rest[0]))
    elif how == "pairs-forever":
        with open_book(Path(path)) as book:
            while True:
                pair(book, tell=True)
    elif how == "die-after":
        die_after(Path(path), int(rest[0]))
    elif how == "hold":
        hold(Path(path))
    elif how == "change":
        change(Path(path), LeaseId(rest[0]), int(rest[1]))
    elif how == "lock":
        lock(Path(path))
    elif how == "open":
        try_to_open(Path(path))


def pairs_for(path: Path, seconds: float) -> None:
    """Say ready, wait for the word, then lease and release; print each id that was ended."""
    ended = []
    with open_book(path, wait_s=60) as book:
        print("ready", flush=True)
        sys.stdin.readline()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lease = pair(book)
            if lease is not None:
                ended.append(lease.id)
    print(" ".join(ended), flush=True)


def die_after(path: Path, instructions: int) -> None:
    """One pair, killed by SIGKILL after so many instructions of SQLite's virtual machine."""
    with open_book(path) as book:
        connection: sqlite3.Connection = book._file._connection
        left = instructions

        def tick() -> int:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        connection.set_progress_handler(tick, 1)
        pair(book, tell=True)
    print("survived", flush=True)


def hold(path: Path) -> None:
    """Hold a lease until the end of stdin."""
    with open_book(path) as book:
        lease = book.reserve(draft(), decide)
        if isinstance(lease, Lease):
            book.advance(lease.id, LeaseState.HELD, at=time.time_ns())
            print(lease.id, flush=True)
            sys.stdin.readline()


def change(path: Path, lease: LeaseId, times: int) -> None:
    """Say ready, wait for the word, then change the lease's time limit so many times."""
    with open_book(path) as book:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(times):
            book.set_expiry(lease, number, at=number)


def lock(path: Path) -> None:
    """Hold the write lock until the end of stdin."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    print("locked", flush=True)
    sys.stdin.readline()


def try_to_open(path: Path) -> None:
    try:
        with open_book(path) as book:
            pair(book)
    except AliquotError as error:
        print(error.reason.code, error.message, flush=True)
    else:
        print("opened", flush=True)


if __name__ == "__main__":
    main()

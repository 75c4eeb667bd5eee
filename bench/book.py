"""How many leases a second the book takes and gives back, beside what its disk can do.

Short turns of the disk and of the book alternate in the same folder, so that whatever else uses
the machine meets both alike; the figure is the median, over pairs of neighbouring turns, of the
book's rate over the disk's.

The disk: one process appends 4 KiB to a new file and calls fdatasync, over and over, as a log
does. The book: 4 processes that each lease a quarter of the same card and release it, four
committed steps a pair, as ``aliquot run`` does; a pair costs one fdatasync (the end with its
usage), because a lease that a process holds ends with the power anyway. A lease that nobody or
a container holds must outlive it, so its pair costs two, and its goal is half. The table in
``aliquot.lease.book`` says which step is on disk when.

A book that is wrong afterwards (a pair lost or doubled, a row unsound) makes the row short.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aliquot.lease import Book, LeaseDraft, describe, open_book
from aliquot.model import (
    GIB,
    Bytes,
    GpuUuid,
    Holder,
    Isolation,
    Lease,
    LeaseState,
    NobodyHolder,
    Placed,
    Policy,
    Reason,
    Refused,
    Share,
    Thousandths,
    Usage,
)
from row import print_row

PROCESSES = 4
TURNS = 15
DISK_S = 0.2
BOOK_S = 0.5
QUARTER = Share(GpuUuid("GPU-00000000-0000-4000-8000-000000000001"), Bytes(20 * GIB), Thousandths(250))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--folder", type=Path, help="on the disk to measure; default: build/ of this checkout"
    )
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--nobody", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, nobody=options.nobody)
    folder = options.folder or Path(__file__).resolve().parent.parent / "build"
    folder.mkdir(exist_ok=True)
    held = row_of(folder, "held by processes", nobody=False, goal=0.4)
    nobody = row_of(folder, "held by nobody", nobody=True, goal=0.2)
    return 0 if held and nobody else 1


def row_of(folder: Path, what: str, *, nobody: bool, goal: float) -> bool:
    figure = f"book: lease+release pairs/s, {PROCESSES} processes, {what}, over fdatasync/s"
    try:
        with tempfile.TemporaryDirectory(prefix="bench-book-", dir=folder) as place:
            rates = list(turns(Path(place), nobody=nobody))
    except (OSError, RuntimeError) as error:
        print(f"bench book: {error}", file=sys.stderr)
        print_row(figure, float("nan"), "x", f">= {goal} x", False)
        return False
    measured = statistics.median(pairs / syncs for pairs, syncs in rates)
    pairs, syncs = (statistics.median(column) for column in zip(*rates, strict=True))
    print_row(figure, measured, f"x ({pairs:.0f}/s of {syncs:.0f}/s)", f">= {goal} x", measured >= goal)
    return measured >= goal


def turns(place: Path, *, nobody: bool) -> Iterator[tuple[float, float]]:
    """(pairs a second, fdatasyncs a second) of each turn. Raises RuntimeError where the book is wrong."""
    path = place / "book.sqlite"
    open_book(path).close()
    command = [sys.executable, __file__, "--work", str(path), *(["--nobody"] if nobody else [])]
    total = 0
    with started(command) as workers:
        for worker in workers:
            if answer_of(worker) != "ready":
                raise RuntimeError("a worker did not start")
        for _ in range(TURNS):
            syncs = disk_rate(place)
            begin = time.perf_counter()
            for worker in workers:
                tell(worker, "go")
            count = sum(int(answer_of(worker)) for worker in workers)
            total += count
            yield count / (time.perf_counter() - begin), syncs
    with open_book(path) as book:
        check(book, total)


def disk_rate(place: Path) -> float:
    """Appends of 4 KiB, each with its fdatasync, a second."""
    descriptor, name = tempfile.mkstemp(dir=place)
    try:
        page = os.urandom(4096)
        count, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < DISK_S:
            os.write(descriptor, page)
            os.fdatasync(descriptor)
            count += 1
        return count / passed
    finally:
        os.close(descriptor)
        Path(name).unlink()


def check(book: Book, pairs: int) -> None:
    ended = book.leases(live=False)
    if len(ended) != pairs or book.leases(live=True) or len(book.usages()) != pairs or book.check():
        raise RuntimeError(f"the book has {len(ended)} leases after {pairs} pairs: {book.check()}")


@contextmanager
def started(command: list[str]) -> Iterator[list["subprocess.Popen[str]"]]:
    workers: list[subprocess.Popen[str]] = []
    try:
        for _ in range(PROCESSES):
            workers.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def tell(worker: "subprocess.Popen[str]", word: str) -> None:
    if worker.stdin is None:
        raise RuntimeError("a worker without stdin")
    worker.stdin.write(f"{word}\n")
    worker.stdin.flush()


def answer_of(worker: "subprocess.Popen[str]") -> str:
    answer = worker.stdout.readline().strip() if worker.stdout else ""
    if not answer:
        raise RuntimeError("a worker failed")
    return answer


def work(path: Path, *, nobody: bool) -> int:
    """One worker: at each word pairs for BOOK_S seconds, then how many."""
    with open_book(path) as book:
        mine = describe(os.getpid())
        print("ready", flush=True)
        while sys.stdin.readline():
            count, end = 0, time.perf_counter() + BOOK_S
            while time.perf_counter() < end:
                pair(book, NobodyHolder() if nobody else mine, time.time_ns)
                count += 1
            print(count, flush=True)
    return 0


def pair(book: Book, holder: Holder, now: Callable[[], int]) -> None:
    draft = LeaseDraft(
        ask="25%",
        policy=Policy.FAIR,
        isolation=Isolation.SOFT,
        holder=holder,
        user="bench",
        command="python train.py",
        created_at=now(),
    )
    lease = book.reserve(draft, decide)
    if isinstance(lease, Refused):
        raise RuntimeError("four quarters of one card did not fit")
    lease = book.advance(lease.id, LeaseState.HELD, at=now(), holder=holder)
    usage = Usage(lease.id, QUARTER.gpu, 1, QUARTER.memory, QUARTER.compute)
    book.end(lease.id, at=now(), why="released", usages=[usage])


def decide(live: tuple[Lease, ...]) -> Placed | Refused:
    if sum(share.compute for lease in live for share in lease.shares) > 1000 - QUARTER.compute:
        return Refused(Reason.NO_ROOM, (), True)
    return Placed((QUARTER,), 0, ())


if __name__ == "__main__":
    raise SystemExit(main())

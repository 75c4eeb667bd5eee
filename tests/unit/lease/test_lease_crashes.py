"""Real processes, killed with SIGKILL at every point: the book is right at the next opening."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aliquot.lease import (
    Action,
    Book,
    Evidence,
    StaleDecisionError,
    due,
    is_alive,
    open_book,
    processes_carrying,
)
from aliquot.model import Lease, LeaseId, LeaseState, ProcessHolder, Usage

Start = Callable[..., "subprocess.Popen[str]"]
ORDER = ["preparing", "held", "releasing", "ended"]


def check(book: Book) -> None:
    """Everything that must hold of a book whatever happened to whom."""
    assert book.check() == ()
    for lease in book.leases(live=None):
        told = [event.what for event in book.events(lease.id)]
        # Held is left out where the preparation was killed, and a release may be taken over.
        assert [ORDER.index(what) for what in told] == sorted(ORDER.index(what) for what in told)
        assert told[0] == "preparing"
        assert told[-1] == lease.state.value
        assert len(book.usages(lease=lease.id)) == (0 if lease.state.live else 1)


def clean_up(book: Book) -> tuple[Action, ...]:
    """What the next command does: gather, decide, release."""
    live = book.leases()
    known = {holder for lease in live for holder in (lease.holder, lease.worker)}
    processes = [holder for holder in known if isinstance(holder, ProcessHolder)]
    evidence = Evidence(
        boot_id=None,
        alive={process: is_alive(process) for process in processes},
        carrying=processes_carrying([lease.id for lease in live]),
        slots={lease.id: 0 for lease in live},
        containers={},
    )
    found = due(live, evidence, now=1)
    for item in found:
        finish(book, item.lease, item.why)
    return tuple(item.action for item in found)


def finish(book: Book, lease: Lease, why: str) -> None:
    book.advance(lease.id, LeaseState.RELEASING, at=1, seen=lease)
    usages = [Usage(lease.id, share.gpu, 1, share.memory, share.compute) for share in lease.shares]
    book.end(lease.id, at=1, why=why, usages=usages)


def test_killed_at_every_point_of_a_lease_the_book_is_right_and_the_share_comes_back(
    path: Path, start: Start
) -> None:
    """Counted in instructions of SQLite, so the points lie inside statements and commits too."""
    open_book(path).close()
    seen: set[str] = set()
    instructions = 1
    while "survived" not in seen:
        worker = start("die-after", path, instructions)
        said = worker.communicate()[0].split()
        if said[-1:] == ["survived"]:
            seen.add(said.pop())
        with open_book(path, wait_s=1) as book:
            check(book)
            live = book.leases()
            assert len(live) <= 1
            seen.update(lease.state.value for lease in live)
            # What the process had been told is in the book: a step that returned was committed.
            told = said[-2] if len(said) >= 2 else "nothing"
            states = {"nothing": 0, "reserved": 0, "held": 1, "ended": 3}
            if told != "nothing":
                assert ORDER.index(book.find(said[-1]).state.value) >= states[told]
            clean_up(book)
            assert book.leases() == ()
        instructions = int(instructions * 1.2) + 3
    assert seen >= {"preparing", "held", "releasing", "survived"}


def test_killed_at_random_moments_nothing_is_lost_or_doubled(path: Path, start: Start) -> None:
    open_book(path).close()
    for round_ in range(4):
        workers = [start("pairs-forever", path) for _ in range(3)]
        told: list[tuple[str, LeaseId]] = []
        for position, worker in enumerate(workers):
            assert worker.stdout is not None
            for _ in range(5 * round_ + 3 * position + 1):  # a different point in each
                what, lease = worker.stdout.readline().split()
                told.append((what, LeaseId(lease)))
            os.kill(worker.pid, signal.SIGKILL)
        told += [
            (line.split()[0], LeaseId(line.split()[1]))
            for worker in workers
            for line in worker.communicate()[0].splitlines()
            if len(line.split()) == 2
        ]
        with open_book(path, wait_s=1) as book:
            check(book)
            states = {lease.id: lease.state for lease in book.leases(live=None)}
            for what, id_ in told:
                assert id_ in states
                if what == "ended":
                    assert states[id_] is LeaseState.ENDED
            assert len(book.leases()) <= 3
            clean_up(book)
            assert book.leases() == ()


def holding(start: Start, path: Path) -> "tuple[subprocess.Popen[str], str]":
    worker = start("hold", path)
    assert worker.stdout is not None
    return worker, worker.stdout.readline().strip()


def test_a_killed_process_is_cleaned_up_and_a_living_one_is_left_alone(
    book: Book, path: Path, start: Start
) -> None:
    (dead, _), (_, living) = holding(start, path), holding(start, path)
    dead.kill()
    dead.wait()
    assert len(book.leases()) == 2
    assert clean_up(book) == (Action.RELEASE,)
    assert [lease.id for lease in book.leases()] == [living]


def test_of_two_that_clean_up_at_once_one_releases_and_the_other_learns_of_it(
    book: Book, path: Path, start: Start
) -> None:
    worker, _ = holding(start, path)
    worker.kill()
    worker.wait()
    with open_book(path) as other:
        (seen,) = other.leases()
        clean_up(book)
        with pytest.raises(StaleDecisionError):
            finish(other, seen, "holder gone")
    check(book)
    assert book.leases() == ()

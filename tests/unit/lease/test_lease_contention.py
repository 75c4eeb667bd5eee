"""32 processes (8 for each commit) lease and release at once: none lost, none doubled, none starved."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aliquot.lease import open_book
from aliquot.model import Lease, LeaseState

Start = Callable[..., "subprocess.Popen[str]"]
PROCESSES = 32
CARD = 1_000
"""As in lease_worker.py: bytes, of which each lease takes 100."""


def race(path: Path, start: Start, seconds: float, processes: int) -> list[list[str]]:
    """The ids that each process leased and released."""
    open_book(path).close()
    workers = [start("pairs-for", path, seconds) for _ in range(processes)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ids = []
    for worker in workers:
        assert worker.stdout is not None
        ids.append(worker.stdout.readline().split())
        assert worker.wait() == 0
    return ids


def never_over_capacity(leases: tuple[Lease, ...], order: dict[str, tuple[int, int]]) -> None:
    """Replays the book's own event log: at no commit was a card handed out beyond its size."""
    moments = sorted(
        (seq, change, lease.shares[0].gpu)
        for lease in leases
        for seq, change in zip(order[lease.id], (1, -1), strict=True)
    )
    held: dict[str, int] = {}
    for _, change, gpu in moments:
        held[gpu] = held.get(gpu, 0) + 100 * change
        assert 0 <= held[gpu] <= CARD


def check_race(path: Path, ids: list[list[str]]) -> None:
    everything = [id_ for mine in ids for id_ in mine]
    with open_book(path) as book:
        leases = book.leases(live=None)
        assert sorted(lease.id for lease in leases) == sorted(everything), "lost or doubled"
        assert len(set(everything)) == len(everything)
        assert all(lease.state is LeaseState.ENDED for lease in leases)
        assert sorted(usage.lease for usage in book.usages()) == sorted(everything)
        born = {event.lease: event.seq for event in book.events() if event.what == "preparing"}
        died = {event.lease: event.seq for event in book.events() if event.what == "ended"}
        never_over_capacity(leases, {id_: (born[id_], died[id_]) for id_ in born})
        assert book.check() == ()


def test_changes_of_one_lease_at_once_all_take_place_one_after_another(
    path: Path, start: Start, reserve: Callable[..., Lease]
) -> None:
    """Each is decided on a look without the lock: one that came too late must be decided again."""
    with open_book(path) as book:
        lease = reserve(book)
        workers = [start("change", path, lease.id, 100) for _ in range(3)]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            assert worker.wait() == 0
        story = book.events(lease.id)
        assert [event.what for event in story] == ["preparing"] + ["expiry"] * 300
        assert [event.seq for event in story] == sorted(event.seq for event in book.events())
        assert book.find(lease.id).expires_at == 99


def test_for_a_second_no_lease_is_lost_and_no_share_doubled(path: Path, start: Start) -> None:
    check_race(path, race(path, start, seconds=1, processes=8))


@pytest.mark.slow
def test_for_ten_seconds_no_lease_is_lost_no_share_doubled_and_nobody_starved(
    path: Path, start: Start
) -> None:
    ids = race(path, start, seconds=10, processes=PROCESSES)
    check_race(path, ids)
    assert min(len(mine) for mine in ids) > 0

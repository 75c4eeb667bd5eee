"""The book: what goes in comes out, whole, once, and under a name that means one lease."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aliquot.lease import Book, LeaseDraft, StaleDecisionError, open_book
from aliquot.model import (
    GIB,
    AliquotError,
    Bytes,
    ContainerHolder,
    Gpu,
    GpuUuid,
    Isolation,
    KnownGpu,
    Lease,
    LeaseId,
    LeaseState,
    NobodyHolder,
    Placed,
    Policy,
    ProcessHolder,
    Reason,
    Refused,
    Share,
    Thousandths,
    Usage,
    Vendor,
    lease_id,
)

PROCESS = ProcessHolder(pid=7, start_time=70, pid_namespace=1)
Draft = Callable[..., LeaseDraft]
Placing = Callable[..., Callable[[tuple[Lease, ...]], Placed | Refused]]
Reserve = Callable[..., Lease]


def reserved(found: Lease | Refused) -> Lease:
    assert isinstance(found, Lease)
    return found


def end(book: Book, lease: Lease, *, at: int = 9_000, usages: tuple[Usage, ...] = ()) -> Lease:
    book.advance(lease.id, LeaseState.RELEASING, at=at)
    return book.end(lease.id, at=at, why="released", usages=usages)


@pytest.mark.parametrize(
    "holder",
    [
        PROCESS,
        NobodyHolder(),
        ContainerHolder(engine="podman", client=PROCESS, release_on_stop=True, endpoint="unix:///x"),
        ContainerHolder(engine="docker", client=None),
    ],
    ids=str,
)
def test_every_field_of_a_lease_comes_back_from_another_connection(
    book: Book, path: Path, draft: Draft, holder: ProcessHolder | NobodyHolder | ContainerHolder
) -> None:
    shares = (
        Share(GpuUuid("GPU-b"), Bytes(10 * GIB), Thousandths(333)),
        Share(GpuUuid("GPU-a"), None, Thousandths(1000), whole=True),
    )
    plan = draft(
        ask="1/3,T4",
        policy=Policy.CAP,
        isolation=Isolation.ADVISORY,
        holder=holder,
        command="echo 'ä\n' -- \"x\"",
        name="train",
        expires_at=5_000,
        boot_id="boot",
        worker=PROCESS,
    )
    lease = reserved(book.reserve(plan, lambda _: Placed(shares, 0, ())))
    assert lease == Lease(
        id=lease.id,
        state=LeaseState.PREPARING,
        ask="1/3,T4",
        shares=shares,
        policy=Policy.CAP,
        isolation=Isolation.ADVISORY,
        holder=holder,
        user="ann",
        command="echo 'ä\n' -- \"x\"",
        created_at=1_000,
        name="train",
        expires_at=5_000,
        boot_id="boot",
        worker=PROCESS,
    )
    with open_book(path) as other:
        assert other.leases() == (lease,)


def test_the_decision_sees_every_live_lease_and_a_refusal_writes_nothing(
    book: Book, draft: Draft, reserve: Reserve
) -> None:
    ended, live = reserve(book), reserve(book)
    end(book, ended)
    refusal = Refused(Reason.NO_ROOM, (), True)
    seen: list[tuple[Lease, ...]] = []

    def decide(leases: tuple[Lease, ...]) -> Refused:
        seen.append(leases)
        return refusal

    before = book.events()
    assert book.reserve(draft(), decide) is refusal
    assert seen == [(live,)]
    assert book.events() == before


def test_a_decision_that_raises_leaves_the_book_as_it_was_and_open_to_others(
    book: Book, path: Path, draft: Draft, reserve: Reserve
) -> None:
    def decide(_: tuple[Lease, ...]) -> Placed:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        book.reserve(draft(), decide)
    with open_book(path, wait_s=0) as other:
        reserve(other)
    assert len(book.leases()) == 1


def test_an_id_that_was_ever_used_is_drawn_again(book: Book, draft: Draft, placing: Placing) -> None:
    numbers = iter([5, 5, 5, 6])
    first = reserved(book.reserve(draft(), placing(), entropy=lambda: next(numbers)))
    end(book, first)
    second = reserved(book.reserve(draft(), placing(), entropy=lambda: next(numbers)))
    assert (first.id, second.id) == (lease_id(5), lease_id(6))


def test_an_id_that_is_a_live_name_is_drawn_again(book: Book, draft: Draft, placing: Placing) -> None:
    def reserve(name: str | None, *numbers: int) -> Lease:
        entropy = iter(numbers)
        return reserved(book.reserve(draft(name=name), placing(compute=100), entropy=lambda: next(entropy)))

    reserve(str(lease_id(5)), 5, 6)
    assert reserve(None, 5, 7).id == lease_id(7)


def test_when_no_id_is_free_nothing_is_leased(book: Book, draft: Draft, placing: Placing) -> None:
    reserved(book.reserve(draft(), placing(), entropy=lambda: 5))
    with pytest.raises(AliquotError, match="no free lease id"):
        book.reserve(draft(), placing(), entropy=lambda: 5)
    assert len(book.leases(live=None)) == 1


def test_a_live_name_is_taken_and_an_ended_one_is_free(book: Book, reserve: Reserve) -> None:
    first = reserve(book, name="train")
    with pytest.raises(AliquotError, match="train") as refused:
        reserve(book, name="train")
    assert refused.value.reason is Reason.NAME_TAKEN
    end(book, first)
    assert reserve(book, name="train").name == "train"


def test_an_id_is_nobodys_name_not_even_an_ended_leases(book: Book, reserve: Reserve) -> None:
    live, ended = reserve(book), reserve(book)
    end(book, ended)
    for lease in (live, ended):
        with pytest.raises(AliquotError, match="the id of a lease") as refused:
            reserve(book, name=lease.id)
        assert refused.value.reason is Reason.NAME_TAKEN


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ({"compute": 600}, {"compute": 401}, "1001 of 1000 thousandths"),
        ({"compute": 100, "whole": True}, {"compute": 100}, "whole beside another"),
        ({"compute": 100}, {"compute": 100, "whole": True}, "whole beside another"),
        ({"memory": 60 * GIB}, {"memory": 20 * GIB + 1}, "bytes of GPU-a"),
    ],
)
def test_a_placement_that_hands_out_twice_is_not_written(
    book: Book, draft: Draft, placing: Placing, first: dict[str, int], second: dict[str, int], what: str
) -> None:
    card = Gpu(GpuUuid("GPU-a"), 0, Vendor.SOFTWARE, "A100", "0000:01:00.0", memory=Bytes(80 * GIB))
    book.note_gpus([card], at=1)
    reserved(book.reserve(draft(), placing(**first)))
    with pytest.raises(AliquotError, match=what):
        book.reserve(draft(), placing(**second))
    assert len(book.leases()) == 1


@pytest.mark.parametrize("gpus", [(), ("GPU-a", "GPU-a")])
def test_a_placement_of_no_card_or_of_one_card_twice_is_not_written(
    book: Book, draft: Draft, gpus: tuple[str, ...]
) -> None:
    shares = tuple(Share(GpuUuid(gpu), Bytes(1), Thousandths(1)) for gpu in gpus)
    with pytest.raises(AliquotError, match="would have handed out"):
        book.reserve(draft(), lambda _: Placed(shares, 0, ()))
    assert book.leases(live=None) == ()


def test_the_end_and_its_figures_are_one_step(book: Book, path: Path, reserve: Reserve) -> None:
    lease = reserve(book)
    book.advance(lease.id, LeaseState.HELD, at=2_000)
    usage = Usage(lease.id, lease.shares[0].gpu, 7_000, Bytes(10), 250, Bytes(9), 4.5, 3, 11)
    ended = end(book, lease, usages=(usage,))
    with open_book(path) as other:
        assert other.usages() == (usage,)
        assert other.leases(live=False) == (ended,)
        assert other.usages(lease=LeaseId("zzzzz")) == other.usages(since=9_001) == ()
        assert other.usages(lease=lease.id) == other.usages(since=9_000) == (usage,)


def test_figures_that_the_book_cannot_hold_leave_the_lease_unended(book: Book, reserve: Reserve) -> None:
    lease = reserve(book)
    book.advance(lease.id, LeaseState.RELEASING, at=2)
    wrong = Usage(lease.id, GpuUuid("GPU-a"), -1, None, 250)
    with pytest.raises(AliquotError):
        book.end(lease.id, at=3, why="released", usages=(wrong,))
    assert book.find(lease.id).state is LeaseState.RELEASING
    assert book.usages() == ()


def test_a_second_end_says_that_the_lease_has_ended(book: Book, reserve: Reserve) -> None:
    lease = reserve(book)
    end(book, lease)
    with pytest.raises(AliquotError) as refused:
        book.end(lease.id, at=10_000, why="expired", usages=())
    assert refused.value.reason is Reason.LEASE_ENDED
    assert book.find(lease.id).end_why == "released"


def test_a_decision_on_a_lease_that_changed_since_is_not_carried_out(book: Book, reserve: Reserve) -> None:
    seen = reserve(book)
    book.set_holder(seen.id, PROCESS, at=2_000)
    with pytest.raises(StaleDecisionError):
        book.advance(seen.id, LeaseState.RELEASING, at=3_000, seen=seen)
    assert book.find(seen.id).state is LeaseState.PREPARING
    assert book.advance(seen.id, LeaseState.HELD, at=3_000, seen=book.find(seen.id)).holder == PROCESS


def test_a_lease_that_another_process_changed_meanwhile_is_looked_at_again(
    book: Book, path: Path, reserve: Reserve
) -> None:
    """What a book wrote last it remembers; the memory never wins over the file."""
    lease = reserve(book)
    with open_book(path) as other:
        other.advance(lease.id, LeaseState.HELD, at=2_000, holder=PROCESS)
        assert book.set_expiry(lease.id, 90_000, at=3_000).held_at == 2_000
        end(other, lease)
        with pytest.raises(AliquotError) as refused:
            book.end(lease.id, at=10_000, why="expired", usages=())
    assert refused.value.reason is Reason.LEASE_ENDED
    assert [event.what for event in book.events(lease.id)] == [
        *("preparing", "held", "expiry", "releasing", "ended")
    ]


def test_holder_time_limit_and_boot_change_and_are_told_in_the_story(book: Book, reserve: Reserve) -> None:
    lease = reserve(book)
    book.advance(lease.id, LeaseState.HELD, at=2_000)
    book.set_holder(lease.id, ContainerHolder("podman", None), at=3_000)
    book.set_expiry(lease.id, 60 * 10**9, at=4_000)
    after = book.set_boot(lease.id, "second", at=5_000)
    assert after == replace(
        lease,
        state=LeaseState.HELD,
        held_at=2_000,
        worker=None,
        holder=ContainerHolder("podman", None),
        expires_at=60 * 10**9,
        boot_id="second",
    )
    assert book.find(lease.id) == after
    assert [(event.at, event.what, event.detail) for event in book.events(lease.id)] == [
        (1_000, "preparing", "for nobody"),
        (2_000, "held", None),
        (3_000, "holder", "a container of podman"),
        (4_000, "expiry", "1970-01-01T00:01:00Z"),
        (5_000, "boot", "second"),
    ]


def test_stories_of_several_leases_stay_apart_and_together_are_in_order(book: Book, reserve: Reserve) -> None:
    first, second = reserve(book), reserve(book)
    end(book, second)
    end(book, first)
    together = book.events()
    assert [event.seq for event in together] == sorted(event.seq for event in together)
    assert {event.lease for event in book.events(first.id)} == {first.id}
    assert len(together) == len(book.events(first.id)) + len(book.events(second.id)) == 6
    assert book.events(first.id, after=together[3].seq) == together[4:]
    assert book.events(LeaseId("zzzzz")) == ()


def test_leases_are_listed_oldest_first_live_ended_or_both(book: Book, reserve: Reserve) -> None:
    first, second, third = reserve(book), reserve(book), reserve(book)
    old, new = end(book, first, at=5_000), end(book, third, at=8_000)
    assert book.leases() == (second,)
    assert book.leases(live=False) == (old, new)
    assert book.leases(live=None) == (old, second, new)
    assert book.leases(live=None, since=5_001) == (second, new)
    assert book.leases(live=False, since=8_001) == ()


def test_a_lease_is_found_by_id_name_or_the_start_of_its_id(
    book: Book, draft: Draft, placing: Placing
) -> None:
    numbers = {number: lease_id(number) for number in (0, 21, 1)}  # aaaaa, abaaa, baaaa
    made = {
        number: reserved(
            book.reserve(draft(name=f"n{number}"), placing(compute=1), entropy=lambda n=number: n)  # type: ignore[misc]
        )
        for number in numbers
    }
    assert book.find(numbers[1]) == book.find("n1") == book.find("b") == made[1]
    assert book.find("ab") == made[21]
    with pytest.raises(AliquotError) as refused:
        book.find("a")
    assert refused.value.reason is Reason.AMBIGUOUS
    assert [fact.split()[0] for fact in refused.value.facts] == [numbers[0], numbers[21]]
    ended = end(book, made[21])
    assert book.find("a") == made[0], "one live lease begins so"
    assert book.find("ab") == ended, "no live lease begins so"
    assert book.find("n21") == ended


def test_a_live_name_is_found_before_ids_that_begin_so_and_before_older_leases_of_that_name(
    book: Book, draft: Draft, placing: Placing
) -> None:
    reserved(book.reserve(draft(), placing(compute=1), entropy=lambda: 0))
    end(book, reserved(book.reserve(draft(name="a"), placing(compute=1), entropy=lambda: 3)))
    named = reserved(book.reserve(draft(name="a"), placing(compute=1), entropy=lambda: 2))
    assert book.find("a") == named


@pytest.mark.parametrize("text", ["", "nothing", "%", "a*", "'", "é", "kx7f2x", "\0"])
def test_what_is_not_there_is_not_found(book: Book, reserve: Reserve, text: str) -> None:
    reserve(book)
    with pytest.raises(AliquotError) as refused:
        book.find(text)
    assert refused.value.reason is Reason.NOT_FOUND


def test_cards_are_remembered_with_their_first_and_last_sight(book: Book) -> None:
    card = Gpu(
        GpuUuid("GPU-a"),
        0,
        Vendor.NVIDIA,
        "T4",
        "0000:01:00.0",
        memory=Bytes(16 * GIB),
        memory_reserved=Bytes(GIB),
    )
    book.note_gpus([card, replace(card, uuid=GpuUuid("GPU-b"), memory=None)], at=5_000)
    book.note_gpus([replace(card, memory=None)], at=9_000)
    book.note_gpus([card], at=7_000)
    assert book.known_gpus() == (
        KnownGpu(GpuUuid("GPU-a"), "T4", Bytes(15 * GIB), 5_000, 9_000),
        KnownGpu(GpuUuid("GPU-b"), "T4", None, 5_000, 5_000),
    )


def test_a_cordon_keeps_its_reason_until_it_is_lifted(book: Book, path: Path) -> None:
    gpu = GpuUuid("GPU-a")
    book.cordon(gpu, reason="fan", at=1)
    book.cordon(gpu, reason="fan, again", at=2)
    with open_book(path, read_only=True) as view:
        assert view.cordons() == {gpu: "fan, again"}
    assert book.uncordon(gpu)
    assert not book.uncordon(gpu)
    assert book.cordons() == {}


def test_whoever_works_on_a_lease_is_named_in_it(book: Book, reserve: Reserve, me: ProcessHolder) -> None:
    lease = reserve(book)
    assert lease.worker == me
    assert book.advance(lease.id, LeaseState.HELD, at=2).worker is None
    assert book.advance(lease.id, LeaseState.RELEASING, at=3).worker == me
    assert os.getpid() == me.pid


def test_a_sound_book_has_nothing_to_complain_of(book: Book, reserve: Reserve) -> None:
    end(book, reserve(book))
    assert book.check() == ()

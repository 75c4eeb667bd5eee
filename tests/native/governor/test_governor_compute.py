"""Compute: what shares of one software GPU truly have of it, in virtual time, by its own oracle."""

from __future__ import annotations

import mmap
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.native.governor.computing import (
    FIGURES,
    MICROSECOND,
    MILLISECOND,
    SECOND,
    Card,
    Stopwatch,
    finished,
    points_off,
)
from tests.native.softgpu.machine import Box

from aliquot.model import Policy


@pytest.fixture
def card(tmp_path: Path) -> Iterator[Card]:
    box = Box(tmp_path / "state")
    yield Card(box, tmp_path, box.add_device(**FIGURES))
    box.close()


def busy_percent(card: Card, answers: list[dict[str, Any]]) -> float:
    return 100 * float(card.truth()["compute_ns"]) / float(max(answer["ended"] for answer in answers))


def charge_off(card: Card, answers: list[dict[str, Any]]) -> list[float]:
    """By share, in order: how many points of the time its charge is off what it truly had."""
    wall = max(answer["ended"] for answer in answers)
    return [
        100 * (card.charged(share) - answer["true_ns"]) / wall
        for share, answer in zip(card.shares, answers, strict=True)
    ]


@pytest.mark.parametrize(
    ("parts", "kernel"),
    [
        ((300, 700), "kernel=100000"),
        pytest.param((100, 900), "kernel=100000", marks=pytest.mark.slow),
        pytest.param((250, 250, 250, 250), "kernel=250000", marks=pytest.mark.slow),
    ],
)
def test_saturating_shares_have_their_parts_and_waste_little(
    card: Card, parts: tuple[int, ...], kernel: str
) -> None:
    answers = card.together(SECOND, *[(card.share(part), kernel) for part in parts])
    assert max(map(abs, points_off(answers, [part / 10 for part in parts]))) <= 1
    assert busy_percent(card, answers) >= 98
    assert max(map(abs, charge_off(card, answers))) <= 1


@pytest.mark.parametrize(
    "words",
    [
        "kernel=1000000",
        pytest.param("kernel=200000 spread=lognormal", marks=pytest.mark.slow),
        pytest.param("kernel=50000 spread=tenfold", marks=pytest.mark.slow),
        pytest.param("kernel=20000 spread=regime", marks=pytest.mark.slow),
        pytest.param("kernel=100000 streams=2", marks=pytest.mark.slow),
        pytest.param("kernel=100000 cooperative=1", marks=pytest.mark.slow),
        "kernel=50000 graph=10",
    ],
)
def test_whatever_it_launches_a_share_has_its_part(card: Card, words: str) -> None:
    answers = card.together(SECOND, (card.share(300), words), (card.share(700), "kernel=100000"))
    assert max(map(abs, points_off(answers, [30, 70]))) <= (1.5 if "lognormal" in words else 1)
    assert busy_percent(card, answers) >= 98
    assert max(map(abs, charge_off(card, answers))) <= 1


@pytest.mark.slow
def test_kernels_of_80_ms_take_no_more_over_ten_seconds(card: Card) -> None:
    answers = card.together(
        10 * SECOND, (card.share(300), "kernel=80000000"), (card.share(700), "kernel=500000")
    )
    assert max(map(abs, points_off(answers, [30, 70]))) <= 1
    assert max(map(abs, charge_off(card, answers))) <= 1


@pytest.mark.slow
def test_processes_of_one_share_have_its_part_together(card: Card) -> None:
    shared, other = card.share(400), card.share(600)
    answers = card.together(SECOND, *[(shared, "kernel=100000")] * 3, (other, "kernel=100000"))
    three = sum(answer["true_ns"] for answer in answers[:3])
    assert 100 * three / (three + answers[3]["true_ns"]) == pytest.approx(40, abs=1)


def test_alone_a_fair_share_has_the_whole_device(card: Card) -> None:
    answers = card.together(SECOND // 2, (card.share(100), "kernel=100000"))
    assert busy_percent(card, answers) >= 99


@pytest.mark.parametrize("part", [100, 300, 900])
def test_a_cap_holds_where_nobody_else_is(card: Card, part: int) -> None:
    answers = card.together(SECOND, (card.share(part, Policy.CAP), "kernel=100000"))
    assert busy_percent(card, answers) == pytest.approx(part / 10, abs=1)


def test_two_caps_leave_the_rest_idle(card: Card) -> None:
    shares = [(card.share(300, Policy.CAP), "kernel=100000"), (card.share(400, Policy.CAP), "kernel=100000")]
    answers = card.together(SECOND, *shares)
    for answer, part in zip(answers, (30, 40), strict=True):
        assert 100 * answer["true_ns"] / SECOND == pytest.approx(part, abs=1)


def test_without_the_page_a_fair_share_is_held_as_at_a_cap(card: Card) -> None:
    answers = card.together(SECOND // 2, (card.share(300, turns=False), "kernel=100000"))
    assert busy_percent(card, answers) == pytest.approx(30, abs=1.5)


def test_a_share_of_priority_leaves_the_others_their_floor(card: Card) -> None:
    high, low = card.share(300, Policy.PRIORITY), card.share(300)
    answers = card.together(SECOND, (high, "kernel=100000"), (low, "kernel=100000"))
    assert points_off(answers, [95, 5]) == pytest.approx([0, 0], abs=1)


@pytest.mark.slow
def test_time_that_one_does_not_use_goes_to_the_other_and_comes_back(card: Card) -> None:
    """The second comes after 300 ms: before, the first has everything; after, its part."""
    first, second = card.share(500), card.share(500)
    answers = card.together(
        SECOND, (first, "kernel=100000"), (second, f"kernel=100000 begin={300 * MILLISECOND}")
    )
    assert answers[0]["true_ns"] == pytest.approx(650 * MILLISECOND, abs=15 * MILLISECOND)
    assert answers[1]["true_ns"] == pytest.approx(350 * MILLISECOND, abs=15 * MILLISECOND)
    assert busy_percent(card, answers) >= 98


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("words", ["kernel=100000", "kernel=5000000"])
def test_nobody_waits_long_for_one_that_was_killed_or_stopped(
    card: Card, way: signal.Signals, words: str
) -> None:
    victim, other = card.share(500), card.share(500)
    holder = card.start(victim, 1000 * SECOND, *words.split(), place=1, of=2)
    neighbour = card.start(other, SECOND, "sync=1", "kernel=100000", place=2, of=2)
    deadline = time.monotonic() + 60
    while card.charged(victim) < 20 * MILLISECOND and time.monotonic() < deadline:
        time.sleep(0.001)
    holder.send_signal(way)
    answer = finished(neighbour)
    holder.send_signal(signal.SIGCONT)
    assert answer["longest_wait"] <= 25 * MILLISECOND
    assert answer["launches"] > 1000


def test_a_paused_share_waits_until_it_is_resumed(card: Card) -> None:
    share = card.share(500, paused=True)
    tenant = card.start(share, SECOND // 20, "kernel=100000", "report=1")
    assert tenant.stdout is not None
    assert tenant.stdout.readline()
    stat = Path(f"/proc/{tenant.pid}/stat")
    for _ in range(200):
        if stat.read_text().rpartition(")")[2].split()[0] == "S":
            break
        time.sleep(0.01)
    assert card.truth()["compute_ns"] == 0
    card.change(share, paused=False)
    assert finished(tenant)["launches"] > 100


def test_a_change_of_the_limits_reaches_a_program_that_runs(card: Card) -> None:
    share = card.share(900, Policy.CAP)
    tenant = card.start(share, 2 * SECOND, "kernel=100000")
    deadline = time.monotonic() + 60
    while card.charged(share) < 200 * MILLISECOND and time.monotonic() < deadline:
        time.sleep(0.001)
    card.change(share, compute=100)
    finished(tenant)
    assert card.truth()["compute_ns"] < 1.6 * SECOND


def test_a_fork_leaves_the_parent_its_turn_and_gives_the_child_none(card: Card) -> None:
    answers = card.together(
        SECOND // 2, (card.share(500), "kernel=100000 fork=50"), (card.share(500), "kernel=100000")
    )
    assert max(map(abs, points_off(answers, [50, 50]))) <= 2


def scribble(page: mmap.mmap, until: float, rng: random.Random) -> None:
    """Nonsense over everything but the head, of several kinds."""
    while time.monotonic() < until:
        at = rng.randrange(64, len(page) - 8) & ~7
        page[at : at + 8] = rng.choice((bytes(8), b"\xff" * 8, rng.randbytes(8)))
        if rng.random() < 0.01:
            page[64:72] = rng.randbytes(8)
        time.sleep(0.0002)


def test_nonsense_in_the_page_costs_order_and_nothing_else(card: Card) -> None:
    shares = [card.share(300), card.share(700)]
    tenants = [
        card.start(share, 3 * SECOND, "kernel=100000", "sync=4", place=place, of=2)
        for place, share in enumerate(shares, start=1)
    ]
    with card.page.open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        scribble(page, time.monotonic() + 1, random.Random(7))
    answers = [finished(tenant) for tenant in tenants]
    assert all(answer["longest_wait"] <= 1100 * MILLISECOND for answer in answers)
    assert all(answer["launches"] > 1000 for answer in answers)
    assert busy_percent(card, answers) > 80


@pytest.mark.slow
def test_a_page_of_zeros_or_ones_is_as_good_as_none(card: Card) -> None:
    for byte in (b"\0", b"\xff"):
        share = card.share(500)
        with card.page.open("r+b") as file:
            file.seek(64)
            file.write(byte * (card.page.stat().st_size - 64))
        answer = finished(card.start(share, (len(card.shares)) * SECOND // 2, "kernel=100000"))
        assert answer["launches"] > 1000 * len(card.shares)


def test_a_short_request_does_not_wait_for_the_end_of_a_long_kernel(card: Card) -> None:
    """After the first long one, whose length nobody knew. Without a governor it waits 2.4 ms."""
    request = f"kernel=500000 sync=1 think={20 * MILLISECOND}"
    answers = card.together(2 * SECOND, (card.share(300), request), (card.share(700), "kernel=80000000"))
    assert answers[0]["mean_wait"] <= 3 * MILLISECOND
    assert answers[0]["launches"] > 80


@pytest.mark.parametrize("part", [100, 300, 700])
def test_a_loop_of_launch_and_wait_has_its_part_and_waits_for_little(card: Card, part: int) -> None:
    answers = card.together(
        SECOND, (card.share(part), "kernel=100000 sync=1"), (card.share(1000 - part), "kernel=100000")
    )
    assert max(map(abs, points_off(answers, [part / 10, 100 - part / 10]))) <= 1
    assert answers[0]["p99_wait"] <= 1600 * MICROSECOND  # 0.1 ms of it the kernel
    assert busy_percent(card, answers) >= 93
    assert max(map(abs, charge_off(card, answers))) <= 1


@pytest.mark.slow
def test_who_launches_slower_than_the_device_works_leaves_it_busy(card: Card) -> None:
    answers = card.together(
        SECOND, (card.share(300), "kernel=5000 think=10000"), (card.share(700), "kernel=100000")
    )
    assert max(map(abs, points_off(answers, [30, 70]))) <= 2
    assert busy_percent(card, answers) >= 94
    assert max(map(abs, charge_off(card, answers))) <= 1


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_a_long_kernel_of_one_that_died_holds_nobody_up(card: Card, way: signal.Signals) -> None:
    moment = 300 * MILLISECOND
    victim = card.start(card.share(900), 1000 * SECOND, "kernel=80000000", place=1, of=3)
    loop = ("kernel=100000", "sync=20", f"after={moment}")
    neighbour = card.start(card.share(100), moment + SECOND // 5, *loop, place=2, of=3)
    watch = Stopwatch(card, moment, place=3, of=3)
    watch.next_stop()
    victim.send_signal(way)
    if way == signal.SIGKILL:
        victim.wait()
    watch.end()
    answer = finished(neighbour)
    victim.send_signal(signal.SIGCONT)
    assert answer["longest_wait"] <= 25 * MILLISECOND


def test_a_short_kernel_beside_itself_waits_microseconds_only(card: Card) -> None:
    answers = card.together(SECOND // 2, (card.share(500), "kernel=100000 sync=1"))
    assert answers[0]["mean_wait"] <= 110 * MICROSECOND

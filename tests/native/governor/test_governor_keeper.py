"""What governors make of their keeper: that it is there, what it calls processes, what it says is missing."""

from __future__ import annotations

import json
import mmap
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.native.governor.computing import FIGURES, MILLISECOND, SECOND, Card, finished
from tests.native.governor.shares import MakeShare, ShareOnDisk, told
from tests.native.governor.test_governor_compute import busy_percent, scribble
from tests.native.governor.test_governor_nvml import NVML, USE, VERSIONED
from tests.native.softgpu.machine import Box

from aliquot.enforcement import (
    Beats,
    Outside,
    Sitter,
    abi,
    lease_number,
    nonsense_of,
    process_number,
    process_numbers,
    read_page,
    repair,
    tell_outside,
)
from aliquot.enforcement.files import number
from aliquot.model import MIB, Bytes, Policy


@pytest.fixture
def card(tmp_path: Path) -> Iterator[Card]:
    box = Box(tmp_path / "state")
    yield Card(box, tmp_path, box.add_device(**FIGURES))
    box.close()


# ---- whether there is one ----


def _ago(seconds: float) -> int:
    return time.monotonic_ns() - int(seconds * 1e9)


@pytest.mark.parametrize(
    ("policy", "looked", "busy"),
    [
        (Policy.FAIR, None, 100),  # nobody is expected: the limits of an Aliquot without keepers
        (Policy.FAIR, 0, 100),
        (Policy.FAIR, 11, 30),
        (Policy.PRIORITY, 11, 30),
        (Policy.CAP, 0, 30),
    ],
)
def test_without_its_keeper_a_share_is_held_at_its_guarantee(
    card: Card, policy: Policy, looked: float | None, busy: int
) -> None:
    share = card.share(300, policy)
    if looked is not None:
        with Beats(share / "limits") as beats:
            beats.beat(_ago(looked), began=0)
    answers = card.together(SECOND // 2, (share, "kernel=100000"))
    assert busy_percent(card, answers) == pytest.approx(busy, abs=1.5)


@pytest.mark.slow
def test_a_keeper_that_comes_back_gives_idle_time_away_again(card: Card) -> None:
    """While its program runs, from one launch to the next."""
    share = card.share(100)
    with Beats(share / "limits") as beats:
        beats.beat(_ago(11), began=1)
        tenant = card.start(share, 2 * SECOND, "kernel=100000")
        deadline = time.monotonic() + 60
        while card.charged(share) < 50 * MILLISECOND and time.monotonic() < deadline:
            time.sleep(0.001)
        beats.beat(time.monotonic_ns(), began=1)
        finished(tenant)
    assert 0.3 * SECOND < card.truth()["compute_ns"] < 1.9 * SECOND, "neither all at a cap nor none"


# ---- whose seat it is ----


def test_a_process_sits_by_the_number_that_its_slot_tells(card: Card) -> None:
    share = card.share(300)
    tenant = card.start(share, SECOND // 2, "kernel=100000")
    finished(tenant)
    page = read_page(card.page)
    assert page is not None
    seat = abi.Turns.SEATS.offset
    assert number(page, seat, abi.Seat.SHARE) == lease_number(card.leases[share].id)
    assert number(page, seat, abi.Seat.OWNER) in (process_numbers(share / "ledger", device=0) or ())
    (slot,) = _slots_as_written(share)
    assert number(page, seat, abi.Seat.OWNER) == process_number(*slot)


def _slots_as_written(share: Path) -> list[tuple[int, int, int]]:
    content = (share / "ledger").read_bytes()
    bases = [abi.Ledger.SLOTS.offset + index * abi.Slot.RECORD_SIZE for index in range(abi.SLOTS_MAX)]
    fields = (abi.Slot.PID, abi.Slot.START_TIME, abi.Slot.PID_NAMESPACE)
    return [
        (number(content, base, fields[0]), number(content, base, fields[1]), number(content, base, fields[2]))
        for base in bases
        if number(content, base, abi.Slot.PID)
    ]


@pytest.mark.slow
def test_what_governors_leave_on_a_page_is_no_nonsense_to_a_keeper(card: Card) -> None:
    """At every moment of a quarter of a second of eight tenants that come and go."""
    shares = [card.share(100, Policy.PRIORITY if at % 3 == 0 else Policy.FAIR) for at in range(8)]
    tenants = [
        card.start(
            share,
            SECOND // 4,
            "kernel=50000",
            f"sync={4 + place}",
            f"begin={place * 15 * MILLISECOND}",
            place=place,
            of=8,
        )
        for place, share in enumerate(shares, start=1)
    ]
    looks = 0
    while any(tenant.poll() is None for tenant in tenants):
        page = read_page(card.page)
        assert page is not None
        assert nonsense_of(page, {}, now=None) == ()
        looks += 1
    assert looks > 100
    for tenant in tenants:
        finished(tenant)


def test_a_page_is_right_again_within_a_look_of_the_keeper(card: Card) -> None:
    """Scribbled over while tenants run; what the keeper repairs stays repaired, and they run on."""
    shares = [card.share(300), card.share(700)]
    tenants = [
        card.start(share, 3 * SECOND, "kernel=100000", "sync=4", place=place, of=2)
        for place, share in enumerate(shares, start=1)
    ]
    sitters = {
        lease_number(card.leases[share].id): Sitter(
            card.leases[share].id, process_numbers(share / "ledger", device=0)
        )
        for share in shares
    }
    with card.page.open("r+b") as file, mmap.mmap(file.fileno(), 0) as page:
        scribble(page, time.monotonic() + 0.5, random.Random(7))
    found: tuple[Any, ...] = nonsense_of(card.page.read_bytes(), sitters, now=None)
    assert found
    for one in found:
        repair(card.page, one)
    answers = [finished(tenant) for tenant in tenants]
    assert nonsense_of(card.page.read_bytes(), {}, now=None) == ()
    assert all(answer["longest_wait"] <= 1100 * MILLISECOND for answer in answers)
    assert all(answer["launches"] > 1000 for answer in answers)


# ---- what processes are called ----


def _say_outer(share: ShareOnDisk, outer: int, beyond: int = 0) -> None:
    (slot,) = [slot for slot in share.ledger().slots if slot.alive]
    tell_outside(share.ledger_path, Outside(slot.index, slot.start_time, outer, (Bytes(beyond),)))


def _asked(share: ShareOnDisk, script: str, outer: int, **environment: str) -> Any:
    """The tenant says when it holds a slot; then its keeper speaks, then it goes on."""
    tenant = share.start("check(cuda.cuInit(0)); say(0); input()\n" + script, **environment)
    assert tenant.stdout is not None
    assert tenant.stdout.readline()
    _say_outer(share, outer)
    out, errors = tenant.communicate("\n", timeout=30)
    assert (tenant.returncode, errors) == (0, "")
    return json.loads(out.splitlines()[-1])


OUTER = 1 << 20


def test_a_driver_that_calls_us_by_the_node_s_pids_is_understood(share: ShareOnDisk) -> None:
    seen = _asked(share, NVML + USE, OUTER, FAKE_KNOWS="1", FAKE_OUTER=str(OUTER))
    assert seen == [[0, 0, 0, 0, 0], [0, 80, 100, 0, 7], 2], "as where it calls us by our own"


def test_without_a_keeper_such_a_driver_does_not_know_us(share: ShareOnDisk) -> None:
    seen = share.run(NVML + USE, FAKE_KNOWS="1", FAKE_OUTER=str(OUTER))
    assert seen[1] == [3, 0, 0, 3, 0]


def test_its_samples_are_told_under_our_own_pids(share: ShareOnDisk) -> None:
    seen = _asked(
        share,
        NVML
        + VERSIONED
        + """
check(nvml.nvmlInit_v2()); begin()
count, rows = ctypes.c_uint(8), (ctypes.c_ulonglong * 64)()
check(nvml.nvmlDeviceGetProcessUtilization(handle(0), rows, ref(count), ctypes.c_ulonglong(0)))
uses = (Use * 8)()
asked = Uses(version(Uses), 8, 0, uses)
check(nvml.nvmlDeviceGetProcessesUtilizationInfo(handle(0), ref(asked)))
say([count.value, rows[0] & 0xffffffff == os.getpid(), asked.count, uses[0].pid == os.getpid(), uses[0].sm])
""",
        OUTER,
        FAKE_KNOWS="1",
        FAKE_OUTER=str(OUTER),
    )
    assert seen == [1, True, 1, True, 80]


# ---- what the driver has beyond what is charged ----

HOLD = """
begin()
for line in sys.stdin:
    verb, _, amount = line.strip().partition(" ")
    if verb == "take": say([alloc(int(amount) * MIB)[0], used() // MIB])
    if verb == "see": say([0, used() // MIB])
"""


@pytest.fixture
def held(share: ShareOnDisk) -> Iterator[Any]:
    tenant = share.start("import sys\n" + HOLD)

    def ask(line: str) -> Any:
        assert tenant.stdin is not None
        assert tenant.stdout is not None
        tenant.stdin.write(line + "\n")
        tenant.stdin.flush()
        return json.loads(tenant.stdout.readline())

    assert ask("see") == [0, 10]
    yield ask
    tenant.communicate(timeout=30)


def test_what_the_keeper_says_is_charged_once_and_given_back(share: ShareOnDisk, held: Any) -> None:
    """Of 100 MiB, 10 of them the context's."""
    for beyond, used in ((30, 40), (30, 40), (50, 60), (0, 10), (70, 80)):
        _say_outer(share, 4711, beyond * MIB)
        assert held("see") == [0, used]
        ledger = share.ledger()
        assert told(ledger.devices[0].used) == used * MIB
        assert ledger.slots[0].taken == (beyond * MIB,)
    assert held("take 21")[0] == 2
    assert held("take 20") == [0, 100]


def test_what_it_says_is_bounded_by_the_share_and_holds_back_no_free(share: ShareOnDisk, held: Any) -> None:
    _say_outer(share, 4711, 1 << 60)
    assert held("see") == [0, 100]
    assert held("take 1")[0] == 2
    _say_outer(share, 4711, 0)
    assert held("take 90") == [0, 100]


def test_what_was_said_of_another_process_is_not_charged(share: ShareOnDisk, held: Any) -> None:
    (slot,) = share.ledger().slots
    tell_outside(share.ledger_path, Outside(slot.index, slot.start_time + 1, 4711, (Bytes(50 * MIB),)))
    assert held("see") == [0, 10]


def test_what_a_killed_process_was_charged_so_ends_with_it(make_share: MakeShare) -> None:
    share = make_share()
    tenant = share.start("begin(); say(0); input(); say(used() // MIB); input()")
    assert tenant.stdout is not None
    assert tenant.stdin is not None
    tenant.stdout.readline()
    _say_outer(share, 4711, 50 * MIB)
    tenant.stdin.write("\n")
    tenant.stdin.flush()
    assert tenant.stdout.readline() == "60\n"
    tenant.kill()
    tenant.communicate()
    assert share.run("begin(); say([alloc(90 * MIB)[0], used() // MIB])") == [0, 100]
    assert told(share.ledger().devices[0].used) == 0

from dataclasses import replace

import pytest

from aliquot.cli.output.choices import Choice, chosen
from aliquot.cli.output.tables import table
from aliquot.cli.views.checks import check_lines, told
from aliquot.cli.views.explanations import explanation_document, explanation_lines, lease_lines
from aliquot.cli.views.gpu_detail import gpu_lines
from aliquot.cli.views.gpus import GpuRow
from aliquot.cli.views.lease_story import LeaseStory, story_document, story_lines
from aliquot.cli.views.leases import (
    LEASES,
    PAST_LEASES,
    LeaseRow,
    lease_rows,
    newest_first,
    one_line,
)
from aliquot.cli.views.plans import plan_document, plan_lines, refusal_of
from aliquot.cli.views.usage import gib_hours, gpu_hours, of_interest, usage_lines, usage_listing
from aliquot.model import (
    GIB,
    Alternative,
    Amount,
    Ask,
    Attestation,
    Bytes,
    Considered,
    ContainerHolder,
    Fit,
    Fraction,
    GpuUuid,
    Isolation,
    Lease,
    LeaseState,
    Ledger,
    LedgerDevice,
    LedgerSlot,
    Placed,
    Reason,
    Refused,
    Share,
    Snapshot,
    Thousandths,
    Unknown,
    Usage,
)
from aliquot.node import Check, Coverage, Explanation, LeaseEvent, Ungoverned, UsageRow

_ASK = Ask((Alternative(Amount(part=Fraction(3, 5))),))


@pytest.fixture
def refused(snapshot: Snapshot) -> Refused:
    gpu = snapshot.gpus[0]
    one = Considered(
        gpu=gpu.uuid,
        index=0,
        name=gpu.name,
        alternative=0,
        fit=Fit.SHORT,
        capacity=gpu.capacity,
        free_memory=Bytes(12 * GIB),
        free_compute=Thousandths(400),
        short_memory=Bytes(8 * GIB + 1),
        short_compute=Thousandths(200),
    )
    return Refused(Reason.NO_ROOM, (one,), could_ever_fit=True)


@pytest.fixture
def placed(snapshot: Snapshot) -> Placed:
    gpu = snapshot.gpus[0]
    share = Share(gpu.uuid, Bytes(10 * GIB), Thousandths(600))
    fits = Considered(gpu=gpu.uuid, index=0, name=gpu.name, alternative=0, fit=Fit.FITS)
    return Placed((share,), alternative=0, considered=(fits,))


def _story(row: LeaseRow, *, ledger: Ledger | None = None, usages: tuple[Usage, ...] = ()) -> LeaseStory:
    events = (LeaseEvent(1, row.lease.created_at, row.lease.id, "leased", "by alice"),)
    return LeaseStory(row=row, usages=usages, ledger=ledger, events=events)


def test_a_lease_shows_peak_beside_asked_and_that_compute_is_not_held(
    lease_list: list[LeaseRow], now: int
) -> None:
    row = lease_list[0]
    share = row.lease.shares[0]
    usage = Usage(
        row.lease.id,
        share.gpu,
        10**12,
        share.memory,
        250,
        peak_bytes=Bytes(3 * GIB),
        mean_bytes=2.5 * GIB,
        denied=4,
        busy_ns=1_260_000_000,
    )
    said = Attestation("0123456789abcdef", "0.1.0", memory=True, compute=False, limits_seen=0)
    ledger = Ledger(
        (LedgerDevice(Bytes(GIB), Bytes(3 * GIB), 1.0, 4),),
        (
            LedgerSlot(55, 1, 1, True, (Bytes(GIB),), attestation=said),
            LedgerSlot(66, 1, 1, False, (Bytes(GIB),)),
        ),
    )
    lines = story_lines(_story(row, ledger=ledger, usages=(usage,)), now=now)
    text = "\n".join(lines)
    numbers = next(line for line in lines if line.startswith("  gpu0"))
    assert numbers.split() == ["gpu0", "10GiB", "3GiB", "2.5GiB", "1GiB", "25%", "1.3s", "4"]
    assert "25% fair: guaranteed, idle time is given away" in text
    assert "pid 55  1GiB  governor 0.1.0 (0123456789abcdef) holds memory" in text
    assert "pid 66" not in text
    assert "leased  by alice" in text
    assert "\x1b" not in text


def test_who_went_round_the_governor_is_named(lease_list: list[LeaseRow], now: int) -> None:
    row = lease_list[0]
    escaped = Ungoverned(
        77, row.lease.shares[0].gpu, Bytes(GIB), "python x.py", "is not in the share's ledger"
    )
    story = replace(_story(row), ungoverned=(escaped,))
    text = "\n".join(story_lines(story, now=now))
    assert "not governed\n  pid 77  1GiB  python x.py  is not in the share's ledger" in text
    assert story_document(story)["ungoverned"] == [
        {
            "pid": 77,
            "gpu": row.lease.shares[0].gpu,
            "memoryBytes": GIB,
            "command": "python x.py",
            "why": "is not in the share's ledger",
        }
    ]
    asked = replace(story, ledger=Ledger(devices=(), slots=(), unknown=("cuOfTomorrow",)))
    assert "asked for in vain, unknown to this Aliquot: cuOfTomorrow" in story_lines(asked, now=now)
    told = replace(row, lease=replace(row.lease, unknown=Unknown.PASS))
    passing = story_lines(replace(asked, row=told), now=now)
    assert "passed through, unknown to this Aliquot: cuOfTomorrow" in passing
    assert any(line.split()[:1] == ["unknown"] for line in passing)
    unknown = replace(story, ungoverned=None)
    assert story_document(unknown)["ungoverned"] is None
    assert any("unknown" in line for line in story_lines(unknown, now=now) if line.startswith("not governed"))


def test_what_was_not_measured_is_a_dash_and_null(lease_list: list[LeaseRow], now: int) -> None:
    row = lease_list[1]
    share = row.lease.shares[0]
    usage = Usage(row.lease.id, share.gpu, 10**12, share.memory, 1000)
    story = _story(row, usages=(usage,))
    numbers = next(line for line in story_lines(story, now=now) if line.startswith("  gpu1"))
    assert numbers.split() == ["gpu1", "79.5GiB", "(whole)", "—", "—", "—", "100%", "—", "—"]
    document = story_document(story)
    assert document["usage"] == [
        {
            "gpu": share.gpu,
            "wallSeconds": 1000.0,
            "leasedBytes": share.memory,
            "peakBytes": None,
            "meanBytes": None,
            "deniedAllocations": None,
            "byteSeconds": usage.byte_seconds,
            "computeSecondsReserved": 1000.0,
            "busySeconds": None,
        }
    ]


def test_run_says_lease_gpu_size_and_isolation_on_one_line(lease_list: list[LeaseRow]) -> None:
    part, whole = map(one_line, lease_list)
    assert part == (
        "lease k3m9x (train) · 10GiB@25% · gpu0 10GiB 25% · memory advisory, compute advisory (fair)"
    )
    assert whole == "lease p7qrs · H100 · gpu1 whole · whole GPU"


def test_a_gpu_shows_its_leases_and_what_the_driver_does_not_tell(gpus: list[GpuRow]) -> None:
    first = gpu_lines(gpus[0])
    assert any(line.split()[:4] == ["k3m9x", "alice", "10GiB", "25%"] for line in first)
    amd = gpu_lines(gpus[2])
    assert "leases  none" in amd
    assert "processes  — (the driver does not tell)" in amd
    unknown = gpu_lines(replace(gpus[0], shares=None))
    assert "leases  — (the book cannot be read)" in unknown


def test_why_gives_the_verdict_the_numbers_the_holders_and_the_next_command(
    refused: Refused, snapshot: Snapshot, lease_list: list[LeaseRow]
) -> None:
    explanation = Explanation(
        ask=_ASK,
        placed=None,
        refused=refused,
        lines=("gpu0  H100  free 12GiB",),
        holders=tuple(row.lease for row in lease_list),
        nearest="40%",
        next=(("aliquot run --gpu 40% -- CMD", "fits now"),),
    )
    lines = explanation_lines(explanation, snapshot)
    assert lines[0] == "✗ No room for 60% on box now   [no-room]"
    assert lines[1] == "  gpu0  H100  free 12GiB"
    assert lines[2] == "held by"
    assert lines[3].startswith("  k3m9x  alice  gpu0 10GiB 25%  pid 1234567")
    assert lines[-1] == "  try   aliquot run --gpu 40% -- CMD  fits now"
    document = explanation_document(explanation, snapshot)
    assert document["fits"] is False
    assert document["considered"][0]["shortComputeThousandths"] == 200  # type: ignore[index]
    assert document["ask"]["spec"]["gpu"] == "60%"  # type: ignore[index]


def test_why_says_where_it_fits(placed: Placed, snapshot: Snapshot) -> None:
    explanation = Explanation(
        ask=_ASK, placed=placed, refused=None, lines=(), holders=(), nearest=None, next=()
    )
    (line,) = explanation_lines(explanation, snapshot)
    assert line.startswith("✓ 60% fits: gpu0 (NVIDIA H100 80GB HBM3)  10GiB memory, 60% compute")


def test_a_plan_says_what_a_size_means_and_where_it_goes(
    placed: Placed, refused: Refused, snapshot: Snapshot
) -> None:
    assert plan_lines(_ASK, placed, snapshot, isolation=Isolation.ADVISORY) == [
        "size       60%",
        "policy     fair",
        "isolation  advisory: the governor holds whoever does not go round it",
        "goes to    gpu0 (NVIDIA H100 80GB HBM3)  10GiB memory, 60% compute",
        "compute    guaranteed, idle time is given away",
    ]
    document = plan_document(_ASK, refused, snapshot, isolation=Isolation.ADVISORY)
    assert (document["fits"], document["shares"], document["isolation"]) == (False, [], None)
    error = refusal_of(_ASK, refused, node="box")
    assert error.reason is Reason.NO_ROOM
    # Rounded up: freeing what is printed must be enough.
    assert "short 8.1GiB, 20%" in error.facts[0]


def test_a_plan_tells_the_isolation_that_it_would_get_beside_the_asked(
    placed: Placed, refused: Refused, snapshot: Snapshot
) -> None:
    ask = replace(_ASK, isolation=Isolation.ADVISORY)
    line = plan_lines(ask, placed, snapshot, isolation=Isolation.SOFT)[2]
    assert line == "isolation  soft: the governor holds it (asked: at least advisory)"
    assert plan_document(ask, placed, snapshot, isolation=Isolation.SOFT)["isolation"] == "soft"
    whole = replace(placed, shares=(replace(placed.shares[0], whole=True),))
    line = plan_lines(_ASK, whole, snapshot, isolation=Isolation.FIRM)[2]
    assert line == "isolation  the whole GPU, for this lease alone"
    assert plan_lines(_ASK, refused, snapshot, isolation=Isolation.SOFT)[2] == "isolation  any"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "held while process 1234567 lives"),
        ({"holder": ContainerHolder("podman", None)}, "until its podman container is removed; a stopped one"),
        ({"holder": ContainerHolder("docker", None, release_on_stop=True)}, "docker container stops"),
        ({"state": LeaseState.RELEASING}, "releasing: no new work starts"),
        ({"state": LeaseState.ENDED, "end_why": "expired"}, ": expired"),
    ],
)
def test_why_of_a_lease_says_what_keeps_it(
    lease_list: list[LeaseRow], change: dict[str, object], words: str
) -> None:
    row = replace(lease_list[0], lease=replace(lease_list[0].lease, **change))  # type: ignore[arg-type]
    text = "\n".join(lease_lines(row, ()))
    assert words in text
    assert ("aliquot release k3m9x" in text) is row.lease.state.live


def test_a_failed_check_has_its_fix_and_an_unknown_one_is_no_failure() -> None:
    lines = check_lines(
        (
            Check("driver", None, "no card", "apt install x"),
            Check("book", True, "fine", "never shown"),
            Check("governor", False, "missing", "pip install aliquot"),
        )
    )
    assert lines == [
        "— driver    no card",
        "            fix  apt install x",
        "✓ book      fine",
        "✗ governor  missing",
        "            fix  pip install aliquot",
    ]


def test_no_gpu_is_one_fault_and_docker_is_started() -> None:
    nothing = Check("driver: no-gpu", None, "No GPU was found.", "aliquot softgpu create T4")
    none = Check("GPUs", False, "none", "aliquot softgpu create T4")
    broken = Check("driver: driver-broken", False, "The driver is broken.", "reboot")
    docker = Check("docker", None, "does not answer", "docker info")
    podman = Check("podman", None, "does not answer", "podman info")
    assert told([nothing, none, docker, podman]) == [
        Check("GPUs", False, "No GPU was found.", "aliquot softgpu create T4"),
        Check("docker", None, "does not answer", "sudo systemctl start docker"),
        podman,
    ]
    assert told([broken, none]) == [broken, none]


def test_a_long_check_is_broken_and_its_fix_is_not() -> None:
    fix = "sudo " + "x" * 100
    lines = check_lines((Check("docker", False, "it does not answer " * 8, fix),), width=80)
    assert lines[-1] == f"          fix  {fix}"
    assert len(lines) > 2
    assert all(len(line) <= 80 for line in lines[:-1])


def test_usage_names_its_first_column_after_what_it_sums_by() -> None:
    for by in ("lease", "user", "command"):
        first = usage_listing(by).columns[0]
        assert (first.name, first.title, first.document_key) == (by, by.upper(), "key")


def test_usage_by_lease_tells_whose_it_is(leases: tuple[Lease, ...], now: int) -> None:
    lines = usage_lines([_sums("k3m9x"), _sums("gone1")], leases)
    listing = usage_listing("lease")
    assert [(item["name"], item["user"]) for item in map(listing.item, lines)] == [
        ("train", "alice"),
        (None, None),
    ]
    for label in ("user=alice", "name=train", "lease=train", "lease=k3m9x", "key=k3m9x"):
        assert chosen(listing, lines, Choice(labels=(label,)), now=now) == lines[:1]
    by_user = usage_lines([_sums("alice"), _sums("bob")], ())
    assert chosen(usage_listing("user"), by_user, Choice(labels=("user=bob",)), now=now) == by_user[1:]


def _sums(key: str) -> UsageRow:
    return UsageRow(key, 1, 10**12, GIB * 10**12, 10**12, None, None, None, 0)


def test_usage_shows_the_cards_that_are_here_or_were_leased() -> None:
    def card(uuid: str, leased: int) -> Coverage:
        return Coverage(GpuUuid(uuid), "T4", 10**12, None, None, 10**15, leased)

    here, gone, gone_but_leased = card("GPU-0", 0), card("GPU-1", 0), card("GPU-2", 5)
    assert of_interest([here, gone, gone_but_leased], here={"GPU-0"}) == [here, gone_but_leased]


def test_leases_of_the_past_show_when_and_why_they_ended_newest_first(
    snapshot: Snapshot, leases: tuple[Lease, ...], now: int
) -> None:
    first, second = (
        replace(lease, state=LeaseState.ENDED, ended_at=now - ago * 10**9, end_why="expired")
        for lease, ago in zip(leases, (5, 50), strict=True)
    )
    assert newest_first([second, first], by_end=True) == [first, second]
    assert newest_first([first, second], by_end=False) == [second, first]
    for width in (80, 200):
        header, line, _ = table(PAST_LEASES, lease_rows([first, second], snapshot), now=now, width=width)
        assert len(header) <= width
        assert {"USER", "ENDED", "WHY"} <= set(header.split())
        assert "EXPIRES" not in header
        assert line.split()[-2:] == ["5s", "expired"]
    assert set(PAST_LEASES.item(lease_rows([first], snapshot)[0])) == set(
        LEASES.item(lease_rows([first], snapshot)[0])
    )


def test_hours_of_the_unknown_are_unknown() -> None:
    assert gib_hours(None) is None
    assert gpu_hours(None) is None
    assert gib_hours(3600 * GIB) == 1

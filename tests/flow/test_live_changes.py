"""A share changes under its running program: size, policy, pause; and the books count each stretch."""

import json
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait

from tests.flow.box import Box

from aliquot.enforcement.abi import Limits, LimitsDevice

GIB = 1 << 30


def shown(box: Box, lease: str) -> dict:  # type: ignore[type-arg]
    found: dict = json.loads(box.aliquot("show", lease, "-o", "json").stdout)  # type: ignore[type-arg]
    return found


def test_a_running_program_grows_and_shrinks_and_is_never_cut(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("2GiB") as tenant:
        (lease,) = box.items("leases")
        assert tenant("take", 3 * GIB)["result"] == 2
        assert box.aliquot("resize", lease["id"], "4GiB").returncode == 0
        assert tenant("see")["total"] == 4 * GIB
        assert tenant("take", 3 * GIB)["result"] == 0
        # Below its use: it keeps what it has, gets no more, and nobody else gets it meanwhile.
        assert box.aliquot("resize", lease["id"], "1GiB@10%").returncode == 0
        assert tenant("see")["total"] == GIB
        assert tenant("take", 1 << 20)["result"] == 2
        refused = box.aliquot("lease", "--gpu", "13GiB@10%")
        assert refused.returncode == 4, refused.stderr
        # Too much: the numbers, and nothing changed.
        grown = box.aliquot("resize", lease["id"], "15GiB")
        assert grown.returncode in (4, 5)
        assert "GiB" in grown.stderr
        (now,) = box.items("leases")
        assert (now["size"], now["memoryBytes"]) == ("1GiB@10%", GIB)
        story = [event["what"] for event in shown(box, lease["id"])["story"]]
    assert story == ["preparing", "held", "resized", "resized"]
    (usage,) = shown(box, lease["id"])["usage"]
    # Three stretches of 2, 4 and 1 GiB: neither all of the last nor all of the largest.
    assert GIB * usage["wallSeconds"] < usage["byteSeconds"] < 4 * GIB * usage["wallSeconds"]


def test_what_a_lease_uses_beyond_its_share_is_not_lost_to_itself(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("4GiB@10%") as tenant:
        (lease,) = box.items("leases")
        assert tenant("take", 3 * GIB)["result"] == 0
        assert box.aliquot("resize", lease["id"], "1GiB@10%").returncode == 0
        refused = box.aliquot("lease", "--gpu", "13GiB@10%")
        assert "programs in no lease or beyond theirs hold" in " ".join(refused.stderr.split())
        grown = box.aliquot("resize", lease["id"], "13GiB@10%")
        assert grown.returncode == 0, grown.stderr


def test_a_pause_is_said_and_survives_another_command(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB") as tenant:
        (lease,) = box.items("leases")
        assert box.aliquot("pause", lease["id"]).returncode == 0
        assert "its launches wait until `aliquot resume" in box.aliquot("show", lease["id"]).stdout
        assert shown(box, lease["id"])["pausedAt"] is not None
        assert " paused " in box.aliquot("leases").stdout
        assert [one["state"] for one in box.items("leases")] == ["held"]
        assert box.aliquot("pause", lease["id"]).returncode == 0  # again is no fault
        with ThreadPoolExecutor(1) as beside:
            sums = beside.submit(tenant, "add")
            assert not wait([sums], timeout=0.5).done, "its launch waits"
            assert box.aliquot("resume", lease["id"]).returncode == 0
            assert sums.result()["right"]
        assert shown(box, lease["id"])["pausedAt"] is None


def test_what_a_kill_left_between_is_mended_by_the_next_command(gpu_box: Box) -> None:
    """Killed after the limits were written and before the commit: the book is right."""
    box = gpu_box
    lease = box.aliquot("lease", "--gpu", "2GiB", "-o", "name").stdout.strip()
    limits = box.runtime / "shares" / lease / "limits"
    before = limits.read_bytes()
    assert box.aliquot("resize", lease, "3GiB", "--policy", "cap").returncode == 0
    grown = limits.read_bytes()
    assert grown != before
    with sqlite3.connect(box.state / "book.sqlite") as book:  # as if the commit had not been
        book.execute("UPDATE share SET memory = ?", (2 * GIB,))
        book.execute("UPDATE lease SET policy = 'fair'")
    box.aliquot("leases")
    mended = limits.read_bytes()
    memory = slice(64 + 48, 64 + 56)
    assert int.from_bytes(mended[memory], "little") == 2 * GIB
    assert int.from_bytes(grown[memory], "little") == 3 * GIB
    assert box.aliquot("extend", lease, "--for", "1h").returncode == 0
    assert box.items("leases")[0]["expiresAt"] is not None
    assert box.aliquot("release", lease).returncode == 0


def test_what_cannot_change_says_so(gpu_box: Box) -> None:
    box = gpu_box
    lease = box.aliquot("lease", "--gpu", "2GiB", "-o", "name").stdout.strip()
    for words, code in ((["2x1GiB"], 2), (["T4"], 2), ([], 2), (["1KiB"], 5)):
        assert box.aliquot("resize", lease, *words).returncode == code, words
    assert box.aliquot("release", lease).returncode == 0
    assert box.aliquot("pause", lease).returncode == 3


def test_a_change_that_cannot_reach_its_programs_is_refused_and_gives_nothing_away(gpu_box: Box) -> None:
    """They have the limits mapped: what the book took from them, they would still use."""
    box = gpu_box
    with box.tenant("8GiB@20%") as tenant:
        (lease,) = box.items("leases")
        (box.runtime / "shares" / lease["id"] / "limits").unlink()
        for words in (
            ["resize", lease["id"], "1GiB"],
            ["resize", lease["id"], "9GiB"],
            ["pause", lease["id"]],
        ):
            done = box.aliquot(*words)
            assert done.returncode == 1, words
            assert "its programs cannot be told; nothing was changed" in done.stderr
        assert tenant("see")["total"] == 8 * GIB
        assert tenant("add")["right"]
        (now,) = box.items("leases")
        assert (now["size"], now["memoryBytes"]) == ("8GiB@20%", 8 * GIB)
        assert shown(box, lease["id"])["pausedAt"] is None
        assert box.aliquot("lease", "--gpu", "8GiB@20%").returncode == 4
        assert box.aliquot("release", "--force", lease["id"]).returncode == 0


def test_a_lease_of_two_gpus_changes_on_both_under_its_program(box: Box) -> None:
    assert box.aliquot("softgpu", "create", "2xT4").returncode == 0
    with box.tenant("2x2GiB@20%") as tenant:
        (lease,) = box.items("leases")
        assert tenant("see")["totals"] == [2 * GIB, 2 * GIB]
        assert box.aliquot("resize", lease["id"], "2x4GiB@30%").returncode == 0
        assert tenant("see")["totals"] == [4 * GIB, 4 * GIB]
        # All or none: one GPU has no room for it.
        beside = box.aliquot("lease", "--gpu", "9GiB@10%", "-o", "name").stdout.strip()
        refused = box.aliquot("resize", lease["id"], "2x8GiB@30%")
        assert refused.returncode == 4, refused.stderr
        assert tenant("see")["totals"] == [4 * GIB, 4 * GIB]
        assert box.aliquot("pause", lease["id"]).returncode == 0
        with ThreadPoolExecutor(1) as waiting:
            sums = waiting.submit(tenant, "add")
            assert not wait([sums], timeout=0.5).done, "its launch waits"
            assert box.aliquot("resume", lease["id"]).returncode == 0
            assert sums.result()["right"]
        assert [share["memoryBytes"] for share in box.items("leases")[0]["shares"]] == [4 * GIB, 4 * GIB]
    assert box.aliquot("release", beside).returncode == 0
    assert box.aliquot("softgpu", "remove", "all").returncode == 0


def test_changes_at_once_leave_one_of_them_whole(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB@10%") as tenant:
        (lease,) = box.items("leases")
        sizes = [f"{gib}GiB@{10 * gib}%" for gib in (1, 2, 3, 4)]
        with ThreadPoolExecutor(8) as several:
            done = list(several.map(lambda size: box.aliquot("resize", lease["id"], size), 2 * sizes))
        assert [one.returncode for one in done] == [0] * 8, [one.stderr for one in done]
        (now,) = box.items("leases")
        assert now["size"] in sizes
        gib = sizes.index(now["size"]) + 1
        (share,) = now["shares"]
        assert (share["memoryBytes"], share["computeThousandths"]) == (gib * GIB, 100 * gib)
        assert tenant("see")["total"] == gib * GIB
        assert len(shown(box, lease["id"])["story"]) >= 3


def test_a_paused_program_that_waits_can_be_ended_with_its_lease(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB") as tenant, ThreadPoolExecutor(1) as waiting:
        (lease,) = box.items("leases")
        assert tenant("add")["right"]
        assert box.aliquot("pause", lease["id"]).returncode == 0
        sums = waiting.submit(tenant, "add")
        assert not wait([sums], timeout=0.2).done
        assert box.aliquot("release", lease["id"]).returncode == 1, "it is in use"
        assert box.aliquot("release", "--force", lease["id"]).returncode == 0
        assert tenant.process.wait(timeout=20) == 128 + signal.SIGTERM
        assert isinstance(sums.exception(timeout=20), AssertionError), "the program ended in its call"
    assert box.items("leases") == []
    assert box.aliquot("resize", lease["id"], "2GiB").returncode == 3


def test_who_outlives_the_lease_unseen_reads_that_there_is_nothing_more(gpu_box: Box) -> None:
    """The limits stay mapped where the folder is gone: they say 0 by then."""
    box = gpu_box
    lease = box.aliquot("lease", "--gpu", "2GiB", "-o", "name").stdout.strip()
    at = Limits.DEVICES.offset + LimitsDevice.MEMORY.offset
    with (box.runtime / "shares" / lease / "limits").open("rb", buffering=0) as limits:
        limits.seek(at)
        assert int.from_bytes(limits.read(8), "little") == 2 * GIB
        assert box.aliquot("release", lease).returncode == 0
        limits.seek(at)
        assert int.from_bytes(limits.read(8), "little") == 0

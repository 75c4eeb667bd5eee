"""A share changes under its running program: size, policy, pause; and the books count each stretch."""

import json
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


def test_a_pause_is_said_and_survives_another_command(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("1GiB") as tenant:
        (lease,) = box.items("leases")
        assert box.aliquot("pause", lease["id"]).returncode == 0
        assert "its launches wait until `aliquot resume" in box.aliquot("show", lease["id"]).stdout
        assert shown(box, lease["id"])["pausedAt"] is not None
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

"""The story of one share, from the ask to the books after its end."""

import json
import os
import signal

from tests.flow.box import Box

GIB = 1 << 30
MIB = 1 << 20
OUT_OF_MEMORY = 2


def test_one_share(gpu_box: Box) -> None:
    box = gpu_box

    # There is one GPU, found in any shell, and nobody is on it.
    (card,) = box.items("gpus")
    assert card["name"] == "Tesla T4 (software)"
    assert box.items("leases") == []

    # A size is asked for; where it would go is said before anything is taken.
    assert box.aliquot("plan", "4GiB").returncode == 0

    with box.tenant("4GiB") as tenant:
        # It is held by the program itself, in the book, and called by how strongly it is held.
        (lease,) = box.items("leases")
        assert lease["state"] == "held"
        assert lease["isolation"] == "advisory"
        assert lease["size"] == "4GiB"

        # The share is the whole device, whomever the program asks.
        seen = tenant("see")
        assert seen["devices"] == seen["nvml"]["devices"] == 1
        assert seen["total"] == seen["device_total"] == seen["nvml"]["total"] == 4 * GIB
        assert seen["free"] == seen["nvml"]["free"]

        # Its kernels run, and their results are right; their code takes of the share too.
        assert tenant("add")["right"]
        free = tenant("see")["free"]
        assert 0 < seen["free"] - free <= 16 * MIB
        assert tenant("add")["right"]

        # It may take what is free, and not a byte more: the driver's own out-of-memory.
        free = tenant("see")["free"]
        assert tenant("take", free - MIB) == {"result": 0, "pointer": True}
        assert tenant("take", 2 * MIB) == {"result": OUT_OF_MEMORY, "pointer": False}
        assert tenant("see")["free"] == MIB

        # A child process is in the same share, and finds it full (its context alone is too much).
        assert tenant("fork")["code"] != 0

        # A second share beside it is placed on what is left; one that does not fit is refused
        # with the reason, the numbers, the holder, and what would fit.
        assert box.aliquot("plan", "8GiB").returncode == 0
        refused = box.aliquot("run", "--gpu", "14GiB", "--", "true")
        assert refused.returncode == 4
        assert "[no-room]" in refused.stderr
        assert lease["id"] in refused.stderr
        assert "aliquot run --gpu" in refused.stderr

        # SIGKILL of the program: its memory is free at once, its lease is over.
        os.kill(tenant.pid, signal.SIGKILL)
        assert tenant.process.wait(timeout=20) == 128 + signal.SIGKILL

    assert box.items("leases") == []
    assert box.share_folders() == []
    (card,) = box.items("gpus")
    assert card["usedMemoryBytes"] == 0

    # What it used is in the books: the peak, and the allocation that was denied.
    (ended,) = box.items("leases", "--ended")
    story = box.aliquot("show", ended["id"])
    assert story.returncode == 0
    assert "4GiB" in story.stdout
    (row,) = box.items("usage", "--by", "lease")
    assert row["deniedAllocations"] >= 1
    assert 4 * GIB - 2 * MIB <= row["peakBytes"] <= 4 * GIB
    # So is the time of the card that its kernels took, beside what was reserved for it; the last one's
    # is not, for the program was killed before it launched or waited again.
    (used,) = json.loads(box.aliquot("show", ended["id"], "-o", "json").stdout)["usage"]
    assert 0 < used["busySeconds"] == row["busySeconds"] < used["wallSeconds"]
    assert row["computeSecondsReserved"] == used["computeSecondsReserved"] > 0

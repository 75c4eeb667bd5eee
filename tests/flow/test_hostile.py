"""What a tenant does to the files that it shares with others, while they run."""

import os
from collections import Counter

import pytest
from tests.flow.box import Box

GIB = 1 << 30
SLOTS = 256

MANY = """
import ctypes, os
from collections import Counter
cuda = ctypes.CDLL("libcuda.so.1")
told_here, told = os.pipe()
waits, go = os.pipe()
for _ in range(300):
    if os.fork() == 0:
        os.close(go)
        context, place = ctypes.c_void_p(), ctypes.c_uint64()
        result = (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
                  or cuda.cuCtxSetCurrent(context)
                  or cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(1 << 20)))
        os.write(told, str(result).rjust(4).encode())
        os.read(waits, 1)
        os._exit(0)
results = b""
while len(results) < 1200:
    results += os.read(told_here, 1200)
print(*(int(results[at:at + 4]) for at in range(0, 1200, 4)), flush=True)
os.close(go)
for _ in range(300):
    os.wait()
"""


def test_who_cuts_the_page_of_turns_short_ends_nobody(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("2GiB") as one, box.tenant("2GiB") as other:
        assert one("add")["right"]
        assert other("add")["right"]
        (page,) = (box.runtime / "turns").iterdir()
        whole = page.stat().st_size
        os.truncate(page, 0)
        for tenant in (one, other, one):
            assert tenant("add")["right"]
            assert tenant("take", 3 * GIB)["result"] == 2, "and its limits hold"
        # A share that begins now finds the page made whole again.
        with box.tenant("2GiB") as late:
            assert page.stat().st_size == whole
            assert late("add")["right"]
            assert one("add")["right"]


@pytest.mark.slow
def test_who_cuts_its_own_ledger_short_ends_itself_alone(gpu_box: Box) -> None:
    box = gpu_box
    with box.tenant("2GiB") as tenant, box.tenant("2GiB") as neighbour:
        mine = next(lease for lease in box.items("leases") if lease["holderDetail"]["pid"] == tenant.pid)
        os.truncate(box.runtime / "shares" / mine["id"] / "ledger", 0)
        assert neighbour("add")["right"]
        for words in (["leases"], ["show", mine["id"]], ["usage"], ["resize", mine["id"], "3GiB"]):
            assert box.aliquot(*words).returncode == 0, words
        assert neighbour("add")["right"]
        assert box.aliquot("release", "--force", mine["id"]).returncode == 0
    assert box.items("leases") == []


def test_more_processes_than_a_share_has_places_for_never_pass_its_limit(gpu_box: Box) -> None:
    """Those beyond get an error, and all places are free when they have gone."""
    box = gpu_box
    done = box.aliquot("run", "-q", "--gpu", "2GiB", "--", "python3", "-c", MANY)
    assert done.returncode == 0, done.stderr
    results = Counter(map(int, done.stdout.split()))
    context_and_memory = 106 * (1 << 20) + (1 << 20)
    assert results.total() == 300
    assert 0 < results[0] <= 2 * GIB // context_and_memory
    assert results[2] <= SLOTS - results[0]
    assert results.total() - results[0] - results[2] >= 300 - SLOTS, "no place: it fails closed"
    (card,) = box.items("gpus")
    assert card["usedMemoryBytes"] == 0
    assert box.share_folders() == []

"""Memory is held: every way to take it is charged, every way to give it back is credited."""

import pytest
from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk, told

from aliquot.model import MIB


def test_a_program_sees_its_share_as_the_whole_device(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
total = ctypes.c_size_t()
check(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0))
count = ctypes.c_int()
check(cuda.cuDeviceGetCount(ctypes.byref(count)))
say([count.value, total.value // MIB, [n // MIB for n in info()]])
"""
    )
    assert seen == [1, 100, [90, 100]]


def test_over_the_limit_is_out_of_memory_and_nothing_else_happens(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
first = alloc(60 * MIB)
say([first[0], alloc(31 * MIB), alloc(30 * MIB)[0], alloc(1)[0], info()[0]])
"""
    )
    assert seen == [0, [2, 0x77], 0, 2, 0]
    assert share.ledger().devices[0].denied == 2
    assert share.ledger().devices[0].peak == 100 * MIB
    assert share.most_really_used() == 90 * MIB


ALLOCATIONS = {
    "linear": ("cuda.cuMemAlloc_v2(ref(p), size(8 * MIB))", "cuda.cuMemFree_v2(p)", 8),
    "managed": ("cuda.cuMemAllocManaged(ref(p), size(8 * MIB), 1)", "cuda.cuMemFree_v2(p)", 8),
    "pitched": (
        "cuda.cuMemAllocPitch_v2(ref(p), ref(ctypes.c_size_t()), size(1000), size(4096), 4)",
        "cuda.cuMemFree_v2(p)",
        4,
    ),
    "2D array": (
        "cuda.cuArrayCreate_v2(ref(p), (ctypes.c_uint64 * 3)(1024, 1024, 0x20 | 2 << 32))",
        "cuda.cuArrayDestroy(p)",
        8,
    ),
    "3D array": (
        "cuda.cuArray3DCreate_v2(ref(p), (ctypes.c_uint64 * 5)(1024, 1024, 2, 0x20 | 1 << 32, 0))",
        "cuda.cuArrayDestroy(p)",
        8,
    ),
    "sparse array": (
        "cuda.cuArray3DCreate_v2(ref(p), (ctypes.c_uint64 * 5)(1024, 1024, 2, 0x20 | 1 << 32, 0x40))",
        "cuda.cuArrayDestroy(p)",
        0,
    ),
    "handle": ("cuda.cuMemCreate(ref(p), size(8 * MIB), on_device, size(0))", "cuda.cuMemRelease(p)", 8),
    "host handle": ("cuda.cuMemCreate(ref(p), size(8 * MIB), on_host, size(0))", "cuda.cuMemRelease(p)", 0),
    "stream-ordered": (
        "cuda.cuMemAllocAsync(ref(p), size(32 * MIB), None)",
        "cuda.cuMemFreeAsync(p, None)",
        32,
    ),
    "stream-ordered, per thread": (
        "cuda.cuMemAllocAsync_ptsz(ref(p), size(32 * MIB), None)",
        "cuda.cuMemFreeAsync_ptsz(p, None)",
        32,
    ),
    "stream-ordered, freed at once": (
        "cuda.cuMemAllocAsync(ref(p), size(32 * MIB), None)",
        "cuda.cuMemFree_v2(p)",
        32,
    ),
    "pool": (
        "cuda.cuMemAllocFromPoolAsync(ref(p), size(32 * MIB), pool(), None)",
        "cuda.cuMemFreeAsync(p, None)",
        32,
    ),
    "context": ("cuda.cuCtxCreate_v2(ref(p), 0, 0)", "cuda.cuCtxDestroy_v2(p)", 10),
    "newest context": ("cuda.cuCtxCreate_v4(ref(p), None, 0, 0)", "cuda.cuCtxDestroy_v2(p)", 10),
}


@pytest.mark.parametrize("way", ALLOCATIONS)
def test_each_way_to_allocate_is_charged_and_credited(share: ShareOnDisk, way: str) -> None:
    take, give, size = ALLOCATIONS[way]
    before, during, after = share.run(
        f"begin()\na = used()\ncheck({take})\nb = used()\ncheck({give})\nsay([a, b, used()])"
    )
    assert [(during - before) // MIB, after - before] == [size, 0]
    assert share.really_used() == 0


@pytest.mark.parametrize("way", [way for way, (_, _, size) in ALLOCATIONS.items() if size > 0])
def test_each_way_is_refused_at_the_limit_without_touching_the_result(share: ShareOnDisk, way: str) -> None:
    take = ALLOCATIONS[way][0]
    result, untouched, charged = share.run(
        f"begin()\ncheck(alloc(89 * MIB)[0])\nr = {take}\nsay([r, p.value, used() // MIB])"
    )
    assert (result, untouched, charged) == (2, 0x77, 99)
    assert told(share.ledger().devices[0].denied) >= 1


@pytest.mark.parametrize("way", ALLOCATIONS)
def test_a_driver_that_fails_leaves_no_charge(share: ShareOnDisk, way: str) -> None:
    """Fails the n-th call that hands something out: the first is the primary context."""
    take = ALLOCATIONS[way][0]
    result, before, after = share.run(
        f"begin()\na = used()\nr = {take}\nsay([r, a, used()])", FAKE_FAIL_AT="3"
    )
    assert (result, after) == (999, before)


def test_an_unknown_free_is_the_driver_s_to_answer_and_a_double_free_credits_nothing(
    share: ShareOnDisk,
) -> None:
    seen = share.run(
        """
begin()
r, p = alloc(10 * MIB)
say([free(0xdead000), free(0), free(p), free(p), used() // MIB])
"""
    )
    assert seen == [1, 0, 0, 1, 10]


def test_thousands_of_allocations_freed_in_any_order_add_up_at_every_moment(share: ShareOnDisk) -> None:
    """The book grows twice and closes the gaps that frees leave in it."""
    assert (
        share.run(
            """
import random
chance, held, asked = random.Random(3), {}, 0
begin()
for round in range(9000):
    if held and (chance.random() < 0.4 or round > 6500):
        pointer = chance.choice(list(held)) if round % 50 == 0 else next(iter(held))
        asked -= held.pop(pointer)
        check(free(pointer))
    else:
        size_ = chance.randrange(1, 20000)
        result, pointer = alloc(size_)
        check(result)
        held[pointer] = size_
        asked += size_
    if round % 100 == 0:
        assert used() == 10 * MIB + asked, round
for pointer in list(held):
    check(free(pointer))
say(used() // MIB)
"""
        )
        == 10
    )


def test_sizes_beyond_reason_are_out_of_memory(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
say([alloc((1 << 64) - 1)[0], alloc(1 << 63)[0],
     cuda.cuArray3DCreate_v2(ref(p), (ctypes.c_uint64 * 5)(1 << 40, 1 << 40, 9, 0x20 | 4 << 32, 0)),
     used() // MIB])
"""
    )
    assert seen == [2, 2, 2, 10]


def test_null_out_pointers_of_memory_info_are_tolerated(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
left = ctypes.c_size_t()
say([cuda.cuMemGetInfo_v2(None, None), cuda.cuMemGetInfo_v2(ctypes.byref(left), None), left.value // MIB])
"""
    )
    assert seen == [0, 0, 90]


def test_devices_are_charged_apart(make_share: MakeShare) -> None:
    share = make_share(memory={UUIDS[2]: 50 * MIB, UUIDS[0]: 80 * MIB})
    seen = share.run(
        """
begin(0); check(alloc(20 * MIB)[0]); a = info()
begin(1); check(alloc(60 * MIB)[0]); b = info()
say([[n // MIB for n in a], [n // MIB for n in b]])
"""
    )
    assert seen == [[20, 50], [10, 80]]
    assert (share.most_really_used(2), share.most_really_used(0)) == (20 * MIB, 60 * MIB)
    assert [told(device.peak) // MIB for device in share.ledger().devices] == [30, 70]


def test_the_charge_follows_the_device_whatever_number_the_program_gives_it(make_share: MakeShare) -> None:
    share = make_share(memory={UUIDS[2]: 50 * MIB, UUIDS[0]: 80 * MIB})
    script = "begin(0); check(alloc(20 * MIB)[0]); say(info()[1] // MIB)"
    assert share.run(script, CUDA_VISIBLE_DEVICES="1,0") == 80
    assert [told(device.peak) // MIB for device in share.ledger().devices] == [0, 30]
    assert share.run(script, CUDA_VISIBLE_DEVICES=UUIDS[2]) == 50
    assert [told(device.peak) // MIB for device in share.ledger().devices] == [30, 30]


def test_a_whole_device_in_a_governed_lease_is_bounded_by_the_card_alone(make_share: MakeShare) -> None:
    share = make_share(memory={UUIDS[0]: None})
    assert share.run("begin()\nsay([n >> 30 for n in info()])") == [63, 64]

"""What owns memory: contexts, handles and their mappings, pools."""

from tests.native.governor.shares import UUIDS, MakeShare, ShareOnDisk

from aliquot.model import MIB


def test_a_failed_context_leaves_no_charge(share: ShareOnDisk) -> None:
    assert share.run("check(cuda.cuInit(0))\nsay(retain())", FAKE_FAIL_AT="2") == 999
    assert share.ledger().devices[0].peak == 10 * MIB
    assert not any(slot.alive for slot in share.ledger().slots)


def test_a_context_that_does_not_fit_is_out_of_memory(make_share: MakeShare) -> None:
    share = make_share(memory={UUIDS[0]: 9 * MIB})
    assert share.run("check(cuda.cuInit(0))\nsay(retain())") == 2


def test_the_primary_context_is_charged_once_however_often_it_is_retained(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin(); check(retain()); check(retain())
seen = [used() // MIB]
for _ in range(2):
    check(cuda.cuDevicePrimaryCtxRelease_v2(0))
    seen.append(used() // MIB)
check(cuda.cuDevicePrimaryCtxRelease_v2(0))
from pathlib import Path
say(seen)
"""
    )
    assert seen == [10, 10, 10]
    assert share.ledger().devices[0].peak == 10 * MIB


def test_the_end_of_a_context_gives_back_what_it_owned(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
other = ctypes.c_void_p()
check(cuda.cuCtxCreate_v2(ctypes.byref(other), 0, 0))
check(alloc(30 * MIB)[0])
a = used() // MIB
check(cuda.cuCtxDestroy_v2(other))
b = used() // MIB
check(alloc(40 * MIB)[0])
c = used() // MIB
check(cuda.cuDevicePrimaryCtxReset_v2(0))
say([a, b, c, used() // MIB])
"""
    )
    assert seen == [50, 10, 50, 10]
    assert share.really_used() == 0


def test_a_context_made_behind_our_back_is_charged_when_first_seen(share: ShareOnDisk) -> None:
    seen = share.run(
        """
check(cuda.cuInit(0))
behind = ctypes.CDLL(os.environ["SHARE"] + "/driver/libcuda.so.1")  # as an export table would
context = ctypes.c_void_p()
check(behind.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(alloc(MIB)[0])
say(used() // MIB)
"""
    )
    assert seen == 11


def test_a_mapping_keeps_the_bytes_of_a_released_handle(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
va = ctypes.c_ulonglong(0x10000000)
check(cuda.cuMemCreate(ref(p), size(20 * MIB), on_device, size(0)))
check(cuda.cuMemMap(va, size(20 * MIB), size(0), p, size(0)))
a = used() // MIB
check(cuda.cuMemRelease(p))
b = used() // MIB
again = ctypes.c_ulonglong()
check(cuda.cuMemRetainAllocationHandle(ref(again), va))
check(cuda.cuMemUnmap(va, size(20 * MIB)))
c = used() // MIB
check(cuda.cuMemRelease(again))
say([a, b, c, used() // MIB])
"""
    )
    assert seen == [30, 30, 30, 10]
    assert share.really_used() == 0


def test_one_unmap_ends_several_mappings(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
base = 0x10000000
for at in range(4):
    check(cuda.cuMemCreate(ref(p), size(4 * MIB), on_device, size(0)))
    check(cuda.cuMemMap(ctypes.c_ulonglong(base + at * 4 * MIB), size(4 * MIB), size(0), p, size(0)))
    check(cuda.cuMemRelease(p))
a = used() // MIB
check(cuda.cuMemUnmap(ctypes.c_ulonglong(base), size(16 * MIB)))
say([a, used() // MIB])
"""
    )
    assert seen == [26, 10]


def test_a_pool_is_charged_what_it_keeps_and_gives_it_up_when_room_is_short(share: ShareOnDisk) -> None:
    """The scripted driver grows pools by 32 MiB and keeps what the threshold allows."""
    seen = share.run(
        """
begin()
made = pool()
check(cuda.cuMemPoolSetAttribute(made, 4, ref(ctypes.c_uint64(1 << 40))))
check(cuda.cuMemAllocFromPoolAsync(ref(p), size(40 * MIB), made, None))
a = used() // MIB
check(cuda.cuMemFreeAsync(p, None))
b = used() // MIB
check(cuda.cuMemAllocFromPoolAsync(ref(p), size(50 * MIB), made, None))
c = used() // MIB
check(cuda.cuMemFreeAsync(p, None))
r, _ = alloc(80 * MIB)
say([a, b, c, r, used() // MIB])
"""
    )
    assert seen == [74, 74, 74, 0, 90]
    assert share.most_really_used() <= 90 * MIB


def test_a_pool_is_refused_past_the_limit_and_trimmed_to_fit_below_it(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
check(alloc(60 * MIB)[0])
r = cuda.cuMemAllocAsync(ref(p), size(31 * MIB), None)
say([r, p.value, used() // MIB, cuda.cuMemAllocAsync(ref(p), size(30 * MIB), None), used() // MIB])
"""
    )
    assert seen == [2, 0x77, 70, 0, 100]
    assert share.ledger().devices[0].denied == 1


def test_device_heap_and_print_buffer_are_charged(share: ShareOnDisk) -> None:
    seen = share.run(
        """
begin()
a = used() // MIB
r = [cuda.cuCtxSetLimit(2, ctypes.c_size_t(n * MIB)) for n in (28, 200, 8)]
b = used() // MIB
check(cuda.cuCtxSetLimit(2, ctypes.c_size_t(48 * MIB)))
c = used() // MIB
check(cuda.cuCtxSetLimit(0, ctypes.c_size_t(2048)))  # stacks of 10 × 1000 threads
say([r, a, b, c, used() // MIB])
"""
    )
    assert seen == [[0, 2, 0], 10, 10, 50, 69]

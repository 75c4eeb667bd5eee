"""Two devices in one process: what kernels and copies reach of the other's memory, before and after."""

from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from calls import allocate, answer, check, context, cuda, fill, function, launch, load, read
from virtual_memory import PTX

first = context(0)
mine = allocate(4096)
second = context(1)
theirs = allocate(4096)
assert mine is not None
assert theirs is not None
check(fill(theirs, 0x11, 64))
can, itself = c_int(), c_int()
check(cuda.cuDeviceCanAccessPeer(byref(can), 0, 1))
check(cuda.cuDeviceCanAccessPeer(byref(itself), 0, 0))
check(cuda.cuCtxSetCurrent(first))


def copied_by_a_kernel(enabled: bool) -> list[int]:
    own = c_void_p()
    check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
    target = allocate(4)
    assert target is not None
    results = (
        [int(cuda.cuCtxEnablePeerAccess(second, 0)), int(cuda.cuCtxEnablePeerAccess(second, 0))]
        if enabled
        else []
    )
    check(launch(function(load(PTX), "copy_word"), c_uint64(target), c_uint64(theirs)))
    results.append(int(cuda.cuCtxSynchronize()))
    if results[-1] == 0:
        results.append(read(target, 4)[0])
        results.append(int(cuda.cuCtxDisablePeerAccess(second)))
        results.append(int(cuda.cuCtxDisablePeerAccess(second)))
        check(launch(function(load(PTX), "copy_word"), c_uint64(target), c_uint64(theirs)))
        results.append(int(cuda.cuCtxSynchronize()))
    check(cuda.cuCtxDestroy_v2(own))
    check(cuda.cuCtxSetCurrent(first))
    return results


copy = cuda.cuMemcpyPeer(c_uint64(mine), first, c_uint64(theirs), second, c_size_t(64))
attributes = []
for attribute in (1, 2, 3, 4):
    value = c_int(-1)
    check(cuda.cuDeviceGetP2PAttribute(byref(value), attribute, 0, 1))
    attributes.append(value.value)
answer(
    can=can.value,
    itself=itself.value,
    attributes=attributes,
    copy=copy,
    copied=read(mine, 64) == b"\x11" * 64,
    disabled=copied_by_a_kernel(False),
    enabled=copied_by_a_kernel(True) if can.value else cuda.cuCtxEnablePeerAccess(second, 0),
)

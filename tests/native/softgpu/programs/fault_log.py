"""Fault in several ways, each in a context of its own: `fault_log.py`."""

import os

from calls import allocate, answer, byref, c_uint64, c_void_p, check, cuda, free, function, launch, load

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry _ZN3lab5writeB2v1Ey(.param .u64 where) {
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [where];
    st.global.u64 [%rd1], 1;
    ret;
}
.func stop() {
    trap;
    ret;
}
.visible .entry stops(.param .u64 where) {
    call stop;
    ret;
}
.visible .entry endless(.param .u64 where) {
again:
    bra again;
}
.visible .entry parted(.param .u64 where) {
    .reg .u32 %r1;
    mov.u32 %r1, 20;
    barrier.sync %r1;
    ret;
}
"""
check(cuda.cuInit(0))


def fault(
    name: str,
    offset: int = 0,
    size: int = 4000,
    *,
    freed: bool = False,
    other: bool = False,
    null: bool = False,
) -> int:
    """Where the allocation is from whose beginning the kernel's store is `offset` bytes away."""
    contexts = [c_void_p(), c_void_p()]
    for own in contexts:
        check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
    address = allocate(size)
    assert address is not None
    if freed:
        free(address)
    if other:
        check(cuda.cuCtxSetCurrent(contexts[0]))
    kernel = function(load(PTX), name)
    check(launch(kernel, c_uint64(0 if null else address + offset), grid=2, block=3))
    assert cuda.cuCtxSynchronize() != 0
    for own in contexts:
        check(cuda.cuCtxDestroy_v2(own))
    return address


write = "_ZN3lab5writeB2v1Ey"
answer(
    pid=os.getpid(),
    behind=fault(write, 4000),
    further=fault(write, 4008),
    before=fault(write, -16, 3 << 20),
    across=fault(write, 4000, 4004),
    misaligned=fault(write, 12),
    freed=fault(write, 8, 3 << 20, freed=True),
    other=fault(write, 16, other=True),
    null=fault(write, null=True),
    traps=fault("stops"),
    endless=fault("endless"),
    barrier=fault("parted"),
)

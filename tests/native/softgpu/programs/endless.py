"""A kernel without end, in a context of its own: what that context says then, and another kernel."""

from ctypes import byref, c_int, c_uint64, c_void_p

from calls import allocate, answer, check, context, cuda, function, launch, load, read

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry endless(.param .u64 to) {
    .reg .u64 %rd1;
    .reg .u32 %r<2>;
    ld.param.u64 %rd1, [to];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    bra again;
}
.visible .entry mark(.param .u64 to) {
    .reg .u64 %rd1;
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], 77;
    ret;
}
"""
primary = context()
where = allocate(4)
own, value = c_void_p(), c_int()
check(cuda.cuDeviceGetAttribute(byref(value), 17, 0))
check(cuda.cuCtxCreate_v2(byref(own), 0, 0))
mine = allocate(4)
assert where is not None
assert mine is not None
launched = launch(function(load(PTX), "endless"), c_uint64(mine))
ended = [int(cuda.cuCtxSynchronize()), int(cuda.cuCtxSynchronize())]
check(cuda.cuCtxDestroy_v2(own))
check(cuda.cuCtxSetCurrent(primary))
check(launch(function(load(PTX), "mark"), c_uint64(where)))
answer(limited=value.value, launched=launched, ended=ended, other=read(where, 1)[0])

"""Fault on a device: `fault_on.py "ORDINAL address|misaligned|trap" [TIMES]`."""

import sys

from calls import answer, byref, c_uint64, c_void_p, check, cuda, function, launch, load

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry address(.param .u64 where) {
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [where];
    st.global.u32 [%rd1], 1;
    ret;
}
.visible .entry stop(.param .u64 where) {
    trap;
    ret;
}
"""
ordinal, kind = sys.argv[1].split()
count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
name, where = {
    "address": ("address", 1 << 40),
    "misaligned": ("address", (1 << 40) + 1),
    "trap": ("stop", 0),
}[kind]
check(cuda.cuInit(0))
for _ in range(count):  # a context is lost by its fault
    made = c_void_p()
    check(cuda.cuCtxCreate_v2(byref(made), 0, int(ordinal)))
    launch(function(load(PTX), name), c_uint64(where))
    fault = cuda.cuCtxSynchronize()
    cuda.cuCtxDestroy_v2(made)
answer(result=fault)

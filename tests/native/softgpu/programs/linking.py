"""Link two PTX texts into one blob, write it to a file; load and run it: `linking.py make|use FILE`.

Or launch what calls a function that nobody defines: `linking.py alone`."""

import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
from pathlib import Path

from calls import allocate, answer, check, context, cuda, fill, function, launch, load, read

HEADER = ".version 7.0\n.target sm_70\n.address_size 64\n"
CALLER = (
    HEADER
    + """.extern .func (.param .b32 result) doubled(.param .b32 value);
.visible .entry apply(.param .u64 where) {
    .reg .u64 %rd1;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [where];
    ld.global.u32 %r1, [%rd1];
    {
        .param .b32 given;
        .param .b32 back;
        st.param.b32 [given], %r1;
        call.uni (back), doubled, (given);
        ld.param.b32 %r2, [back];
    }
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
)
CALLEE = (
    HEADER
    + """.visible .func (.param .b32 result) doubled(.param .b32 value) {
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
"""
)
PTX_INPUT = 1
ERROR_LOG, ERROR_LOG_BYTES = 5, 6
log = ctypes.create_string_buffer(400)


def link(*texts: str) -> tuple[int, bytes]:
    state, blob, size = c_void_p(), c_void_p(), c_size_t()
    options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
    values = (c_void_p * 2)(ctypes.addressof(log), 400)
    check(cuda.cuLinkCreate_v2(2, options, values, byref(state)))
    for text in texts:
        data = text.encode()
        check(cuda.cuLinkAddData_v2(state, PTX_INPUT, data, c_size_t(len(data)), b"part", 0, None, None))
    result = cuda.cuLinkComplete(state, byref(blob), byref(size))
    made = ctypes.string_at(blob, size.value) if result == 0 else b""
    check(cuda.cuLinkDestroy(state))
    return result, made


context()
if sys.argv[1] == "make":
    result, made = link(CALLER, CALLEE)
    Path(sys.argv[2]).write_bytes(made)
    broken, _ = link(CALLER, HEADER + ".visible .entry {")
    answer(result=result, ends_with_nul=made.endswith(b"\0"), broken=broken, message=log.value.decode())
elif sys.argv[1] == "alone":
    address = allocate(4)
    answer(launched=launch(function(load(CALLER), "apply"), c_uint64(address or 0)))
else:
    address = allocate(4)
    assert address is not None
    check(fill(address, 0x01, 4))
    kernel = function(load(Path(sys.argv[2]).read_bytes().rstrip(b"\0").decode()), "apply")
    check(launch(kernel, c_uint64(address)))
    check(cuda.cuCtxSynchronize())
    answer(value=int.from_bytes(read(address, 4), "little"))

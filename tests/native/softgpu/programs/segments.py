"""A kernel that writes down when it ran, by the device's timer, which processes of a device have in common:
`segments.py MILLISECONDS GAP_NS`. Where the timer moved on by more than the gap from one look to the next, a
segment ends. Answers with pairs of nanoseconds."""

import struct
import sys
from ctypes import c_uint64

from calls import allocate, answer, c_uint, check, context, cuda, function, launch, load, read

MOST = 4096
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry segments(.param .u64 to, .param .u64 end, .param .u64 gap, .param .u32 most) {
    .reg .u32 %r<4>;
    .reg .u64 %rd<10>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [to];
    ld.param.u64 %rd2, [end];
    ld.param.u64 %rd3, [gap];
    ld.param.u32 %r1, [most];
    mov.u32 %r2, 0;
    mov.u64 %rd4, %globaltimer;
    add.u64 %rd2, %rd2, %rd4;
    mov.u64 %rd5, %rd4;
again:
    mov.u64 %rd6, %globaltimer;
    sub.u64 %rd7, %rd6, %rd5;
    setp.le.u64 %p1, %rd7, %rd3;
    @%p1 bra same;
    st.global.u64 [%rd1], %rd4;
    st.global.u64 [%rd1+8], %rd5;
    add.u64 %rd1, %rd1, 16;
    add.u32 %r2, %r2, 1;
    mov.u64 %rd4, %rd6;
same:
    mov.u64 %rd5, %rd6;
    setp.lt.u64 %p1, %rd6, %rd2;
    setp.lt.and.u32 %p2, %r2, %r1, %p1;
    @%p2 bra again;
    st.global.u64 [%rd1], %rd4;
    st.global.u64 [%rd1+8], %rd5;
    ret;
}
"""

context()
kernel = function(load(PTX), "segments")
to = allocate(16 * (MOST + 1))
assert to is not None
check(int(cuda.cuMemsetD8_v2(c_uint64(to), 0, c_uint64(16 * (MOST + 1)))))
answer(ready=True)
sys.stdin.readline()
check(
    launch(
        kernel, c_uint64(to), c_uint64(int(sys.argv[1]) * 1_000_000), c_uint64(int(sys.argv[2])), c_uint(MOST)
    )
)
check(cuda.cuCtxSynchronize())
words = struct.unpack(f"<{2 * (MOST + 1)}Q", read(to, 16 * (MOST + 1)))
answer(segments=[pair for pair in zip(words[::2], words[1::2], strict=True) if pair[0]])

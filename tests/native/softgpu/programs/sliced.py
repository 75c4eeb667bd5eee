"""A long kernel of many blocks whose result tells whether anything of it was lost or done twice:
`sliced.py BLOCKS ROUNDS together|apart`. In each round each thread counts up one number for all and exchanges
values with its neighbour through shared memory between two barriers; `together` launches it as cooperative,
and the blocks wait for each other in each round, spinning."""

import struct
import sys
from ctypes import c_uint32, c_uint64, c_void_p, cast, pointer

from calls import allocate, answer, check, context, cuda, fill, function, load, read

THREADS = 64
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry rounds(.param .u64 counts, .param .u64 sums, .param .u32 count, .param .u32 together) {
    .reg .u32 %r<20>;
    .reg .u64 %rd<8>;
    .reg .pred %p<4>;
    .shared .align 4 .b8 values[256];
    ld.param.u64 %rd1, [counts];
    ld.param.u64 %rd2, [sums];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [together];
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %nctaid.x;
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    mov.u32 %r8, values;
    shl.b32 %r9, %r3, 2;
    add.u32 %r9, %r8, %r9;
    add.u32 %r10, %r3, 1;
    and.b32 %r10, %r10, 63;
    shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r8, %r10;
again:
    red.global.add.u64 [%rd1], 1;
    add.u32 %r11, %r7, %r3;
    st.shared.u32 [%r9], %r11;
    bar.sync 0;
    ld.shared.u32 %r12, [%r10];
    add.u32 %r6, %r6, %r12;
    bar.sync 0;
    add.u32 %r7, %r7, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra next;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra passed;
    red.global.add.u64 [%rd1+8], 1;
    mul.wide.u32 %rd3, %r7, %r5;
wait:
    ld.volatile.global.u64 %rd4, [%rd1+8];
    setp.lt.u64 %p3, %rd4, %rd3;
    @%p3 bra wait;
passed:
    bar.sync 0;
next:
    setp.lt.u32 %p1, %r7, %r1;
    @%p1 bra again;
    mad.lo.u32 %r13, %r4, 64, %r3;
    mul.wide.u32 %rd5, %r13, 4;
    add.u64 %rd5, %rd2, %rd5;
    st.global.u32 [%rd5], %r6;
    ret;
}
"""

blocks, rounds, together = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "together"
context()
counts, sums = allocate(16), allocate(4 * blocks * THREADS)
assert counts is not None
assert sums is not None
check(fill(counts, 0, 16))
arguments = (c_uint64(counts), c_uint64(sums), c_uint32(rounds), c_uint32(together))
pointers = (c_void_p * 4)(*(cast(pointer(argument), c_void_p) for argument in arguments))
launch = cuda.cuLaunchCooperativeKernel if together else cuda.cuLaunchKernel
check(
    launch(
        function(load(PTX), "rounds"),
        *(blocks, 1, 1, THREADS, 1, 1, 0, None, pointers),
        *(() if together else (None,)),
    )
)
check(cuda.cuCtxSynchronize())
counted, arrived = struct.unpack("<2Q", read(counts, 16))
wanted = [sum(r + (t + 1) % THREADS for r in range(rounds)) % 2**32 for t in range(THREADS)]
answer(
    counted=counted == blocks * THREADS * rounds,
    arrived=arrived == (blocks * rounds if together else 0),
    sums=list(struct.unpack(f"<{blocks * THREADS}I", read(sums, 4 * blocks * THREADS))) == wanted * blocks,
)

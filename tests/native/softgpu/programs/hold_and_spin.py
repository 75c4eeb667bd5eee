"""Hold memory and launch a kernel that spins, again and again, until killed: `hold_and_spin.py ORDINAL BYTES
ITERATIONS`. Says when the first kernel has run."""

import sys

from calls import allocate, answer, c_uint64, check, context, function, launch, load

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 count) {
    .reg .u64 %rd<3>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [count];
again:
    sub.u64 %rd1, %rd1, 1;
    setp.ne.u64 %p1, %rd1, 0;
    @%p1 bra again;
    ret;
}
"""
context(int(sys.argv[1]))
assert allocate(int(sys.argv[2])) is not None
kernel = function(load(PTX), "spin")
check(launch(kernel, c_uint64(int(sys.argv[3]))))
answer(ran=True)
while True:
    check(launch(kernel, c_uint64(int(sys.argv[3]))))

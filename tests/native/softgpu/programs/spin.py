"""Launch a kernel that spins, again and again, until killed: `spin.py ITERATIONS`. One line a launch with
the nanoseconds of the monotonic clock at which it ended."""

import sys
import time

from calls import answer, c_uint64, check, context, function, launch, load

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
context()
kernel = function(load(PTX), "spin")
while True:
    check(launch(kernel, c_uint64(int(sys.argv[1]))))
    answer(ended=time.monotonic_ns())

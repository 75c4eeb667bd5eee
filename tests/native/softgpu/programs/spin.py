"""Launch a kernel that spins, again and again, until killed: `spin.py ITERATIONS`. One line a launch with
the nanoseconds of the monotonic clock at which it ended."""

import sys
import time

from calls import SPIN, answer, c_uint64, check, context, function, launch, load

context()
kernel = function(load(SPIN), "spin")
while True:
    check(launch(kernel, c_uint64(int(sys.argv[1]))))
    answer(ended=time.monotonic_ns())

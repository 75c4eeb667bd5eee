"""Hold memory and launch a kernel that spins, again and again, until killed: `hold_and_spin.py ORDINAL BYTES
ITERATIONS`. Says when the first kernel has run."""

import sys

from calls import SPIN, allocate, answer, c_uint64, check, context, function, launch, load

context(int(sys.argv[1]))
assert allocate(int(sys.argv[2])) is not None
kernel = function(load(SPIN), "spin")
check(launch(kernel, c_uint64(int(sys.argv[3]))))
answer(ran=True)
while True:
    check(launch(kernel, c_uint64(int(sys.argv[3]))))

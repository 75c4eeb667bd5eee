"""Kernels one after another on a device that others use too: `shared_clock.py KERNEL_NS COUNT QUEUED`.
With QUEUED they are submitted all at once and waited for at the end. One line a kernel with the model time at
which it ended, and a last one."""

import os
import sys

from calls import answer, context
from model_clock import Kernels, event, now, record, synchronize

ns, count, queued = int(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
context()
kernels = Kernels()
ends = []
if queued:
    begun, marks = event(), [event() for _ in range(count)]
    record(begun)
    for mark in marks:
        kernels.sleep(ns)
        record(mark)
    synchronize()
    ends.append(now())
else:
    for _ in range(count):
        kernels.sleep(ns)
        synchronize()
        ends.append(now())
answer(pid=os.getpid(), ends=ends)

"""A kernel that takes the CPU far longer than the model says: what events tell, and how long the CPU had."""

import time
from ctypes import c_uint64

from calls import SPIN, answer, check, context, function, launch, load
from model_clock import elapsed, event, record, synchronize

context()
kernel = function(load(SPIN), "spin")
marks = [event(), event()]
record(marks[0])
began = time.thread_time_ns()
check(launch(kernel, c_uint64(1_000_000)))
computed = time.thread_time_ns() - began
record(marks[1])
synchronize()
answer(events=elapsed(*marks) * 1e6, computed=computed)

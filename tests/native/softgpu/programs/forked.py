"""A forked child has no context and does not keep its parent's memory alive."""

import os
import sys
from ctypes import c_size_t

from calls import allocate, answer, byref, context, cuda, fill

context()
address = allocate(40 << 20)
assert address is not None
assert fill(address, 1, 40 << 20) == 0
pipe_read, pipe_write = os.pipe()
child = os.fork()
if child == 0:
    free, total = c_size_t(), c_size_t()
    results = [cuda.cuMemGetInfo_v2(byref(free), byref(total)), cuda.cuInit(0), cuda.cuCtxSynchronize()]
    os.write(pipe_write, repr(results).encode())
    sys.stdin.read()  # outlives the parent
    os._exit(0)
told = os.read(pipe_read, 100).decode()
answer(child=child, results=told, parent_still_works=allocate(1 << 20) is not None)
sys.stdin.read()

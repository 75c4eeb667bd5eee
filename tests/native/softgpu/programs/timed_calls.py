"""Do what each line of input says, and say what the driver answered and how many seconds it took."""

import sys
import time
from ctypes import c_size_t, c_uint64

from calls import MIB, answer, byref, context, cuda, function, launch, load

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""


def allocate_and_free() -> int:
    address = c_uint64()
    result = int(cuda.cuMemAlloc_v2(byref(address), c_size_t(8 * MIB)))
    return result or int(cuda.cuMemFree_v2(address))


context()
kernel = function(load(PTX), "nothing")
calls = {
    "launch": lambda: launch(kernel),
    "allocate": allocate_and_free,
    "leave": lambda: int(cuda.cuDevicePrimaryCtxRelease_v2(0)),
}
answer(ready=True)
for line in sys.stdin:
    began = time.monotonic()
    result = calls[line.strip()]()
    answer(result=result, seconds=time.monotonic() - began)

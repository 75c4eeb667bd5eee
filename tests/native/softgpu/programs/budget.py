"""Commit device memory by chunks, then page-locked memory, until the machine has no more; hold it.

usage: budget.py CHUNKS HOST_MIB"""

import os
import sys
from ctypes import byref, c_size_t, c_void_p

from calls import MIB, allocate, answer, check, context, cuda, fill, memory, read

context()
chunks, host_mib = int(sys.argv[1]), int(sys.argv[2])
address = allocate(chunks * 2 * MIB)
assert address is not None
results = [fill(address + index * 2 * MIB, index % 255 + 1, 16) for index in range(chunks)]
kept = all(
    read(address + index * 2 * MIB, 1)[0] == index % 255 + 1
    for index, result in enumerate(results)
    if result == 0
)
host, places = [], []
for _ in range(host_mib):
    place = c_void_p()
    host.append(int(cuda.cuMemHostAlloc(byref(place), c_size_t(MIB), 0)))
    places.append(place)
answer(
    pid=os.getpid(),
    filled=results.count(0),
    refused=sorted(set(results) - {0}),
    kept=kept,
    host=host.count(0),
    host_refused=sorted(set(host) - {0}),
    free=memory()[0],
)
for line in sys.stdin:
    for place in places:
        if line.startswith("give") and place:
            check(cuda.cuMemFreeHost(place))
            place.value = None
    answer(again=[fill(address + index * 2 * MIB, 7, 16) for index in range(chunks)].count(0))

"""A well-behaved CUDA program: saxpy over and over, one rate line a second. Plain numba-cuda.

python neighbour.py [MEGABYTES]      until SIGTERM; then checks its result against numpy
"""

import signal
import sys
import time
from itertools import count
from threading import Event

import numpy as np
import pynvml
from numba import cuda

GIB = 1 << 30


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def main():
    elements = int(float(sys.argv[1]) * 1e6 if len(sys.argv) > 1 else 16e6) // 8
    stop = Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    free, total = cuda.current_context().get_memory_info()
    pynvml.nvmlInit()
    seen = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total
    print(
        f"{cuda.get_current_device().name}: {total / GIB:.2f} GiB through the driver, "
        f"{seen / GIB:.2f} GiB through NVML, {free / GIB:.2f} GiB free",
        flush=True,
    )
    host_x = np.random.default_rng(0).random(elements, dtype=np.float32)
    x, y = cuda.to_device(host_x), cuda.to_device(np.zeros_like(host_x))
    blocks = (elements + 255) // 256

    saxpy[blocks, 256](np.float32(1), x, y)  # compiles it
    cuda.synchronize()
    since, mark = 1, time.monotonic()
    for launches in count(2):
        saxpy[blocks, 256](np.float32(1), x, y)
        cuda.synchronize()
        now = time.monotonic()
        if now - mark >= 1:
            rate = (launches - since) * elements / (now - mark) / 1e6
            print(f"{rate:.0f} million elements a second", flush=True)
            since, mark = launches, now
        if stop.is_set():
            break

    expected = np.zeros_like(host_x)
    for _ in range(launches):
        expected += host_x
    equal = np.array_equal(y.copy_to_host(), expected)
    print(f"{launches} launches; equal to numpy's result: {'yes' if equal else 'NO'}", flush=True)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

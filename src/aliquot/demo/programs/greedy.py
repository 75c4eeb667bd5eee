"""A greedy CUDA program: takes memory until the driver says no, then sits on it. Plain numba-cuda.

python greedy.py
"""

import os
import signal

import numpy as np
import pynvml
from numba import cuda

GIB = 1 << 30


def main():
    print(f"process {os.getpid()}", flush=True)
    _, total = cuda.current_context().get_memory_info()
    pynvml.nvmlInit()
    seen = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total
    name = cuda.get_current_device().name
    print(f"{name}: {total / GIB:.2f} GiB through the driver, {seen / GIB:.2f} GiB through NVML", flush=True)
    kept, taken, step = [], 0, 256 << 20
    while step >= 1 << 20:
        try:
            kept.append(cuda.device_array(step, dtype=np.uint8))
            taken += step
        except Exception as error:
            if step == 1 << 20:
                print(f"{taken / GIB:.2f} GiB taken, then: {error}", flush=True)
            step //= 2
    signal.pause()


if __name__ == "__main__":
    main()

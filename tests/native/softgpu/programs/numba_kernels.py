"""Unmodified numba-cuda on the software GPU, compared with numpy. `numba_kernels.py CASE`"""

import json
import math
import sys
import warnings

import numpy as np
from numba import cuda, float32, int32

warnings.simplefilter("ignore")


def vector_add():
    @cuda.jit
    def add(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] + b[i]

    rng = np.random.default_rng(1)
    a, b = rng.random(100_003, dtype=np.float32), rng.random(100_003, dtype=np.float32)
    c = cuda.device_array_like(a)
    add[math.ceil(a.size / 256), 256](cuda.to_device(a), cuda.to_device(b), c)
    return np.array_equal(c.copy_to_host(), a + b)


def saxpy():
    @cuda.jit
    def kernel(alpha, x, y):
        for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            y[i] = alpha * x[i] + y[i]

    rng = np.random.default_rng(2)
    x, y = rng.random(50_000, dtype=np.float32), rng.random(50_000, dtype=np.float32)
    out = cuda.to_device(y)
    kernel[8, 128](np.float32(2.5), cuda.to_device(x), out)
    return np.allclose(out.copy_to_host(), np.float32(2.5) * x + y, rtol=1e-6)


def matmul():
    tile = 16

    @cuda.jit
    def kernel(a, b, c):
        left = cuda.shared.array((tile, tile), float32)
        right = cuda.shared.array((tile, tile), float32)
        row, column = cuda.grid(2)
        ty, tx = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for step in range(math.ceil(a.shape[1] / tile)):
            left[ty, tx] = right[ty, tx] = 0
            if row < a.shape[0] and step * tile + tx < a.shape[1]:
                left[ty, tx] = a[row, step * tile + tx]
            if column < b.shape[1] and step * tile + ty < b.shape[0]:
                right[ty, tx] = b[step * tile + ty, column]
            cuda.syncthreads()
            for k in range(tile):
                total += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    rng = np.random.default_rng(3)
    a, b = rng.random((70, 45), dtype=np.float32), rng.random((45, 52), dtype=np.float32)
    c = np.zeros((70, 52), dtype=np.float32)
    kernel[(5, 4), (tile, tile)](a, b, c)
    return np.allclose(c, a @ b, rtol=1e-5)


def shuffle_reduction():
    @cuda.jit
    def kernel(values, result):
        total = float32(0)
        for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
            total += values[i]
        for distance in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, distance)
        if cuda.laneid == 0:
            cuda.atomic.add(result, 0, total)

    values = np.random.default_rng(4).integers(0, 100, 20_000).astype(np.float32)
    result = cuda.to_device(np.zeros(1, dtype=np.float32))
    kernel[8, 128](cuda.to_device(values), result)
    return float(result.copy_to_host()[0]) == float(values.sum())


def shared_reduction():
    @cuda.jit
    def kernel(values, sums):
        partial = cuda.shared.array(128, int32)
        thread = cuda.threadIdx.x
        i = cuda.grid(1)
        partial[thread] = values[i] if i < values.size else 0
        cuda.syncthreads()
        distance = 64
        while distance > 0:
            if thread < distance:
                partial[thread] += partial[thread + distance]
            cuda.syncthreads()
            distance //= 2
        if thread == 0:
            sums[cuda.blockIdx.x] = partial[0]

    values = np.random.default_rng(5).integers(-1000, 1000, 5000).astype(np.int32)
    sums = np.zeros(40, dtype=np.int32)
    kernel[40, 128](values, sums)
    return int(sums.sum()) == int(values.sum())


def atomics():
    @cuda.jit
    def kernel(values, bins, extremes):
        i = cuda.grid(1)
        if i < values.size:
            cuda.atomic.add(bins, values[i] % bins.size, 1)
            cuda.atomic.max(extremes, 0, values[i])
            cuda.atomic.min(extremes, 1, values[i])

    values = np.random.default_rng(6).integers(0, 10_000, 20_000).astype(np.int32)
    bins, extremes = np.zeros(16, dtype=np.int32), np.array([-1, 1 << 30], dtype=np.int32)
    kernel[math.ceil(values.size / 256), 256](values, bins, extremes)
    expected = np.bincount(values % 16, minlength=16)
    return np.array_equal(bins, expected) and list(extremes) == [values.max(), values.min()]


def constants_and_streams():
    table = np.arange(64, dtype=np.float64) ** 2

    @cuda.jit
    def kernel(out):
        constant = cuda.const.array_like(table)
        i = cuda.grid(1)
        if i < out.size:
            out[i] = constant[i % 64] + math.sqrt(i)

    stream = cuda.stream()
    begin, end = cuda.event(), cuda.event()
    out = cuda.device_array(1000, dtype=np.float64, stream=stream)
    begin.record(stream)
    kernel[8, 128, stream](out)
    end.record(stream)
    host = out.copy_to_host(stream=stream)
    stream.synchronize()
    expected = table[np.arange(1000) % 64] + np.sqrt(np.arange(1000))
    return np.allclose(host, expected) and cuda.event_elapsed_time(begin, end) > 0


def other_memory():
    @cuda.jit
    def twice(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2

    kinds = (cuda.managed_array, cuda.pinned_array, cuda.mapped_array)
    right = True
    for make in kinds:
        values = make(100, dtype=np.float32)
        values[:] = np.arange(100)
        twice[1, 128](values)
        cuda.synchronize()
        right = right and np.array_equal(np.asarray(values), 2 * np.arange(100))
    return right


def closed():
    """numba leaves its context first, and frees what it holds after."""
    held = cuda.to_device(np.arange(1000))
    cuda.close()
    del held
    return True


def illegal_address():
    @cuda.jit
    def kernel(values):
        values[1 << 40] = 1

    try:
        kernel[1, 1](cuda.device_array(8, dtype=np.int8))
        cuda.synchronize()
    except Exception as error:
        return "ILLEGAL_ADDRESS" in str(error)
    return False


print(json.dumps({"right": bool(globals()[sys.argv[1]]())}))

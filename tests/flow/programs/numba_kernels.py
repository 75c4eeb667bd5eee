"""The kernels people write first, each compared with numpy; prints the name of each that is right."""

import numpy as np
import pynvml
from numba import cuda, float32

TILE = 16


@cuda.jit(cache=True)
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit(cache=True)
def saxpy(alpha, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] += alpha * x[i]


@cuda.jit(cache=True)
def matmul(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range((a.shape[1] + TILE - 1) // TILE):
        left[i, j] = a[x, j + k * TILE] if x < a.shape[0] and j + k * TILE < a.shape[1] else 0
        right[i, j] = b[i + k * TILE, y] if y < b.shape[1] and i + k * TILE < b.shape[0] else 0
        cuda.syncthreads()
        for n in range(TILE):
            total += left[i, n] * right[n, j]
        cuda.syncthreads()
    if x < c.shape[0] and y < c.shape[1]:
        c[x, y] = total


@cuda.jit(cache=True)
def sum_by_shuffles(values, result):
    i = cuda.grid(1)
    value = values[i] if i < values.size else 0
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(result, 0, value)


@cuda.jit(cache=True)
def sum_by_atomics(values, result):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(result, 0, values[i])


@cuda.jit(cache=True)
def histogram(values, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)


def main():
    random = np.random.default_rng(1)

    free, total = cuda.current_context().get_memory_info()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).total == total
    assert 0 < free < total
    print("share")

    a, b = random.random(100_003, dtype=np.float32), random.random(100_003, dtype=np.float32)
    c = np.zeros_like(a)
    vector_add[(a.size + 127) // 128, 128](a, b, c)
    assert np.array_equal(c, a + b)
    print("vector-add")

    y = b.copy()
    saxpy[32, 128](np.float32(2.5), a, y)
    assert np.allclose(y, b + np.float32(2.5) * a, rtol=1e-6)
    print("saxpy")

    m, n = random.random((70, 50), dtype=np.float32), random.random((50, 90), dtype=np.float32)
    p = np.zeros((70, 90), dtype=np.float32)
    matmul[(5, 6), (TILE, TILE)](m, n, p)
    assert np.allclose(p, m @ n, rtol=1e-5)
    print("matmul")

    values = random.integers(0, 1000, 50_000, dtype=np.int64)
    for kernel, name in ((sum_by_shuffles, "sum-by-shuffles"), (sum_by_atomics, "sum-by-atomics")):
        result = np.zeros(1, dtype=np.int64)
        kernel[(values.size + 255) // 256, 256](values, result)
        assert result[0] == values.sum()
        print(name)

    small = random.integers(0, 64, 50_000, dtype=np.int32)
    bins = np.zeros(64, dtype=np.int32)
    histogram[(small.size + 255) // 256, 256](small, bins)
    assert np.array_equal(bins, np.bincount(small, minlength=64))
    print("histogram")


if __name__ == "__main__":
    main()

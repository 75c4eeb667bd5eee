# mypy: ignore-errors
"""Kernels that numba-cuda compiles into tests/native/engine/ptx; see tools/generate_engine_corpus.py.

Each name maps to (function, signature, keywords of compile_ptx). The tests say what they compute.
"""

import math

from numba import cuda, float32, float64, int32, int64, types, uint8

FLOATS, DOUBLES = types.float32[::1], types.float64[::1]
INTS, LONGS, BYTES = types.int32[::1], types.int64[::1], types.uint8[::1]
MATRIX, DOUBLE_MATRIX = types.Array(float32, 2, "C"), types.Array(float64, 2, "C")
IMAGE = types.Array(uint8, 2, "C")


def vector_add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def saxpy(a, x, y, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = a * x[i] + y[i]


def _matmul(tile):
    def matmul(a, b, c):
        left = cuda.shared.array((tile, tile), float32)
        right = cuda.shared.array((tile, tile), float32)
        column, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0.0)
        for step in range((a.shape[1] + tile - 1) // tile):
            left[y, x] = 0
            right[y, x] = 0
            if row < a.shape[0] and x + step * tile < a.shape[1]:
                left[y, x] = a[row, x + step * tile]
            if column < b.shape[1] and y + step * tile < b.shape[0]:
                right[y, x] = b[y + step * tile, column]
            cuda.syncthreads()
            for k in range(tile):
                total += left[y, k] * right[k, x]
            cuda.syncthreads()
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = total

    return matmul


def reduce_shuffle(x, out):
    partial = cuda.shared.array(32, float32)
    thread, lane, warp = cuda.threadIdx.x, cuda.laneid, cuda.threadIdx.x // 32
    total = float32(0.0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
        offset //= 2
    if lane == 0:
        partial[warp] = total
    cuda.syncthreads()
    if thread < 32:
        total = partial[thread] if thread < cuda.blockDim.x // 32 else float32(0.0)
        offset = 16
        while offset > 0:
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, offset)
            offset //= 2
        if thread == 0:
            cuda.atomic.add(out, 0, total)


def atomics_int(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])
        cuda.atomic.min(out, 1, x[i])
        cuda.atomic.max(out, 2, x[i])
        cuda.atomic.xor(out, 3, x[i])
        cuda.atomic.cas(out, 4, 0, x[i])


def atomics_long(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])
        cuda.atomic.min(out, 1, x[i])
        cuda.atomic.max(out, 2, x[i])


def atomics_float(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])
        cuda.atomic.max(out, 1, x[i])
        cuda.atomic.min(out, 2, x[i])


def histogram(values, counts):
    bins = cuda.shared.array(256, int32)
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        bins[i] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i], 1)
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(counts, i, bins[i])


def mathematics(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[0, i] = math.sin(v)
        out[1, i] = math.cos(v)
        out[2, i] = math.exp(v)
        out[3, i] = math.log(v)
        out[4, i] = math.sqrt(v)
        out[5, i] = math.pow(v, type(v)(1.25))
        out[6, i] = math.tanh(v)
        out[7, i] = math.atan2(v, type(v)(2.0))
        out[8, i] = math.floor(v)
        out[9, i] = math.ceil(v)
        out[10, i] = math.fabs(v)
        out[11, i] = type(v)(1.0) / v
        out[12, i] = math.erf(v)
        out[13, i] = math.log1p(v)
        out[14, i] = math.hypot(v, type(v)(3.0))
        out[15, i] = math.fmod(v, type(v)(0.7))


def fast_mathematics(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[0, i] = math.sin(v)
        out[1, i] = math.cos(v)
        out[2, i] = math.exp(v)
        out[3, i] = math.log(v)
        out[4, i] = math.sqrt(v)
        out[5, i] = float32(1.0) / v
        out[6, i] = math.pow(v, float32(1.25))


def integer_division(a, b, quotient, remainder):
    i = cuda.grid(1)
    if i < a.size:
        quotient[i] = a[i] // b[i]
        remainder[i] = a[i] % b[i]


# Defined in another text, nvrtc_numba_helper.ptx: what cuLink* is for.
_polynomial = cuda.declare_device("polynomial", float64(float64, int32))


@cuda.jit(device=True, inline="never")
def _rotate(x, y, turns):
    for _ in range(turns):
        x, y = -y, x
    return x, y


def device_call(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = _polynomial(x[i], int32(i % 7))


def device_function(x, out):
    i = cuda.grid(1)
    if i < x.size:
        a, b = _rotate(x[i], x[i] + 1, i % 5)
        out[i] = a - 2 * b


def collatz(start, steps):
    i = cuda.grid(1)
    if i < start.size:
        n, count = int64(start[i]), int32(0)
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            count += 1
        steps[i] = count


def stencil(a, out):
    column, row = cuda.grid(2)
    if 0 < row < a.shape[0] - 1 and 0 < column < a.shape[1] - 1:
        out[row, column] = 0.25 * (
            a[row - 1, column] + a[row + 1, column] + a[row, column - 1] + a[row, column + 1]
        )


def invert(image, out):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        out[row, column] = 255 - image[row, column]


def blur(image, out):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        total, count = int32(0), int32(0)
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                y, x = row + dy, column + dx
                if 0 <= y < image.shape[0] and 0 <= x < image.shape[1]:
                    total += image[y, x]
                    count += 1
        out[row, column] = total // count


def mandelbrot(out, limit):
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        cr = float64(column) * 3.0 / out.shape[1] - 2.0
        ci = float64(row) * 2.0 / out.shape[0] - 1.0
        zr, zi, count = 0.0, 0.0, 0
        while count < limit and zr * zr + zi * zi < 4.0:
            zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
            count += 1
        out[row, column] = count


def softmax(a, out):
    scratch = cuda.shared.array(128, float32)
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    most = float32(-math.inf)
    for k in range(thread, a.shape[1], 128):
        most = max(most, a[row, k])
    scratch[thread] = most
    cuda.syncthreads()
    width = 64
    while width > 0:
        if thread < width:
            scratch[thread] = max(scratch[thread], scratch[thread + width])
        cuda.syncthreads()
        width //= 2
    most = scratch[0]
    cuda.syncthreads()
    total = float32(0.0)
    for k in range(thread, a.shape[1], 128):
        total += math.exp(a[row, k] - most)
    scratch[thread] = total
    cuda.syncthreads()
    width = 64
    while width > 0:
        if thread < width:
            scratch[thread] += scratch[thread + width]
        cuda.syncthreads()
        width //= 2
    for k in range(thread, a.shape[1], 128):
        out[row, k] = math.exp(a[row, k] - most) / scratch[0]


def long_mix(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i] ^ (x[i] << 13)
        v ^= v >> 7
        v ^= v << 17
        out[i] = cuda.popc(v) + cuda.clz(v) * 100 + (cuda.brev(v) & 0xFF) * 10000


def local_array(x, out):
    window = cuda.local.array(8, float32)
    i = cuda.grid(1)
    if i < x.size:
        for k in range(8):
            window[k] = x[(i + k * 3) % x.size]
        for a in range(8):
            for b in range(a + 1, 8):
                if window[b] < window[a]:
                    window[a], window[b] = window[b], window[a]
        out[i] = window[(i % 8)]


def votes(x, out):
    i = cuda.grid(1)
    mask = cuda.ballot_sync(0xFFFFFFFF, x[i] > 0)
    some = cuda.any_sync(0xFFFFFFFF, x[i] == 7)
    every = cuda.all_sync(0xFFFFFFFF, x[i] > -1000)
    same = cuda.match_any_sync(0xFFFFFFFF, x[i])
    out[0, i] = mask
    out[1, i] = some
    out[2, i] = every
    out[3, i] = same
    out[4, i] = cuda.activemask()


def dynamic_shared(x, out):
    scratch = cuda.shared.array(0, float32)
    thread = cuda.threadIdx.x
    scratch[thread] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = scratch[cuda.blockDim.x - 1 - thread]


def grid_sync(x, out):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for step in range(4):
        out[step % 2, i] = x[i] if step == 0 else out[(step + 1) % 2, (i + 1) % x.size] + 1
        grid.sync()


def print_thread(x):
    i = cuda.grid(1)
    if i < 2:
        print("thread", i, "holds", x[i])


def spin_lock(lock, total):
    done = False
    while not done:
        if cuda.atomic.cas(lock, 0, 0, 1) == 0:
            total[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)
            done = True


KERNELS = {
    "numba_vector_add": (vector_add, (FLOATS, FLOATS, FLOATS), {}),
    "numba_vector_add_f64": (vector_add, (DOUBLES, DOUBLES, DOUBLES), {}),
    "numba_vector_add_i64": (vector_add, (LONGS, LONGS, LONGS), {}),
    "numba_saxpy": (saxpy, (float32, FLOATS, FLOATS, FLOATS), {}),
    "numba_matmul_16": (_matmul(16), (MATRIX, MATRIX, MATRIX), {}),
    "numba_matmul_32": (_matmul(32), (MATRIX, MATRIX, MATRIX), {}),
    "numba_reduce_shuffle": (reduce_shuffle, (FLOATS, FLOATS), {}),
    "numba_atomics_int": (atomics_int, (INTS, INTS), {}),
    "numba_atomics_long": (atomics_long, (LONGS, LONGS), {}),
    "numba_atomics_f32": (atomics_float, (FLOATS, FLOATS), {}),
    "numba_atomics_f64": (atomics_float, (DOUBLES, DOUBLES), {}),
    "numba_histogram": (histogram, (BYTES, INTS), {}),
    "numba_math_f32": (mathematics, (FLOATS, MATRIX), {}),
    "numba_math_f64": (mathematics, (DOUBLES, DOUBLE_MATRIX), {}),
    "numba_fast_math_f32": (fast_mathematics, (FLOATS, MATRIX), {"fastmath": True}),
    "numba_divide_i32": (integer_division, (INTS, INTS, INTS, INTS), {}),
    "numba_divide_i64": (integer_division, (LONGS, LONGS, LONGS, LONGS), {}),
    "numba_device_call": (device_call, (DOUBLES, DOUBLES), {}),
    "numba_device_function": (device_function, (DOUBLES, DOUBLES), {}),
    "numba_collatz": (collatz, (INTS, INTS), {}),
    "numba_stencil": (stencil, (DOUBLE_MATRIX, DOUBLE_MATRIX), {}),
    "numba_invert": (invert, (IMAGE, IMAGE), {}),
    "numba_blur": (blur, (IMAGE, IMAGE), {}),
    "numba_mandelbrot": (mandelbrot, (types.Array(int32, 2, "C"), int32), {}),
    "numba_softmax": (softmax, (MATRIX, MATRIX), {}),
    "numba_long_mix": (long_mix, (LONGS, LONGS), {}),
    "numba_local_array": (local_array, (FLOATS, FLOATS), {}),
    "numba_votes": (votes, (INTS, types.Array(int32, 2, "C")), {}),
    "numba_dynamic_shared": (dynamic_shared, (FLOATS, FLOATS), {}),
    "numba_grid_sync": (grid_sync, (INTS, types.Array(int32, 2, "C")), {}),
    "numba_print": (print_thread, (INTS,), {}),
    "numba_spin_lock": (spin_lock, (INTS, INTS), {}),
    "numba_debug": (collatz, (INTS, INTS), {"debug": True, "opt": False}),
}

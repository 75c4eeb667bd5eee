// Whole algorithms in CUDA C, as textbooks and libraries write them. Compiled like kernels.cu: one
// tests/native/engine/ptx/nvrtc_*.ptx for each `//// name [options]`; see tools/generate_engine_corpus.py.

//// nbody
// Tiles of bodies through shared memory; the threads past the last body help to load and weigh nothing.
#define TILE 64
extern "C" __global__ void k(const float4 *bodies, float4 *accelerations, int n, float softening) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE + threadIdx.x;
    float4 nothing = make_float4(0, 0, 0, 0), me = i < n ? bodies[i] : nothing, total = nothing;
    for (int start = 0; start < n; start += TILE) {
        tile[threadIdx.x] = start + threadIdx.x < n ? bodies[start + threadIdx.x] : nothing;
        __syncthreads();
        for (int j = 0; j < TILE; j++) {
            float4 other = tile[j];
            float x = other.x - me.x, y = other.y - me.y, z = other.z - me.z;
            float inverse = rsqrtf(x * x + y * y + z * z + softening);
            float pull = other.w * inverse * inverse * inverse;
            total.x += pull * x; total.y += pull * y; total.z += pull * z;
        }
        __syncthreads();
    }
    if (i < n) accelerations[i] = total;
}

//// bitonic_sort
// A block sorts 2 * blockDim.x keys, upwards where its index is even, downwards where it is odd.
extern "C" __global__ void k(int *keys) {
    extern __shared__ int scratch[];
    int t = threadIdx.x, count = 2 * blockDim.x;
    int *mine = keys + blockIdx.x * count;
    bool down = blockIdx.x & 1;
    scratch[t] = mine[t];
    scratch[t + blockDim.x] = mine[t + blockDim.x];
    for (int size = 2; size <= count; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int low = 2 * t - (t & (stride - 1)), high = low + stride;
            bool descending = ((low & size) != 0) != down;
            int a = scratch[low], b = scratch[high];
            if ((a > b) != descending) { scratch[low] = b; scratch[high] = a; }
        }
    }
    __syncthreads();
    mine[t] = scratch[t];
    mine[t + blockDim.x] = scratch[t + blockDim.x];
}

//// transpose
// The column of padding keeps the reads of a column off one memory bank.
#define TILE 32
#define ROWS 8
extern "C" __global__ void k(const float *in, float *out, int width, int height) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < width && y + j < height) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < height && y + j < width) out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

//// sparse_matvec
// Compressed sparse rows, a warp to a row.
extern "C" __global__ void k(const int *starts, const int *columns, const float *values, const float *x, float *y,
                             int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float total = 0;
    for (int at = starts[row] + lane; at < starts[row + 1]; at += 32) total += values[at] * x[columns[at]];
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(~0u, total, offset);
    if (lane == 0) y[row] = total;
}

//// scan_lookback
// Inclusive prefix sums over all blocks in one launch. A block takes a ticket, so that the blocks before it have
// started; publishes its own sum; and adds what its predecessors published until one knows its whole prefix.
// A state is one word of 64 bits, hence never half written: 0, or 1 and a block's sum, or 2 and its prefix.
extern "C" __global__ void k(const int *x, int *out, int n, unsigned *ticket, volatile unsigned long long *states) {
    __shared__ int sums[32], before;
    __shared__ unsigned block;
    if (threadIdx.x == 0) block = atomicAdd(ticket, 1u);
    __syncthreads();
    int i = block * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    int value = i < n ? x[i] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(~0u, value, offset);
        if (lane >= offset) value += other;
    }
    if (lane == 31) sums[warp] = value;
    __syncthreads();
    for (int w = 0; w < warp; w++) value += sums[w];
    if (threadIdx.x == blockDim.x - 1) {
        states[block] = (block == 0 ? 2ull : 1ull) << 32 | (unsigned)value;
        int total = 0;
        for (int at = (int)block - 1; at >= 0; at--) {
            unsigned long long state;
            while ((state = states[at]) == 0) {}
            total += (int)(unsigned)state;
            if (state >> 32 == 2) break;
        }
        if (block > 0) states[block] = 2ull << 32 | (unsigned)(total + value);
        before = total;
    }
    __syncthreads();
    if (i < n) out[i] = value + before;
}

//// dot_bytes
// Rows of bytes by a vector of bytes, four to a step; signed and unsigned.
extern "C" __global__ void k(const int *a, const int *x, int *products, const unsigned *b, const unsigned *y,
                             unsigned *unsigned_products, int rows, int words) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int total = 0;
    unsigned unsigned_total = 0;
    for (int i = 0; i < words; i++) {
        total = __dp4a(a[row * words + i], x[i], total);
        unsigned_total = __dp4a(b[row * words + i], y[i], unsigned_total);
    }
    products[row] = total;
    unsigned_products[row] = unsigned_total;
}

//// convolution
// Taps in constant memory, a tile and its halo in shared memory, zeros beyond the ends.
#define RADIUS 4
#define BLOCK 64
__constant__ float taps[2 * RADIUS + 1] = {0.07f, -0.3f, 0.11f, 0.7f, 1.9f, -0.77f, 0.13f, 0.31f, -0.017f};
extern "C" __global__ void k(const float *x, float *out, int n) {
    __shared__ float tile[BLOCK + 2 * RADIUS];
    int start = blockIdx.x * BLOCK - RADIUS;
    for (int t = threadIdx.x; t < BLOCK + 2 * RADIUS; t += BLOCK)
        tile[t] = start + t >= 0 && start + t < n ? x[start + t] : 0.0f;
    __syncthreads();
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    float total = 0;
    for (int j = 0; j <= 2 * RADIUS; j++) total += taps[j] * tile[threadIdx.x + j];
    out[i] = total;
}

//// softmax
// A block to a row: the largest element, the sum of the exponentials, the quotients.
struct Largest { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };
template <class Combine> __device__ float over_block(float value, float *scratch, Combine combine) {
    for (int mask = 16; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(~0u, value, mask));
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[0];
    for (int w = 1; w < blockDim.x / 32; w++) value = combine(value, scratch[w]);
    __syncthreads();
    return value;
}
extern "C" __global__ void k(const float *x, float *out, int columns) {
    __shared__ float scratch[32];
    const float *row = x + blockIdx.x * columns;
    float most = -__int_as_float(0x7f800000), total = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
    most = over_block(most, scratch, Largest());
    for (int i = threadIdx.x; i < columns; i += blockDim.x) total += expf(row[i] - most);
    total = over_block(total, scratch, Sum());
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[blockIdx.x * columns + i] = expf(row[i] - most) / total;
}

//// bfloat16
// The intrinsics of cuda_bf16.h; sm_80 has only fma, and the header makes sums and products of it.
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat16 *x, const __nv_bfloat16 *y, const __nv_bfloat16 *z, __nv_bfloat16 *out,
                             float *wide) {
    int i = threadIdx.x;
    __nv_bfloat16 a = x[i], b = y[i], c = z[i], *r = out + i * 8;
    r[0] = __hadd(a, b); r[1] = __hsub(a, b); r[2] = __hmul(a, b); r[3] = __hfma(a, b, c);
    r[4] = __hmax(a, b); r[5] = __hneg(__habs(c));
    __nv_bfloat162 pair = __hfma2(__halves2bfloat162(a, b), __halves2bfloat162(c, a), __halves2bfloat162(b, c));
    r[6] = __low2bfloat16(pair); r[7] = __high2bfloat16(pair);
    wide[i] = __bfloat162float(a) * __bfloat162float(b) + __bfloat162float(c);
}

//// bfloat16_sm90 --gpu-architecture=compute_90
// Sums and products of their own since sm_90, in pairs.
#include <cuda_bf16.h>
extern "C" __global__ void k(const __nv_bfloat162 *x, const __nv_bfloat162 *y, __nv_bfloat162 *out) {
    int i = threadIdx.x;
    out[4 * i] = __hadd2(x[i], y[i]); out[4 * i + 1] = __hsub2(x[i], y[i]); out[4 * i + 2] = __hmul2(x[i], y[i]);
    out[4 * i + 3] = __hmin2(x[i], y[i]);
}

//// argmax
// A block to a row: where the largest element is, the first of several.
__device__ void keep_better(float &value, int &index, float other, int at) {
    if (other > value || (other == value && at < index)) { value = other; index = at; }
}
extern "C" __global__ void k(const float *x, int *where, float *largest, int columns) {
    __shared__ float values[32];
    __shared__ int indices[32];
    const float *row = x + blockIdx.x * columns;
    float value = -__int_as_float(0x7f800000);
    int index = 0x7fffffff, warps = blockDim.x / 32;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) keep_better(value, index, row[i], i);
    for (int offset = 16; offset > 0; offset /= 2)
        keep_better(value, index, __shfl_down_sync(~0u, value, offset), __shfl_down_sync(~0u, index, offset));
    if (threadIdx.x % 32 == 0) { values[threadIdx.x / 32] = value; indices[threadIdx.x / 32] = index; }
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < warps; w++) keep_better(value, index, values[w], indices[w]);
    where[blockIdx.x] = index;
    largest[blockIdx.x] = value;
}

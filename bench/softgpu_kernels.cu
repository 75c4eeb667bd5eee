// The kernels of bench/softgpu.py, as a programmer would write them. NVRTC compiles them when the
// bench runs: what is measured is what compilers emit.

extern "C" __global__ void vector_add(const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

#define TILE 16
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float total = 0;
    for (int step = 0; step < n / TILE; step++) {
        left[y][x] = a[row * n + step * TILE + x];
        right[y][x] = b[(step * TILE + y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) total += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = total;
}

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(~0u, value, offset);
    return value;
}

extern "C" __global__ void reduce(const float *x, float *out, int n) {
    __shared__ float sums[32];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

__device__ float block_result(float value, float *scratch, bool largest) {
    scratch[threadIdx.x] = value;
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width) {
            float other = scratch[threadIdx.x + width], mine = scratch[threadIdx.x];
            scratch[threadIdx.x] = largest ? fmaxf(mine, other) : mine + other;
        }
    }
    __syncthreads();
    float result = scratch[0];
    __syncthreads();
    return result;
}

// One block a row.
extern "C" __global__ void softmax(const float *x, float *out, int columns) {
    __shared__ float scratch[256];
    const float *row = x + blockIdx.x * columns;
    float *result = out + blockIdx.x * columns;
    float largest = -3.4e38f, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    largest = block_result(largest, scratch, true);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float value = __expf(row[i] - largest);
        result[i] = value;
        sum += value;
    }
    sum = block_result(sum, scratch, false);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] /= sum;
}

extern "C" __global__ void histogram(const unsigned *x, unsigned *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i] & 255], 1);
}

extern "C" __global__ void empty() {}

extern "C" __global__ void count_up(unsigned *counter) { atomicAdd(counter, 1); }

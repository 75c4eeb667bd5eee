// CUDA C that NVRTC compiles into tests/native/engine/ptx/nvrtc_*.ptx: one file for each
// `//// name [options]`; see tools/generate_engine_corpus.py.

//// vector_add
extern "C" __global__ void k(const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

//// saxpy
extern "C" __global__ void k(float a, const float *x, const float *y, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a * x[i] + y[i];
}

//// matmul
#define TILE 16
extern "C" __global__ void k(const float *a, const float *b, float *c, int n) {
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

//// reduce
extern "C" __global__ void k(const int *x, int *out, int n) {
    extern __shared__ int scratch[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    scratch[t] = i < n ? x[i] : 0;
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        __syncthreads();
        if (t < width) scratch[t] += scratch[t + width];
    }
    if (t == 0) atomicAdd(out, scratch[0]);
}

//// scan
extern "C" __global__ void k(const int *x, int *out) {
    int lane = threadIdx.x & 31, value = x[blockIdx.x * blockDim.x + threadIdx.x];
    __shared__ int sums[32];
    for (int offset = 1; offset < 32; offset *= 2) {
        int other = __shfl_up_sync(~0u, value, offset);
        if (lane >= offset) value += other;
    }
    if (lane == 31) sums[threadIdx.x / 32] = value;
    __syncthreads();
    for (int w = 0; w < threadIdx.x / 32; w++) value += sums[w];
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

//// warp
extern "C" __global__ void k(const int *x, unsigned *out) {
    int t = threadIdx.x, v = x[t];
    unsigned *mine = out + t * 16;
    mine[0] = __ballot_sync(~0u, v & 1);
    mine[1] = __any_sync(~0u, v == 5);
    mine[2] = __all_sync(~0u, v < 1000);
    mine[3] = __shfl_sync(~0u, v, 3);
    mine[4] = __shfl_xor_sync(~0u, v, 5);
    mine[5] = __shfl_down_sync(~0u, v, 2, 8);
    mine[6] = __shfl_up_sync(~0u, v, 1, 16);
    mine[7] = __match_any_sync(~0u, v & 3);
    int all; mine[8] = __match_all_sync(~0u, v >> 20, &all);
    mine[9] = all;
    mine[10] = __reduce_add_sync(~0u, v);
    mine[11] = __reduce_max_sync(~0u, v);
    mine[12] = __reduce_xor_sync(~0u, (unsigned)v);
    if (t % 3 == 0) mine[13] = __activemask(); else mine[13] = 0;
    mine[14] = __syncthreads_count(v & 1);
    mine[15] = __syncthreads_or(v == 5) * 2 + __syncthreads_and(v < 1000);
}

//// switch
__device__ __noinline__ int pick(int x, int y) {
    switch (x) {
    case 0: return y + 11;
    case 1: return y * 7;
    case 2: return y ^ 0x55;
    case 3: return y - 1000;
    case 4: return y << 3;
    case 5: return y / 3;
    case 6: return -y;
    case 7: return y | 0x1000;
    case 8: return y % 5;
    default: return 123456;
    }
}
extern "C" __global__ void k(const int *x, const int *y, int *out) {
    int i = threadIdx.x;
    out[i] = pick(x[i], y[i]);
}

//// struct
struct Item { int n; float f; double d[3]; char c[5]; };
extern "C" __global__ void k(Item item, double *out, char *bytes) {
    int i = threadIdx.x;
    out[i] = item.d[i % 3] * item.f + item.n;
    bytes[i] = item.c[i % 5];
}

//// constant
__constant__ float table[16] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597};
__constant__ int offsets[4];
__device__ int counter = 7;
__device__ float values[4] = {1.5f, 2.5f, 3.5f, 4.5f};
__device__ float *into = values + 1;
extern "C" __global__ void k(float *out, int *count) {
    int i = threadIdx.x;
    out[i] = table[i & 15] + into[i % 3] + offsets[i & 3];
    *count = 0;
    atomicAdd(&counter, 1);
    __syncthreads();
    if (i == 0) *count = counter;
}

//// functions
__device__ __noinline__ float square(float x) { return x * x; }
__device__ __noinline__ float cube(float x) { return x * x * x; }
__device__ __noinline__ float half_of(float x) { return x * 0.5f; }
typedef float (*function)(float);
__device__ function choices[3] = {square, cube, half_of};
__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void k(const float *x, float *out, int *fib) {
    int i = threadIdx.x;
    out[i] = choices[i % 3](x[i]);
    fib[i] = fibonacci(i % 12);
}

//// print
extern "C" __global__ void k(float x) {
    if (threadIdx.x < 2)
        printf("t=%d x=%.3f s=%s u=%u ll=%lld c=%c %% [%5d|%-4d|%04x|%6s|%-6s|%.2s]\n", threadIdx.x, x, "text", 4000000000u,
               1234567890123456789LL, 'z', 42, 7, 0xabc, "abc", "abc", "abc");
}

//// bits
extern "C" __global__ void k(const unsigned *x, const unsigned *y, unsigned *out) {
    int i = threadIdx.x;
    unsigned a = x[i], b = y[i], *mine = out + i * 16;
    mine[0] = __popc(a); mine[1] = __clz(a); mine[2] = __brev(a); mine[3] = __ffs(a);
    mine[4] = __byte_perm(a, b, 0x2461); mine[5] = __funnelshift_l(a, b, b & 31); mine[6] = __funnelshift_r(a, b, a & 31);
    mine[7] = (a & b) ^ (~a | 0x0f0f0f0f); mine[8] = __umulhi(a, b); mine[9] = __mulhi((int)a, (int)b);
    mine[10] = __mul24((int)a, (int)b); mine[11] = __usad(a, b, 100); mine[12] = a / (b | 1); mine[13] = a % (b | 1);
    mine[14] = (int)a / ((int)b | 1); mine[15] = __dp4a((int)a, (int)b, 17);
}

//// wide
extern "C" __global__ void k(const long long *x, const long long *y, long long *out) {
    int i = threadIdx.x;
    long long a = x[i], b = y[i], *mine = out + i * 10;
    mine[0] = a * b; mine[1] = __mul64hi(a, b); mine[2] = __umul64hi(a, b); mine[3] = a / (b | 1); mine[4] = a % (b | 1);
    mine[5] = (unsigned long long)a / (unsigned long long)(b | 1); mine[6] = __popcll(a); mine[7] = __clzll(a);
    mine[8] = a >> (b & 63); mine[9] = __brevll(a);
}

//// carry
extern "C" __global__ void k(const unsigned __int128 *x, const unsigned __int128 *y, unsigned __int128 *out) {
    int i = threadIdx.x;
    out[3 * i] = x[i] + y[i]; out[3 * i + 1] = x[i] - y[i]; out[3 * i + 2] = x[i] * y[i];
}

//// convert
extern "C" __global__ void k(const float *x, const double *d, int *out, long long *wide, float *reals) {
    int i = threadIdx.x;
    float f = x[i];
    int *mine = out + i * 12;
    mine[0] = __float2int_rz(f); mine[1] = __float2int_rn(f); mine[2] = __float2int_ru(f); mine[3] = __float2int_rd(f);
    mine[4] = __float2uint_rz(f); mine[5] = __double2int_rz(d[i]); mine[6] = __double2int_rn(d[i]);
    mine[7] = (unsigned char)__float2uint_rz(f); mine[8] = (short)__float2int_rz(f); mine[9] = __float_as_int(f);
    mine[10] = __double2hiint(d[i]); mine[11] = __double2loint(d[i]);
    wide[2 * i] = __float2ll_rz(f); wide[2 * i + 1] = __double2ll_rn(d[i]);
    float *r = reals + i * 12;
    r[0] = __double2float_rn(d[i]); r[1] = __double2float_rz(d[i]); r[2] = __double2float_ru(d[i]);
    r[3] = __double2float_rd(d[i]); r[4] = __int2float_rn(mine[9]); r[5] = __int2float_rz(mine[9]);
    r[6] = __int2float_ru(mine[9]); r[7] = __ll2float_rn(wide[2 * i + 1]); r[8] = rintf(f); r[9] = truncf(f);
    r[10] = __saturatef(f); r[11] = __uint2float_rd(mine[9]);
}

//// rounding
extern "C" __global__ void k(const float *x, const float *y, const float *z, float *out) {
    int i = threadIdx.x;
    float a = x[i], b = y[i], c = z[i], *r = out + i * 24;
    r[0] = __fadd_rn(a, b); r[1] = __fadd_rz(a, b); r[2] = __fadd_ru(a, b); r[3] = __fadd_rd(a, b);
    r[4] = __fmul_rn(a, b); r[5] = __fmul_rz(a, b); r[6] = __fmul_ru(a, b); r[7] = __fmul_rd(a, b);
    r[8] = __fmaf_rn(a, b, c); r[9] = __fmaf_rz(a, b, c); r[10] = __fmaf_ru(a, b, c); r[11] = __fmaf_rd(a, b, c);
    r[12] = __fdiv_rn(a, b); r[13] = __fdiv_rz(a, b); r[14] = __fdiv_ru(a, b); r[15] = __fdiv_rd(a, b);
    r[16] = __fsqrt_rn(fabsf(a)); r[17] = __fsqrt_rz(fabsf(a)); r[18] = __frcp_rn(b); r[19] = __frcp_rd(b);
    r[20] = __fsub_rn(a, b); r[21] = fminf(a, b); r[22] = fmaxf(a, b); r[23] = copysignf(a, b);
}

//// rounding_f64
extern "C" __global__ void k(const double *x, const double *y, const double *z, double *out) {
    int i = threadIdx.x;
    double a = x[i], b = y[i], c = z[i], *r = out + i * 12;
    r[0] = __dadd_rn(a, b); r[1] = __dadd_rz(a, b); r[2] = __dmul_ru(a, b); r[3] = __dmul_rd(a, b);
    r[4] = __fma_rn(a, b, c); r[5] = __fma_rz(a, b, c); r[6] = __fma_ru(a, b, c); r[7] = __ddiv_rn(a, b);
    r[8] = __ddiv_rd(a, b); r[9] = __dsqrt_rn(fabs(a)); r[10] = __drcp_rn(b); r[11] = fmin(a, b);
}

//// half
typedef unsigned short u16;
__device__ float to_float(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ u16 to_half(float f) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
extern "C" __global__ void k(const u16 *x, const u16 *y, const u16 *z, const float *f, u16 *out, float *wide) {
    int i = threadIdx.x;
    u16 a = x[i], b = y[i], c = z[i], *r = out + i * 8;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(r[0]) : "h"(a), "h"(b));
    asm("sub.rn.f16 %0, %1, %2;" : "=h"(r[1]) : "h"(a), "h"(b));
    asm("mul.rn.f16 %0, %1, %2;" : "=h"(r[2]) : "h"(a), "h"(b));
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r[3]) : "h"(a), "h"(b), "h"(c));
    r[4] = to_half(f[i]);
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(r[5]) : "f"(f[i]));
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r[6]) : "f"(f[i]));
    asm("max.f16 %0, %1, %2;" : "=h"(r[7]) : "h"(a), "h"(b));
    wide[i] = to_float(a);
}

//// spin
extern "C" __global__ void k(unsigned *lock, int *total) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0u) {
            total[0] += 1;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
}

//// producer
extern "C" __global__ void k(volatile int *flag, volatile int *data, int *out) {
    if (threadIdx.x >= 32) { // the second warp waits for the first
        while (flag[0] == 0) {}
        out[threadIdx.x - 32] = data[threadIdx.x - 32];
    } else {
        data[threadIdx.x] = threadIdx.x * 3;
        __threadfence();
        __syncwarp();
        if (threadIdx.x == 0) flag[0] = 1;
    }
}

//// divergent_barrier
extern "C" __global__ void k(int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, v = 0;
    if (t & 1) { for (int i = 0; i < t; i++) v += i; } else { v = -t; }
    s[t] = v;
    __syncthreads();
    if (t < 40) { v = s[(t * 7 + 3) % 64]; if (t % 5 == 0) v *= 2; else if (t % 3 == 0) return; }
    __syncthreads();
    out[t] = v + s[63 - t];
}

//// generic
extern "C" __global__ void k(int *global, int *out, int which) {
    __shared__ int shared[32];
    int local[32], t = threadIdx.x;
    for (int i = 0; i < 32; i++) local[i] = i * which;
    shared[t] = t * 100;
    __syncthreads();
    int *p = t % 3 == 0 ? global : t % 3 == 1 ? shared : local;
    p[t] += 1;
    out[t] = p[t] + (__isShared(p) ? 10000 : 0) + (__isGlobal(p) ? 20000 : 0) + (__isLocal(p) ? 40000 : 0);
}

//// assertion
// What assert() of <assert.h> is; NVRTC declares the function.
extern "C" __global__ void k(int x) {
    if (x >= 10) __assertfail("x < 10", "kernel.cu", 5, "k", 1);
}

//// atomics
extern "C" __global__ void k(unsigned *u, int *s, float *f, double *d, unsigned long long *w) {
    int t = threadIdx.x;
    atomicInc(&u[0], 20u); atomicDec(&u[1], 5u); atomicOr(&u[2], 1u << (t & 31)); atomicAnd(&u[3], ~(1u << (t & 31)));
    atomicXor(&u[4], t); atomicMax(&u[5], t); atomicMin(&s[0], -t); atomicMax(&s[1], t - 50); atomicSub(&s[2], t);
    atomicAdd(f, 0.5f); atomicAdd(d, 0.25); atomicAdd(w, 1ull << 33); atomicExch(&u[6], 99u); atomicCAS(&w[1], 0ull, 5ull);
}

//// vectors
extern "C" __global__ void k(const float4 *x, float4 *out, const uchar4 *b, uchar4 *bytes, const double2 *d, double2 *pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = x[i]; out[i] = make_float4(v.w, v.z, v.y, v.x);
    uchar4 c = b[i]; bytes[i] = make_uchar4(c.x + 1, c.y + 2, c.z + 3, c.w + 4);
    double2 e = d[i]; pairs[i] = make_double2(e.y, e.x * 2);
}

//// mandelbrot
extern "C" __global__ void k(int *out, int width, int height, int limit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float cr = x * 3.0f / width - 2, ci = y * 2.0f / height - 1, zr = 0, zi = 0;
    int n = 0;
    for (; n < limit && zr * zr + zi * zi < 4; n++) { float t = zr * zr - zi * zi + cr; zi = 2 * zr * zi + ci; zr = t; }
    out[y * width + x] = n;
}

//// empty
extern "C" __global__ void k() {}

//// debug -G
__device__ int triple(int x) { return x * 3; }
extern "C" __global__ void k(const int *x, int *out) {
    int i = threadIdx.x, total = 0;
    for (int j = 0; j <= i; j++) total += triple(x[j]);
    out[i] = total;
}

//// lineinfo -lineinfo
__device__ __noinline__ int triple(int x) { return x * 3; }
extern "C" __global__ void k(const int *x, int *out) { out[threadIdx.x] = triple(x[threadIdx.x]) + 1; }

//// wmma_matmul
// c = alpha a b, rows of a by columns of b: a warp makes a tile of 16 x 16, as NVIDIA's samples do.
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const half *a, const half *b, float *c, int n, int depth, float alpha) {
    int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int at = 0; at < depth; at += 16) {
        wmma::load_matrix_sync(left, a + row * depth + at, depth);
        wmma::load_matrix_sync(right, b + column * depth + at, depth);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= alpha;
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

//// wmma_bytes
// One tile of 32 x 8 from shared memory, by elements of a byte.
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const signed char *a, const signed char *b, int *c) {
    __shared__ __align__(32) signed char left[32 * 16], right[16 * 8];
    for (int i = threadIdx.x; i < 32 * 16; i += 32) left[i] = a[i];
    for (int i = threadIdx.x; i < 16 * 8; i += 32) right[i] = b[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::col_major> x;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::row_major> y;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> sum;
    wmma::load_matrix_sync(x, left, 32);
    wmma::load_matrix_sync(y, right, 8);
    wmma::fill_fragment(sum, 1);
    wmma::mma_sync(sum, x, y, sum);
    wmma::store_matrix_sync(c, sum, 32, wmma::mem_col_major);
}

//// mma_matmul
// A block of one warp: 16 rows by 8 columns through shared memory, ldmatrix and mma.sync.
typedef unsigned u32;
extern "C" __global__ void k(const uint4 *a, const uint4 *b, float *c, int depth) {
    __shared__ uint4 left[16][2], right[16]; // 16 rows of 16 halves; 16 rows of 8
    int lane = threadIdx.x;
    float d[4] = {0, 0, 0, 0};
    for (int at = 0; at < depth; at += 16) {
        left[lane / 2][lane % 2] = a[(lane / 2 * depth + at) / 8 + lane % 2];
        if (lane < 16) right[lane] = b[at + lane];
        __syncwarp();
        u32 x[4], y[2], from;
        from = (u32)__cvta_generic_to_shared(&left[lane % 16][lane / 16]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
        from = (u32)__cvta_generic_to_shared(&right[lane % 16]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1]) : "r"(from) : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
        __syncwarp();
    }
    for (int i = 0; i < 4; i++) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

//// sparse_mma
extern "C" __global__ void k(float *out) {
    float c[4] = {0, 0, 0, 0};
    asm("mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(0), "r"(0), "r"(0), "r"(0), "r"(0));
    out[threadIdx.x] = c[0];
}

//// sm90 --gpu-architecture=compute_90
extern "C" __global__ void k(const float *x, float *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] * 2 + __shfl_xor_sync(~0u, x[i], 16);
}

//// numba_helper --relocatable-device-code=true
// By numba's convention: the result through a pointer, a status returned.
extern "C" __device__ int polynomial(double *result, double x, int degree) {
    double total = 0;
    for (int k = 0; k < degree; k++) total = total * x + (k + 1);
    *result = total;
    return 0;
}

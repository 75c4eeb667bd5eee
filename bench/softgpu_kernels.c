/* Kernels of the software GPU beside the same loops in plain C: `softgpu_kernels PTX NUMBA_PTX [threads]`
 * prints `name <tab> plain time / kernel's time`, or `name <tab> nan` where a result is wrong.
 *
 * Kernel and loop take turns within one process; each ratio is that of the medians. Time is the
 * process's CPU time, which neighbours on the machine disturb least. With `threads`, which compares one
 * thread with two, only seconds of the matrix product by the wall clock are printed. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "softgpu_driver.h"

enum { VECTOR = 1 << 22, SIDE = 512, ROWS = 2048, COLUMNS = 1024, BINS = 256, ROUNDS = 7 };

static float *x, *y, *expected, *result;
static CUdeviceptr dx, dy, dout;
static const char *ptx, *numba_ptx;

/* ---- the plain loops ---- */

__attribute__((noinline)) static void add(const float *restrict a, const float *restrict b, float *restrict out, int n) {
    for (int i = 0; i < n; i++)
        out[i] = a[i] + b[i];
}

__attribute__((noinline)) static void multiply(const float *a, const float *b, float *c, int n) {
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++) {
            float total = 0;
            for (int k = 0; k < n; k++)
                total += a[row * n + k] * b[k * n + column];
            c[row * n + column] = total;
        }
}

__attribute__((noinline)) static float sum(const float *a, int n) {
    float total = 0;
    for (int i = 0; i < n; i++)
        total += a[i];
    return total;
}

__attribute__((noinline)) static void soften(const float *a, float *out, int rows, int columns) {
    for (int r = 0; r < rows; r++, a += columns, out += columns) {
        float largest = -INFINITY, total = 0;
        for (int i = 0; i < columns; i++)
            largest = fmaxf(largest, a[i]);
        for (int i = 0; i < columns; i++)
            total += out[i] = expf(a[i] - largest);
        for (int i = 0; i < columns; i++)
            out[i] /= total;
    }
}

__attribute__((noinline)) static void count(const unsigned *a, unsigned *bins, int n) {
    for (int i = 0; i < n; i++)
        __atomic_fetch_add(&bins[a[i] & (BINS - 1)], 1, __ATOMIC_RELAXED);
}

/* ---- each figure: the kernel, the loop, and whether they agree ---- */

static void launch(CUfunction function, unsigned gx, unsigned gy, unsigned bx, unsigned by, void **parameters) {
    MUST(cuLaunchKernel(function, gx, gy, 1, bx, by, 1, 0, NULL, parameters, NULL));
    MUST(cuCtxSynchronize());
}

static bool same(size_t values) {
    MUST(cuMemcpyDtoH_v2(result, dout, values * sizeof *result));
    return memcmp(result, expected, values * sizeof *result) == 0;
}

static void run_add(CUfunction function) {
    int n = VECTOR;
    launch(function, VECTOR / 256, 1, 256, 1, (void *[]){&dx, &dy, &dout, &n});
}

/* Numba passes an array as seven values. */
static void run_numba_add(CUfunction function) {
    uint64_t none = 0, values = VECTOR, item = sizeof(float);
    void *parameters[21];
    CUdeviceptr *const data[] = {&dx, &dy, &dout};
    for (int i = 0; i < 3; i++) {
        void *array[] = {&none, &none, &values, &item, data[i], &values, &item};
        memcpy(parameters + 7 * i, array, sizeof array);
    }
    launch(function, VECTOR / 256, 1, 256, 1, parameters);
}
static void plain_add(void) { add(x, y, expected, VECTOR); }
static bool check_add(void) { return same(VECTOR); }

static void run_multiply(CUfunction function) {
    int n = SIDE;
    launch(function, SIDE / 16, SIDE / 16, 16, 16, (void *[]){&dx, &dy, &dout, &n});
}
static void plain_multiply(void) { multiply(x, y, expected, SIDE); }
static bool check_multiply(void) { return same((size_t)SIDE * SIDE); } /* small integers: exact in any order */

static void run_sum(CUfunction function) {
    int n = VECTOR;
    MUST(cuMemsetD8_v2(dout, 0, sizeof(float)));
    launch(function, 64, 1, 256, 1, (void *[]){&dx, &dout, &n});
}
static void plain_sum(void) { expected[0] = sum(x, VECTOR); }
static bool check_sum(void) { return same(1); }

static void run_soften(CUfunction function) {
    int columns = COLUMNS;
    launch(function, ROWS, 1, 256, 1, (void *[]){&dx, &dout, &columns});
}
static void plain_soften(void) { soften(x, expected, ROWS, COLUMNS); }
static bool check_soften(void) {
    MUST(cuMemcpyDtoH_v2(result, dout, sizeof(float) * ROWS * COLUMNS));
    bool close = true;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        close &= fabsf(result[i] - expected[i]) <= 4e-6f * expected[i];
    return close;
}

static void run_count(CUfunction function) {
    int n = VECTOR;
    MUST(cuMemsetD8_v2(dout, 0, BINS * sizeof(unsigned)));
    launch(function, 64, 1, 256, 1, (void *[]){&dx, &dout, &n});
}
static void plain_count(void) {
    memset(expected, 0, BINS * sizeof(unsigned));
    count((const unsigned *)x, (unsigned *)expected, VECTOR);
}
static bool check_count(void) { return same(BINS); }

typedef struct {
    const char *name, *kernel;
    void (*run)(CUfunction function);
    void (*plain)(void);
    bool (*check)(void);
} figure;

static const figure figures[] = {
    {"vector add", "vector_add", run_add, plain_add, check_add},
    {"vector add, numba", NULL, run_numba_add, plain_add, check_add},
    {"tiled matmul", "matmul", run_multiply, plain_multiply, check_multiply},
    {"reduction", "reduce", run_sum, plain_sum, check_sum},
    {"softmax", "softmax", run_soften, plain_soften, check_soften},
    {"histogram", "histogram", run_count, plain_count, check_count},
};

static void measure(const figure *f, CUfunction function) {
    double ours[ROUNDS], plain[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        f->run(function);
        double middle = seconds(CLOCK_PROCESS_CPUTIME_ID);
        f->plain();
        double end = seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (round >= 0)
            ours[round] = middle - start, plain[round] = end - middle;
    }
    printf("%s\t%g\n", f->name, f->check() ? median(plain, ROUNDS) / median(ours, ROUNDS) : (double)NAN);
    fflush(stdout);
}

/* The product eight times in one launch: neither waking a helper nor waiting for the last block is to count. */
static void run_multiplies(CUfunction function) {
    int n = SIDE;
    void *parameters[] = {&dx, &dy, &dout, &n};
    MUST(cuLaunchKernel(function, SIDE / 16, SIDE / 16, 8, 16, 16, 1, 0, NULL, parameters, NULL));
    MUST(cuCtxSynchronize());
}

static void print_seconds(void) {
    double taken[ROUNDS];
    CUfunction function = function_of(ptx, "matmul");
    for (int round = -1; round < ROUNDS; round++) {
        double start = seconds(CLOCK_MONOTONIC);
        run_multiplies(function);
        if (round >= 0)
            taken[round] = seconds(CLOCK_MONOTONIC) - start;
    }
    plain_multiply();
    printf("seconds\t%g\n", check_multiply() ? median(taken, ROUNDS) : (double)NAN);
}

/* The name of the only kernel of numba's text. */
static const char *only_entry(const char *path) {
    static char name[4096];
    const char *entry = strstr(read_text(path), ".entry ");
    return entry != NULL && sscanf(entry, ".entry %4095[^( \n]", name) == 1 ? name : "";
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    ptx = argv[1], numba_ptx = argv[2];
    x = malloc(VECTOR * sizeof *x), y = malloc(VECTOR * sizeof *y);
    expected = malloc(VECTOR * sizeof *expected), result = malloc(VECTOR * sizeof *result);
    for (int i = 0; i < VECTOR; i++) { /* small integers, so that sums are exact in any order */
        x[i] = (float)((unsigned)i * 2654435761u >> 29);
        y[i] = (float)((unsigned)i * 2246822519u >> 29);
    }
    open_device();
    MUST(cuMemAlloc_v2(&dx, VECTOR * sizeof *x));
    MUST(cuMemAlloc_v2(&dy, VECTOR * sizeof *y));
    MUST(cuMemAlloc_v2(&dout, VECTOR * sizeof *x));
    MUST(cuMemcpyHtoD_v2(dx, x, VECTOR * sizeof *x));
    MUST(cuMemcpyHtoD_v2(dy, y, VECTOR * sizeof *y));
    if (argc > 3 && strcmp(argv[3], "threads") == 0) {
        print_seconds();
        return 0;
    }
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if (argc <= 3 || strcmp(argv[3], figures[i].name) == 0)
            measure(&figures[i], figures[i].kernel ? function_of(ptx, figures[i].kernel)
                                                   : function_of(numba_ptx, only_entry(numba_ptx)));
    return 0;
}

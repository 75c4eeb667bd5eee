/* The driver under load from several threads, built with the address and undefined-behaviour sanitizers:
 * memory, streams, events, host functions, modules and launches, and contexts that go while others work.
 * Says nothing and ends with 0 when all is well. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver_program.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuModuleLoadDataEx(CUmodule *, const void *, unsigned, int *, void **);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult cuLibraryLoadData(CUlibrary *, const void *, int *, void **, unsigned, int *, void **, unsigned);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuLibraryGetKernel(CUkernel *, CUlibrary, const char *);
CUresult cuLinkCreate_v2(unsigned, int *, void **, CUlinkState *);
CUresult cuLinkAddData_v2(CUlinkState, int, void *, size_t, const char *, unsigned, int *, void **);
CUresult cuLinkComplete(CUlinkState, void **, size_t *);
CUresult cuLinkDestroy(CUlinkState);

static const char PTX[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .global .align 4 .u32 seed = 7;\n"
                          ".visible .entry add(.param .u64 out, .param .u32 amount) {\n"
                          "  .reg .u64 %rd<4>;\n  .reg .u32 %r<6>;\n"
                          "  ld.param.u64 %rd1, [out];\n  ld.param.u32 %r1, [amount];\n"
                          "  cvta.to.global.u64 %rd1, %rd1;\n"
                          "  mov.u32 %r2, %tid.x;\n  mov.u32 %r3, %ctaid.x;\n  mov.u32 %r4, %ntid.x;\n"
                          "  mad.lo.u32 %r2, %r3, %r4, %r2;\n"
                          "  mul.wide.u32 %rd2, %r2, 4;\n  add.u64 %rd1, %rd1, %rd2;\n"
                          "  ld.global.u32 %r5, [%rd1];\n  add.u32 %r5, %r5, %r1;\n"
                          "  st.global.u32 [%rd1], %r5;\n  ret;\n}\n";

static CUcontext primary;

static void count_up(void *counter) {
    __atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
}

static void launch_add(CUfunction function, CUdeviceptr values, unsigned amount, CUstream stream) {
    void *parameters[] = {&values, &amount};
    DO(cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
}

static void memory_work(unsigned *seed) {
    CUdeviceptr held[16] = {0};
    unsigned char wrote[4096], got[4096];
    for (int i = 0; i < 400; i++) {
        int slot = rand_r(seed) % 16;
        size_t size = 4096 + (size_t)rand_r(seed) % (3u << 20);
        if (held[slot] != 0)
            DO(cuMemFree_v2(held[slot]));
        held[slot] = 0;
        if (cuMemAlloc_v2(&held[slot], size) != CUDA_SUCCESS)
            continue;
        memset(wrote, slot + 1, sizeof wrote);
        DO(cuMemcpyHtoD_v2(held[slot] + size - sizeof wrote, wrote, sizeof wrote));
        DO(cuMemcpyDtoH_v2(got, held[slot] + size - sizeof wrote, sizeof wrote));
        CHECK(memcmp(wrote, got, sizeof wrote) == 0);
        MUST(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(held[slot] + size - 1, wrote, 2));
    }
    for (int slot = 0; slot < 16; slot++)
        DO(cuMemFree_v2(held[slot]));
}

static void launch_work(void) {
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUevent begin, end;
    CUdeviceptr values;
    unsigned got[512];
    int called = 0;
    float milliseconds;
    DO(cuModuleLoadData(&module, PTX));
    DO(cuModuleGetFunction(&function, module, "add"));
    DO(cuStreamCreate(&stream, 1));
    DO(cuEventCreate(&begin, 0));
    DO(cuEventCreate(&end, 0));
    DO(cuMemAlloc_v2(&values, sizeof got));
    DO(cuMemsetD32_v2(values, 1000, 512));
    DO(cuEventRecord(begin, stream));
    for (unsigned i = 1; i <= 20; i++) {
        launch_add(function, values, i, stream);
        DO(cuLaunchHostFunc(stream, count_up, &called));
    }
    DO(cuEventRecord(end, stream));
    DO(cuStreamSynchronize(stream));
    CHECK(called == 20);
    DO(cuMemcpyDtoH_v2(got, values, sizeof got));
    for (int i = 0; i < 512; i++)
        CHECK(got[i] == 1000 + 210);
    DO(cuEventElapsedTime_v2(&milliseconds, begin, end));
    CHECK(milliseconds > 0);
    DO(cuMemFree_v2(values));
    DO(cuEventDestroy_v2(begin));
    DO(cuEventDestroy_v2(end));
    DO(cuStreamDestroy_v2(stream));
    MUST(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    DO(cuModuleUnload(module));
    MUST(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    DO(cuCtxSetCurrent(primary));
    for (int round = 0; round < 3; round++) {
        memory_work(&seed);
        launch_work();
    }
    return NULL;
}

static void context_work(void) {
    for (int i = 0; i < 5; i++) {
        CUcontext context;
        CUstream stream;
        CUmodule module;
        CUdeviceptr kept, variable;
        size_t size;
        DO(cuCtxCreate_v2(&context, 0, 0));
        DO(cuStreamCreate(&stream, 0));
        DO(cuMemAlloc_v2(&kept, 5 << 20));
        DO(cuModuleLoadData(&module, PTX));
        DO(cuModuleGetGlobal_v2(&variable, &size, module, "seed"));
        unsigned seed = 0;
        DO(cuMemcpyDtoH_v2(&seed, variable, sizeof seed));
        CHECK(seed == 7 && size == 4);
        DO(cuCtxDestroy_v2(context)); /* with all that in it */
        DO(cuCtxSetCurrent(primary));
    }
}

static void link_work(void) {
    CUlinkState state;
    CUlibrary library;
    CUkernel kernel;
    CUdeviceptr values;
    void *blob;
    size_t size;
    char log[512] = "";
    int options[] = {5, 6};
    void *option_values[] = {log, (void *)(uintptr_t)sizeof log};
    DO(cuLinkCreate_v2(0, NULL, NULL, &state));
    DO(cuLinkAddData_v2(state, 1, (void *)(uintptr_t)PTX, sizeof PTX, "one", 0, NULL, NULL));
    DO(cuLinkComplete(state, &blob, &size));
    char *copy = malloc(size); /* exactly as large as said */
    memcpy(copy, blob, size);
    DO(cuLinkDestroy(state));
    DO(cuLibraryLoadData(&library, copy, NULL, NULL, 0, NULL, NULL, 0));
    free(copy);
    DO(cuLibraryGetKernel(&kernel, library, "add"));
    DO(cuMemAlloc_v2(&values, 2048));
    DO(cuMemsetD32_v2(values, 1, 512));
    launch_add((CUfunction)kernel, values, 41, NULL);
    unsigned got = 0;
    DO(cuMemcpyDtoH_v2(&got, values + 2044, sizeof got));
    CHECK(got == 42);
    DO(cuMemFree_v2(values));
    DO(cuLibraryUnload(library));
    MUST(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
    CUmodule module;
    MUST(CUDA_ERROR_INVALID_PTX,
         cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\n.visible .entry {", 2, options, option_values));
    CHECK(log[0] != '\0');
    MUST(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, "\177ELF"));
    MUST(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, ""));
    MUST(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "x"));
}

/* A kernel that reaches for memory it does not have ends its context, and only that. */
static void fault_work(void) {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    DO(cuCtxCreate_v2(&context, 0, 0));
    DO(cuModuleLoadData(&module, PTX));
    DO(cuModuleGetFunction(&function, module, "add"));
    launch_add(function, 64, 1, NULL);
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CUdeviceptr address;
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&address, 4));
    DO(cuCtxDestroy_v2(context));
    DO(cuCtxSetCurrent(primary));
    DO(cuCtxSynchronize());
}

static void fork_work(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
    pthread_t threads[3];
    size_t before, after, total;
    void *host;
    DO(cuInit(0));
    DO(cuDevicePrimaryCtxRetain(&primary, 0));
    DO(cuCtxSetCurrent(primary));
    DO(cuMemGetInfo_v2(&before, &total));
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    context_work();
    fork_work();
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    link_work();
    fault_work();
    DO(cuMemHostAlloc(&host, 100000, 0));
    memset(host, 1, 100000);
    DO(cuMemFreeHost(host));
    DO(cuMemGetInfo_v2(&after, &total));
    CHECK(before == after);
    DO(cuDevicePrimaryCtxReset_v2(0));
    DO(cuMemGetInfo_v2(&after, &total));
    CHECK(before == after);
    DO(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}

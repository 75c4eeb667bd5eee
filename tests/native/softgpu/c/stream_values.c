/* Values in memory that streams wait for and write, and attributes of streams. Says nothing when all is
 * well. */
#include "driver_program.h"

CUresult cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult cuStreamGetPriority(CUstream, int *);
CUresult cuStreamGetAttribute(CUstream, int, CUlaunchAttributeValue *);
CUresult cuStreamSetAttribute(CUstream, int, const CUlaunchAttributeValue *);
CUresult cuStreamCopyAttributes(CUstream, CUstream);
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuStreamWaitValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamWriteValue32_v2(CUstream, CUdeviceptr, uint32_t, unsigned);
CUresult cuStreamWriteValue64_v2(CUstream, CUdeviceptr, uint64_t, unsigned);
CUresult cuStreamBatchMemOp_v2(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);

static CUstream stream, other;
static CUdeviceptr words;

/* The stream waits while the word is `before`, and goes on when it is `after`. */
static void waits_until(uint64_t *flag, uint64_t before, uint64_t after, uint64_t value, unsigned how, bool wide) {
    CUdeviceptr address = (uintptr_t)flag;
    __atomic_store_n(flag, before, __ATOMIC_SEQ_CST);
    if (wide)
        DO(cuStreamWaitValue64_v2(stream, address, value, how));
    else
        DO(cuStreamWaitValue32_v2(stream, address, (uint32_t)value, how));
    DO(cuMemsetD32Async(words, (unsigned)after, 1, stream));
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    __atomic_store_n(flag, after, __ATOMIC_SEQ_CST);
    DO(cuStreamSynchronize(stream));
}

static void the_host_lets_a_stream_go_on(uint64_t *flag) {
    waits_until(flag, 6, 7, 7, CU_STREAM_WAIT_VALUE_GEQ, false);
    waits_until(flag, UINT32_MAX, 3, 3, CU_STREAM_WAIT_VALUE_GEQ, false); /* less, counting in a circle */
    waits_until(flag, 9, 8, 8, CU_STREAM_WAIT_VALUE_EQ, false);
    waits_until(flag, 3, 4, 12, CU_STREAM_WAIT_VALUE_AND, false);
    waits_until(flag, UINT32_MAX, 1, 0xFFFF0000, CU_STREAM_WAIT_VALUE_NOR, false);
    waits_until(flag, 5, 1ull << 40, 1ull << 40, CU_STREAM_WAIT_VALUE_GEQ, true);
    waits_until(flag, UINT32_MAX, 1ull << 33, 1ull << 33, CU_STREAM_WAIT_VALUE_EQ, true);
}

static void one_stream_waits_for_another(void) {
    uint64_t got = 0;
    DO(cuMemsetD32_v2(words, 0, 4));
    DO(cuStreamWaitValue64_v2(stream, words + 8, 1ull << 35, CU_STREAM_WAIT_VALUE_EQ));
    DO(cuMemsetD32Async(words, 55, 1, stream));
    DO(cuStreamWriteValue64_v2(other, words + 8, 1ull << 35, 0));
    DO(cuStreamSynchronize(stream));
    CUstreamBatchMemOpParams batch[] = {
        {.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words, {.value = 66}, 0, 0}},
        {.memoryBarrier = {CU_STREAM_MEM_OP_BARRIER, 0}},
        {.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, words, {.value = 66}, CU_STREAM_WAIT_VALUE_EQ, 0}},
        {.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 4, {.value = 67}, 0, 0}},
    };
    DO(cuStreamBatchMemOp_v2(stream, 4, batch, 0));
    DO(cuStreamSynchronize(stream));
    DO(cuMemcpyDtoH_v2(&got, words, 8));
    CHECK(got == (67ull << 32 | 66));
}

static void nonsense_is_refused(void) {
    CUstreamBatchMemOpParams strange = {.operation = 99};
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 1, &strange, 0));
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(stream, 1, NULL, 0));
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32_v2(stream, words + 1, 0, 0));
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64_v2(stream, words + 4, 0, 0));
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(stream, 64, 0, 0));
    MUST(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32_v2(stream, words, 0, CU_STREAM_WAIT_VALUE_FLUSH));
}

static void a_context_that_goes_does_not_wait_for_a_value(void) {
    CUcontext context;
    CUdeviceptr never;
    CUstream waiting;
    DO(cuCtxCreate_v2(&context, 0, 0));
    DO(cuStreamCreate(&waiting, 1));
    DO(cuMemAlloc_v2(&never, 4));
    DO(cuMemsetD32_v2(never, 0, 1));
    DO(cuStreamWaitValue32_v2(waiting, never, 1, CU_STREAM_WAIT_VALUE_EQ));
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    DO(cuCtxDestroy_v2(context));
}

static void streams_have_attributes(void) {
    CUstream urgent, plain;
    CUlaunchAttributeValue value = {.number = 2}, got;
    int priority = 9;
    DO(cuStreamCreateWithPriority(&urgent, 1, -100));
    DO(cuStreamCreate(&plain, 1));
    DO(cuStreamGetPriority(urgent, &priority));
    CHECK(priority == -5);
    DO(cuStreamGetAttribute(plain, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
    CHECK(got.number == 1);
    DO(cuStreamSetAttribute(urgent, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    DO(cuStreamCopyAttributes(plain, urgent));
    DO(cuStreamGetAttribute(plain, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
    CHECK(got.number == 2);
    DO(cuStreamGetAttribute(plain, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    CHECK(got.number == -5);
    MUST(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(plain, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
}

int main(void) {
    CUcontext context;
    uint64_t *flag;
    DO(cuInit(0));
    a_context_that_goes_does_not_wait_for_a_value();
    DO(cuCtxCreate_v2(&context, 0, 0));
    DO(cuStreamCreate(&stream, 1));
    DO(cuStreamCreate(&other, 1));
    DO(cuMemAlloc_v2(&words, 16));
    DO(cuMemHostAlloc((void **)&flag, 8, 0));
    the_host_lets_a_stream_go_on(flag);
    one_stream_waits_for_another();
    nonsense_is_refused();
    streams_have_attributes();
    DO(cuCtxDestroy_v2(context));
    return 0;
}

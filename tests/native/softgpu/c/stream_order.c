/* What streams, events and the default streams order, and what they leave unordered. A host function
 * that waits for this very thread stands for work that is not done yet. Says nothing when all is well. */
#include "driver_program.h"

CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr, unsigned, size_t);
CUresult cuStreamQuery_ptsz(CUstream);

enum { BLOCKING = 0, NON_BLOCKING = 1 };

static CUfunction add, twice;

static void launch_add(CUdeviceptr values, unsigned amount, CUstream stream) {
    void *parameters[] = {&values, &amount};
    DO(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    amount = 77; /* the launch has taken what it needs */
}

static void launch_twice(CUdeviceptr values, CUstream stream) {
    void *parameters[] = {&values};
    DO(cuLaunchKernel(twice, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static unsigned read_word(CUdeviceptr address) {
    unsigned got = 0;
    DO(cuMemcpyDtoH_v2(&got, address, sizeof got));
    return got;
}

static void load(void) {
    CUmodule module;
    DO(cuModuleLoadData(&module, ADD_PTX));
    DO(cuModuleGetFunction(&add, module, "add"));
    DO(cuModuleGetFunction(&twice, module, "twice"));
}

static void work_waits_for_what_is_before_it(void) {
    gate held = GATE_CLOSED;
    CUstream stream;
    CUevent before, after;
    CUdeviceptr word;
    unsigned *pinned;
    float milliseconds;
    DO(cuStreamCreate(&stream, NON_BLOCKING));
    DO(cuEventCreate(&before, 0));
    DO(cuEventCreate(&after, 0));
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuMemHostAlloc((void **)&pinned, 4, 0));
    *pinned = 5;
    DO(cuEventRecord(before, stream));
    DO(cuLaunchHostFunc(stream, pass, &held));
    DO(cuMemcpyHtoDAsync_v2(word, pinned, 4, stream));
    launch_add(word, 10, stream);
    launch_twice(word, stream);
    launch_add(word, 1, stream);
    DO(cuMemcpyDtoHAsync_v2(pinned, word, 4, stream));
    DO(cuEventRecord(after, stream));
    CHECK(*pinned == 5);
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    MUST(CUDA_SUCCESS, cuEventQuery(before));
    MUST(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    MUST(CUDA_ERROR_NOT_READY, cuEventElapsedTime_v2(&milliseconds, before, after));
    open_gate(&held);
    DO(cuEventSynchronize(after));
    CHECK(*pinned == (5 + 10) * 2 + 1);
    DO(cuEventElapsedTime_v2(&milliseconds, before, after));
    CHECK(milliseconds > 0);
    DO(cuStreamQuery(stream));
    DO(cuEventDestroy_v2(before));
    DO(cuEventDestroy_v2(after));
    DO(cuStreamDestroy_v2(stream));
    DO(cuMemFreeHost(pinned));
}

static void the_legacy_stream_is_ordered_with_blocking_streams_only(void) {
    gate held = GATE_CLOSED;
    CUstream first, second, apart;
    CUdeviceptr words;
    DO(cuStreamCreate(&first, BLOCKING));
    DO(cuStreamCreate(&second, BLOCKING));
    DO(cuStreamCreate(&apart, NON_BLOCKING));
    DO(cuMemAlloc_v2(&words, 16));
    DO(cuLaunchHostFunc(first, pass, &held));
    DO(cuMemsetD32Async(words, 1, 1, second)); /* nothing orders two blocking streams */
    DO(cuStreamQuery(second));
    DO(cuMemsetD32_v2_ptds(words, 1, 1)); /* nor the thread's own stream with one of them */
    DO(cuStreamQuery_ptsz(NULL));
    DO(cuMemsetD32_v2(words + 4, 2, 1)); /* the legacy stream waits for both */
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_LEGACY));
    DO(cuMemsetD32Async(words + 8, 3, 1, second)); /* and now `second` waits for the legacy stream */
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(second));
    DO(cuMemsetD32_v2_ptds(words + 8, 3, 1));
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery_ptsz(NULL));
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    DO(cuMemsetD32Async(words + 12, 4, 1, apart)); /* never the non-blocking one */
    DO(cuStreamSynchronize(apart));
    open_gate(&held);
    DO(cuStreamSynchronize(NULL));
    DO(cuStreamSynchronize(second));
    CHECK(read_word(words + 4) == 2 && read_word(words + 8) == 3 && read_word(words + 12) == 4);
    DO(cuStreamDestroy_v2(first));
    DO(cuStreamDestroy_v2(second));
    DO(cuStreamDestroy_v2(apart));
}

static void a_stream_waits_for_the_event_as_it_was_recorded(void) {
    gate held = GATE_CLOSED, later = GATE_CLOSED;
    CUstream from, to;
    CUevent event;
    CUdeviceptr word;
    DO(cuStreamCreate(&from, NON_BLOCKING));
    DO(cuStreamCreate(&to, NON_BLOCKING));
    DO(cuEventCreate(&event, 2));
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuStreamWaitEvent(to, event, 0)); /* never recorded: complete */
    DO(cuStreamQuery(to));
    DO(cuLaunchHostFunc(from, pass, &held));
    DO(cuMemsetD32Async(word, 20, 1, from));
    DO(cuEventRecord(event, from));
    DO(cuStreamWaitEvent(to, event, 0));
    launch_twice(word, to);
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(to));
    DO(cuLaunchHostFunc(from, pass, &later));
    DO(cuEventRecord(event, from)); /* recorded anew: who waited for the first waits for that */
    open_gate(&held);
    DO(cuStreamSynchronize(to));
    CHECK(read_word(word) == 40);
    MUST(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    DO(cuEventDestroy_v2(event)); /* while its record is still to come */
    MUST(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    open_gate(&later);
    DO(cuStreamSynchronize(from));
    DO(cuStreamDestroy_v2(from));
    DO(cuStreamDestroy_v2(to));
}

static void a_destroyed_stream_finishes_its_work(void) {
    gate held = GATE_CLOSED;
    CUstream stream;
    CUdeviceptr word, lent;
    DO(cuStreamCreate(&stream, NON_BLOCKING));
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuMemsetD32_v2(word, 0, 1));
    DO(cuLaunchHostFunc(stream, pass, &held));
    DO(cuMemAllocAsync(&lent, 1 << 20, stream));
    DO(cuMemsetD32Async(lent, 9, 1 << 18, stream));
    DO(cuMemFreeAsync(lent, stream));
    DO(cuMemsetD32Async(word, 11, 1, stream));
    DO(cuStreamDestroy_v2(stream));
    MUST(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(stream));
    open_gate(&held);
    DO(cuCtxSynchronize());
    CHECK(read_word(word) == 11);
    MUST(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(lent, NULL));
}

static CUresult told;

static void note_state(CUstream stream, CUresult state, void *called) {
    (void)stream;
    told = state;
    *(int *)called += 1;
}

static void never(void *called) {
    *(int *)called += 100;
}

static void a_fault_that_comes_late_ends_the_context(CUcontext main_context) {
    gate held = GATE_CLOSED;
    CUcontext context;
    CUstream stream;
    CUevent event;
    int called = 0;
    DO(cuCtxCreate_v2(&context, 0, 0));
    load();
    DO(cuStreamCreate(&stream, BLOCKING));
    DO(cuEventCreate(&event, 0));
    DO(cuLaunchHostFunc(stream, pass, &held));
    launch_add(64, 1, stream);
    DO(cuLaunchHostFunc(stream, never, &called));
    DO(cuStreamAddCallback(stream, note_state, &called, 0));
    DO(cuEventRecord(event, stream));

    open_gate(&held);
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventSynchronize(event));
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(stream));
    DO(cuCtxDestroy_v2(context));
    CHECK(called == 1 && told == CUDA_ERROR_ILLEGAL_ADDRESS);
    DO(cuCtxSetCurrent(main_context));
    load();
}

static CUcontext shared;

static void *hammer(void *word) {
    DO(cuCtxSetCurrent(shared));
    for (int i = 0; i < 200; i++) {
        launch_add(*(CUdeviceptr *)word, 1, i % 2 ? NULL : CU_STREAM_LEGACY);
        if (i % 50 == 0)
            DO(cuStreamSynchronize(NULL));
    }
    return NULL;
}

static void threads_share_the_legacy_stream(void) {
    pthread_t threads[3];
    CUdeviceptr word;
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuMemsetD32_v2(word, 0, 1));
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, hammer, &word) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(read_word(word) == 600); /* a kernel of one thread: lost only if two ran at once */
}

static void *own_stream(void *word) {
    DO(cuCtxSetCurrent(shared));
    DO(cuMemsetD32_v2_ptds(*(CUdeviceptr *)word, 123, 1));
    DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void each_thread_has_its_own_stream(void) {
    gate held = GATE_CLOSED;
    pthread_t thread;
    CUdeviceptr word;
    DO(cuMemAlloc_v2(&word, 4));
    DO(cuLaunchHostFunc(CU_STREAM_PER_THREAD, pass, &held));
    CHECK(pthread_create(&thread, NULL, own_stream, &word) == 0);
    pthread_join(thread, NULL); /* does not wait for ours */
    MUST(CUDA_ERROR_NOT_READY, cuStreamQuery(CU_STREAM_PER_THREAD));
    open_gate(&held);
    CHECK(read_word(word) == 123);
}

int main(void) {
    DO(cuInit(0));
    DO(cuCtxCreate_v2(&shared, 0, 0));
    load();
    work_waits_for_what_is_before_it();
    the_legacy_stream_is_ordered_with_blocking_streams_only();
    a_stream_waits_for_the_event_as_it_was_recorded();
    a_destroyed_stream_finishes_its_work();
    a_fault_that_comes_late_ends_the_context(shared);
    threads_share_the_legacy_stream();
    each_thread_has_its_own_stream();
    DO(cuCtxDestroy_v2(shared));
    return 0;
}

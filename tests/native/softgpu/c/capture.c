/* Stream capture: what becomes a node, how streams fork and join, and what is refused with which error.
 * Says nothing when all is well. */
#include "driver_program.h"

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuStreamIsCapturing(CUstream, int *);
CUresult cuStreamGetCaptureInfo_v2(CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *);
CUresult cuStreamUpdateCaptureDependencies(CUstream, CUgraphNode *, size_t, unsigned);
CUresult cuThreadExchangeStreamCaptureMode(int *);

enum { GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL, LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
       RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED };

static CUcontext context;
static CUfunction add, twice;
static CUdeviceptr words;
static CUstream stream, other;
static CUevent event, back;

static unsigned word(int index) {
    unsigned got = 0;
    DO(cuMemcpyDtoH_v2(&got, words + 4 * (unsigned)index, sizeof got));
    return got;
}

static void launch_add(int index, unsigned amount, CUstream where) {
    CUdeviceptr address = words + 4 * (unsigned)index;
    void *parameters[] = {&address, &amount};
    DO(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, where, parameters, NULL));
}

static void run(CUgraph graph) {
    CUgraphExec exec;
    DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
    DO(cuGraphLaunch(exec, stream));
    DO(cuStreamSynchronize(stream));
    DO(cuGraphExecDestroy(exec));
}

static void count_up(void *counter) {
    *(int *)counter += 1;
}

static void what_is_submitted_becomes_nodes(void) {
    CUgraph graph;
    int status, called = 0;
    size_t nodes, edges;
    CUdeviceptr lent;
    DO(cuMemsetD32_v2(words, 0, 8));
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    MUST(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuMemsetD32Async(words, 20, 1, stream));
    launch_add(0, 1, stream);
    DO(cuMemAllocAsync(&lent, 1024, stream));
    DO(cuMemcpyDtoDAsync_v2(lent, words, 4, stream));
    DO(cuMemcpyDtoDAsync_v2(words + 4, lent, 4, stream));
    DO(cuMemFreeAsync(lent, stream));
    DO(cuLaunchHostFunc(stream, count_up, &called));
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuStreamIsCapturing(stream, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE && called == 0 && word(0) == 0);
    DO(cuGraphGetNodes(graph, NULL, &nodes));
    DO(cuGraphGetEdges(graph, NULL, NULL, &edges));
    CHECK(nodes == 7 && edges == 6);
    run(graph);
    run(graph);
    CHECK(called == 2 && word(0) == 21 && word(1) == 21);
    DO(cuGraphDestroy(graph));
}

static void capture_a_fork_and_a_join(void) {
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuMemsetD32Async(words, 5, 2, stream));
    DO(cuEventRecord(event, stream));
    DO(cuStreamWaitEvent(other, event, 0));
    launch_add(1, 2, other);
    launch_add(0, 1, stream);
    DO(cuEventRecord(back, other));
    DO(cuStreamWaitEvent(stream, back, 0));
    DO(cuMemcpyDtoDAsync_v2(words + 8, words, 8, stream));
}

static void streams_fork_and_join_through_events(void) {
    CUgraph graph;
    size_t nodes, edges;
    DO(cuMemsetD32_v2(words, 0, 8));
    capture_a_fork_and_a_join();
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(other)); /* and this ends the capture */
    MUST(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(words, 5, 2, stream));
    MUST(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    CHECK(graph == NULL);
    capture_a_fork_and_a_join();
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuGraphGetNodes(graph, NULL, &nodes));
    DO(cuGraphGetEdges(graph, NULL, NULL, &edges));
    CHECK(nodes == 4 && edges == 4);
    DO(cuStreamQuery(other)); /* no part of any capture any more */
    run(graph);
    CHECK(word(2) == 6 && word(3) == 7);
    DO(cuGraphDestroy(graph));
}

static void what_was_forked_must_be_joined(void) {
    CUgraph graph;
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuEventRecord(event, stream));
    DO(cuStreamWaitEvent(other, event, 0));
    launch_add(1, 2, other);
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuEventRecord(event, stream));
    DO(cuStreamWaitEvent(other, event, 0));
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(other, &graph));
    MUST(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    MUST(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &graph));
}

static void note(CUstream which, CUresult state, void *data) {
    (void)which, (void)state, (void)data;
}

static void expect_end(CUresult wanted) {
    CUgraph graph;
    MUST(wanted, cuStreamEndCapture(stream, &graph));
    CHECK(graph == NULL);
}

static void what_cannot_be_captured_says_why(void) {
    CUdeviceptr address;
    int status;
    CUstream blocking;
    CUgraph graph;
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, GLOBAL));
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(stream, note, NULL, 0));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuEventRecord(back, other));
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    MUST(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, back, 0));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuEventRecord(event, stream));
    MUST(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(event));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuStreamBeginCapture_v2(stream, GLOBAL));
    DO(cuStreamBeginCapture_v2(other, GLOBAL));
    DO(cuEventRecord(event, stream));
    MUST(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(other, event, 0));
    MUST(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(other, &graph));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    DO(cuStreamCreate(&blocking, 0));
    DO(cuStreamBeginCapture_v2(blocking, RELAXED));
    MUST(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32_v2(words, 0, 1));
    MUST(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
    DO(cuStreamBeginCapture_v2(blocking, RELAXED));
    MUST(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    DO(cuStreamDestroy_v2(blocking)); /* with its capture */
    DO(cuStreamBeginCapture_v2(stream, RELAXED)); /* a non-blocking stream is no hindrance */
    DO(cuMemsetD32_v2(words, 0, 1));
    DO(cuMemAlloc_v2(&address, 4));
    DO(cuMemFree_v2(address));
    DO(cuStreamEndCapture(stream, &graph));
    DO(cuGraphDestroy(graph));
}

typedef struct {
    CUresult allocated, ended;
    int mode;
} outcome;

static void *elsewhere(void *data) {
    outcome *o = data;
    CUdeviceptr address = 0;
    CUgraph graph;
    DO(cuCtxSetCurrent(context));
    DO(cuThreadExchangeStreamCaptureMode(&o->mode));
    o->allocated = cuMemAlloc_v2(&address, 4);
    o->ended = cuStreamEndCapture(stream, &graph);
    if (o->ended == CUDA_SUCCESS)
        DO(cuGraphDestroy(graph));
    return NULL;
}

static outcome from_another_thread(int mode_of_capture, int mode_of_thread) {
    pthread_t thread;
    CUgraph graph;
    outcome o = {.mode = mode_of_thread};
    DO(cuStreamBeginCapture_v2(stream, mode_of_capture));
    CHECK(pthread_create(&thread, NULL, elsewhere, &o) == 0);
    pthread_join(thread, NULL);
    if (cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS)
        DO(cuGraphDestroy(graph));
    return o;
}

static void modes_say_whom_a_capture_forbids_what(void) {
    CUdeviceptr address;
    int mode = RELAXED;
    outcome o = from_another_thread(GLOBAL, GLOBAL);
    CHECK(o.allocated == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && o.ended == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    o = from_another_thread(GLOBAL, LOCAL);
    CHECK(o.allocated == CUDA_SUCCESS && o.mode == GLOBAL);
    o = from_another_thread(LOCAL, GLOBAL);
    CHECK(o.allocated == CUDA_SUCCESS && o.ended == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    o = from_another_thread(RELAXED, GLOBAL);
    CHECK(o.allocated == CUDA_SUCCESS && o.ended == CUDA_SUCCESS);
    DO(cuStreamBeginCapture_v2(stream, LOCAL));
    DO(cuThreadExchangeStreamCaptureMode(&mode));
    DO(cuMemAlloc_v2(&address, 4)); /* this thread says that it knows */
    DO(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&address, 4));
    expect_end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

static void a_capture_shows_what_the_next_node_depends_on(void) {
    CUgraph graph, same, ended;
    const CUgraphNode *nodes;
    CUgraphNode first, list[16];
    CUgraphExec exec;
    uint64_t id;
    size_t count;
    int status;
    DO(cuMemsetD32_v2(words, 0, 8));
    DO(cuGraphCreate(&graph, 0));
    DO(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, GLOBAL));
    MUST(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
    DO(cuMemsetD32Async(words, 1, 1, stream));
    DO(cuStreamGetCaptureInfo_v2(stream, &status, &id, &same, &nodes, &count));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && same == graph && count == 1 && id != 0);
    first = nodes[0];
    launch_add(0, 7, stream);
    DO(cuStreamUpdateCaptureDependencies(stream, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    launch_add(1, 7, stream); /* beside the other one */
    DO(cuStreamEndCapture(stream, &ended));
    CHECK(ended == graph);
    count = 8;
    DO(cuGraphGetEdges(graph, list, list + 8, &count));
    CHECK(count == 2 && list[0] == first && list[1] == first);
    DO(cuGraphInstantiateWithFlags(&exec, graph, 0));
    DO(cuStreamBeginCapture_v2(stream, GLOBAL)); /* a graph becomes a child of a graph */
    DO(cuGraphLaunch(exec, stream));
    DO(cuGraphLaunch(exec, stream));
    DO(cuStreamEndCapture(stream, &ended));
    DO(cuGraphExecDestroy(exec));
    run(ended);
    CHECK(word(0) == 8 && word(1) == 14);
    DO(cuGraphDestroy(ended));
    DO(cuGraphDestroy(graph));
}

int main(void) {
    CUmodule module;
    DO(cuInit(0));
    DO(cuCtxCreate_v2(&context, 0, 0));
    DO(cuModuleLoadData(&module, ADD_PTX));
    DO(cuModuleGetFunction(&add, module, "add"));
    DO(cuModuleGetFunction(&twice, module, "twice"));
    DO(cuMemAlloc_v2(&words, 32));
    DO(cuStreamCreate(&stream, 1));
    DO(cuStreamCreate(&other, 1));
    DO(cuEventCreate(&event, 0));
    DO(cuEventCreate(&back, 0));
    what_is_submitted_becomes_nodes();
    streams_fork_and_join_through_events();
    what_was_forked_must_be_joined();
    what_cannot_be_captured_says_why();
    modes_say_whom_a_capture_forbids_what();
    a_capture_shows_what_the_next_node_depends_on();
    DO(cuCtxDestroy_v2(context));
    return 0;
}

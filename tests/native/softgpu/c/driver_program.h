/* What the C programs of these tests begin with. */
#ifndef DRIVER_PROGRAM_H
#define DRIVER_PROGRAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_graph_types.h"
#include "cuda_types.h"

/* The calls that more than one of them makes. */
CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemFreeHost(void *);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult cuStreamAddCallback(CUstream, CUstreamCallback, void *, unsigned);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime_v2(float *, CUevent, CUevent);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuGraphCreate(CUgraph *, unsigned);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphLaunch(CUgraphExec, CUstream);

#define MUST(wanted, call)                                                                                   \
    do {                                                                                                     \
        CUresult result_ = (call);                                                                           \
        if (result_ != (wanted)) {                                                                           \
            fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, (int)result_);                 \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)
#define DO(call) MUST(CUDA_SUCCESS, call)
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/* A host function that stays in its stream until the program lets it go on. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
} gate;

#define GATE_CLOSED {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false}

static inline void pass(void *data) {
    gate *g = data;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static inline void open_gate(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

/* add: out[i] += amount, for each thread of the grid. */
static const char ADD_PTX[] __attribute__((unused)) =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 out, .param .u32 amount) {\n"
    "  .reg .u64 %rd<4>;\n  .reg .u32 %r<6>;\n"
    "  ld.param.u64 %rd1, [out];\n  ld.param.u32 %r1, [amount];\n"
    "  cvta.to.global.u64 %rd1, %rd1;\n"
    "  mov.u32 %r2, %tid.x;\n  mov.u32 %r3, %ctaid.x;\n  mov.u32 %r4, %ntid.x;\n"
    "  mad.lo.u32 %r2, %r3, %r4, %r2;\n"
    "  mul.wide.u32 %rd2, %r2, 4;\n  add.u64 %rd1, %rd1, %rd2;\n"
    "  ld.global.u32 %r5, [%rd1];\n  add.u32 %r5, %r5, %r1;\n"
    "  st.global.u32 [%rd1], %r5;\n  ret;\n}\n"
    ".visible .entry twice(.param .u64 out) {\n"
    "  .reg .u64 %rd<4>;\n  .reg .u32 %r<6>;\n"
    "  ld.param.u64 %rd1, [out];\n  cvta.to.global.u64 %rd1, %rd1;\n"
    "  ld.global.u32 %r5, [%rd1];\n  shl.b32 %r5, %r5, 1;\n"
    "  st.global.u32 [%rd1], %r5;\n  ret;\n}\n";

#endif

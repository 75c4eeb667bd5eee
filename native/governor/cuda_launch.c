/* Every way to start work on a device, and the waits for it. */
#include "account.h"
#include "cuda_api.h"
#include "estimate.h"
#include "gate.h"
#include "governor.h"
#include "surface.h"

/* ---- shapes ---- */

struct dimensions {
    unsigned x, y, z;
};

static uint64_t shape_of(CUfunction function, struct dimensions grid, struct dimensions block)
{
    uint64_t hash = estimate_mix((uint64_t)(uintptr_t)function, (uint64_t)grid.x << 32 | grid.y);
    hash = estimate_mix(hash, (uint64_t)grid.z << 32 | block.x);
    return estimate_mix(hash, (uint64_t)block.y << 32 | block.z);
}

#define GATED(key, function, stream, per_thread, call)                                             \
    do {                                                                                           \
        struct launch launch;                                                                      \
        gate_enter(&launch, key, function, stream, per_thread);                                    \
        CUresult result = call;                                                                    \
        gate_leave(&launch);                                                                       \
        return result;                                                                             \
    } while (0)

/* ---- kernels ---- */

#define LAUNCH_KERNEL(suffix, per_thread)                                                          \
    EXPORTED CUresult cuLaunchKernel##suffix(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
                                             unsigned by, unsigned bz, unsigned shared, CUstream stream, \
                                             void **parameters, void **extra)                      \
    {                                                                                              \
        typedef CUresult call(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                              CUstream, void **, void **);                                         \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        GATED(shape_of(function, (struct dimensions){gx, gy, gz}, (struct dimensions){bx, by, bz}), function, stream, \
              per_thread,                                                                          \
              REAL(cuLaunchKernel##suffix, call *)(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)); \
    }                                                                                              \
    EXPORTED CUresult cuLaunchCooperativeKernel##suffix(CUfunction function, unsigned gx, unsigned gy, unsigned gz, \
                                                        unsigned bx, unsigned by, unsigned bz, unsigned shared, \
                                                        CUstream stream, void **parameters)        \
    {                                                                                              \
        typedef CUresult call(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                              CUstream, void **);                                                  \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        GATED(shape_of(function, (struct dimensions){gx, gy, gz}, (struct dimensions){bx, by, bz}), function, stream, \
              per_thread,                                                                          \
              REAL(cuLaunchCooperativeKernel##suffix, call *)(function, gx, gy, gz, bx, by, bz, shared, stream, \
                                                              parameters));                        \
    }                                                                                              \
    EXPORTED CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function, void **parameters, \
                                               void **extra)                                       \
    {                                                                                              \
        typedef CUresult call(const CUlaunchConfig *, CUfunction, void **, void **);               \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        if (config == NULL)                                                                        \
            return REAL(cuLaunchKernelEx##suffix, call *)(config, function, parameters, extra);    \
        GATED(shape_of(function, (struct dimensions){config->gridDimX, config->gridDimY, config->gridDimZ}, \
                       (struct dimensions){config->blockDimX, config->blockDimY, config->blockDimZ}), \
              function, config->hStream, per_thread,                                               \
              REAL(cuLaunchKernelEx##suffix, call *)(config, function, parameters, extra));        \
    }                                                                                              \
    EXPORTED CUresult cuGraphLaunch##suffix(CUgraphExec graph, CUstream stream)                    \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        GATED(shape_of(graph, (struct dimensions){0}, (struct dimensions){0}), NULL, stream, per_thread, \
              REAL(cuGraphLaunch##suffix, CUresult (*)(CUgraphExec, CUstream))(graph, stream));    \
    }

LAUNCH_KERNEL(, false)
LAUNCH_KERNEL(_ptsz, true)

/* ---- as they were before CUDA 4: the block is set on the function before ---- */

EXPORTED CUresult cuLaunch(CUfunction function)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    GATED(shape_of(function, (struct dimensions){1, 1, 1}, (struct dimensions){0}), function, NULL, false,
          REAL(cuLaunch, CUresult (*)(CUfunction))(function));
}

EXPORTED CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    GATED(shape_of(function, (struct dimensions){(unsigned)width, (unsigned)height, 1}, (struct dimensions){0}),
          function, NULL, false, REAL(cuLaunchGrid, CUresult (*)(CUfunction, int, int))(function, width, height));
}

EXPORTED CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    GATED(shape_of(function, (struct dimensions){(unsigned)width, (unsigned)height, 1}, (struct dimensions){0}),
          function, stream, false, REAL(cuLaunchGridAsync, CUresult (*)(CUfunction, int, int, CUstream))(function, width, height, stream));
}

/* One kernel on several devices at once: the gate of the current device stands for all, for to wait at one
 * while holding a place at another is how programs come to wait for each other. */
EXPORTED CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned count, unsigned flags)
{
    typedef CUresult call(CUDA_LAUNCH_PARAMS *, unsigned, unsigned);
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (list == NULL || count == 0)
        return REAL(cuLaunchCooperativeKernelMultiDevice, call *)(list, count, flags);
    GATED(shape_of(list->function, (struct dimensions){list->gridDimX, list->gridDimY, list->gridDimZ},
                   (struct dimensions){list->blockDimX, list->blockDimY, list->blockDimZ}),
          list->function, list->hStream, false, REAL(cuLaunchCooperativeKernelMultiDevice, call *)(list, count, flags));
}

/* ---- waiting for work ---- */

#define WAITS(name, type, kind, ask)                                                               \
    EXPORTED CUresult name(type which)                                                             \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        gate_before_wait(&(struct awaited){kind, which, ask});                                     \
        CUresult result = REAL(name, CUresult (*)(type))(which);                                   \
        gate_after_wait();                                                                         \
        return result;                                                                             \
    }

WAITS(cuStreamSynchronize, CUstream, AWAITED_STREAM, REAL(cuStreamQuery, CUresult (*)(void *)))
WAITS(cuStreamSynchronize_ptsz, CUstream, AWAITED_STREAM, REAL(cuStreamQuery_ptsz, CUresult (*)(void *)))
WAITS(cuEventSynchronize, CUevent, AWAITED_EVENT, REAL(cuEventQuery, CUresult (*)(void *)))
WAITS(cuCtxSynchronize_v2, CUcontext, AWAITED_ALL, NULL)

EXPORTED CUresult cuCtxSynchronize(void)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    gate_before_wait(&(struct awaited){AWAITED_ALL, NULL, NULL});
    CUresult result = REAL(cuCtxSynchronize, CUresult (*)(void))();
    gate_after_wait();
    return result;
}

/* ---- capturing: while any capture is under way, nothing is recorded and no event is asked for ---- */

#define CAPTURES(name, parameters, arguments)                                                      \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        gate_capturing(1); /* before, so that no thread asks in between */                         \
        CUresult result = REAL(name, CUresult(*) parameters) arguments;                            \
        if (result != CUDA_SUCCESS)                                                                \
            gate_capturing(-1);                                                                    \
        return result;                                                                             \
    }

CAPTURES(cuStreamBeginCapture, (CUstream stream), (stream))
CAPTURES(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
CAPTURES(cuStreamBeginCapture_v2, (CUstream stream, int mode), (stream, mode))
CAPTURES(cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode), (stream, mode))
CAPTURES(cuStreamBeginCaptureToGraph,
         (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t count, int mode),
         (stream, graph, nodes, edges, count, mode))
CAPTURES(cuStreamBeginCaptureToGraph_ptsz,
         (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const void *edges, size_t count, int mode),
         (stream, graph, nodes, edges, count, mode))
CAPTURES(cuStreamBeginCaptureToCig, (CUstream stream, void *parameters), (stream, parameters))
CAPTURES(cuStreamBeginCaptureToCig_ptsz, (CUstream stream, void *parameters), (stream, parameters))

CAPTURES(cuStreamBeginRecaptureToGraph, (CUstream stream, int mode, CUgraph graph, void *callback, void *data),
         (stream, mode, graph, callback, data))
CAPTURES(cuStreamBeginRecaptureToGraph_ptsz, (CUstream stream, int mode, CUgraph graph, void *callback, void *data),
         (stream, mode, graph, callback, data))

static bool is_capturing(CUstream stream, CUresult (*ask)(CUstream, int *))
{
    int status = 0;
    return ask(stream, &status) == CUDA_SUCCESS && status != 0;
}

/* A capture that was spoiled ends with an error, but it ends. */
#define CAPTURED(name, ask, parameters, arguments)                                                 \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        bool before = is_capturing(stream, REAL(ask, CUresult (*)(CUstream, int *)));              \
        CUresult result = REAL(name, CUresult(*) parameters) arguments;                            \
        if (before && !is_capturing(stream, REAL(ask, CUresult (*)(CUstream, int *))))             \
            gate_capturing(-1);                                                                    \
        return result;                                                                             \
    }

CAPTURED(cuStreamEndCapture, cuStreamIsCapturing, (CUstream stream, CUgraph *graph), (stream, graph))
CAPTURED(cuStreamEndCapture_ptsz, cuStreamIsCapturing_ptsz, (CUstream stream, CUgraph *graph), (stream, graph))
CAPTURED(cuStreamEndCaptureToCig, cuStreamIsCapturing, (CUstream stream), (stream))
CAPTURED(cuStreamEndCaptureToCig_ptsz, cuStreamIsCapturing_ptsz, (CUstream stream), (stream))

#define END_STREAM(name)                                                                           \
    EXPORTED CUresult name(CUstream stream)                                                        \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        bool before = is_capturing(stream, REAL(cuStreamIsCapturing, CUresult (*)(CUstream, int *))); \
        gate_before_stream_ends(stream);                                                           \
        CUresult result = REAL(name, CUresult (*)(CUstream))(stream);                              \
        if (before && result == CUDA_SUCCESS)                                                      \
            gate_capturing(-1);                                                                    \
        return result;                                                                             \
    }

END_STREAM(cuStreamDestroy)
END_STREAM(cuStreamDestroy_v2)

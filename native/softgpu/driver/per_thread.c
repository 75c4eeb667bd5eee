/* The forms of stream calls for programs that are built with a default stream for each thread: where such
 * a program names no stream, it means its thread's. */
#include "cuda_graph_types.h"
#include "driver.h"

#define OWN (stream != NULL ? stream : CU_STREAM_PER_THREAD)
#define OF_THREAD(name, parameters, ...)                                                                         \
    CUresult name parameters;                                                                                    \
    SG_EXPORT CUresult name##_ptsz parameters {                                                                  \
        return name(__VA_ARGS__);                                                                                \
    }

/* ---- streams and events ---- */

OF_THREAD(cuStreamQuery, (CUstream stream), OWN)
OF_THREAD(cuStreamSynchronize, (CUstream stream), OWN)
OF_THREAD(cuStreamGetPriority, (CUstream stream, int *priority), OWN, priority)
OF_THREAD(cuStreamGetFlags, (CUstream stream, unsigned *flags), OWN, flags)
OF_THREAD(cuStreamGetId, (CUstream stream, unsigned long long *id), OWN, id)
OF_THREAD(cuStreamGetCtx, (CUstream stream, CUcontext *context), OWN, context)
OF_THREAD(cuStreamGetCtx_v2, (CUstream stream, CUcontext *context, void **green), OWN, context, green)
OF_THREAD(cuStreamGetDevice, (CUstream stream, CUdevice *device), OWN, device)
OF_THREAD(cuStreamBeginCapture_v2, (CUstream stream, int mode), OWN, mode)
OF_THREAD(cuStreamBeginCapture, (CUstream stream), OWN)
OF_THREAD(cuStreamBeginCaptureToGraph, (CUstream stream, CUgraph graph, const CUgraphNode *nodes,
          const CUgraphEdgeData *data, size_t count, int mode), OWN, graph, nodes, data, count, mode)
OF_THREAD(cuStreamEndCapture, (CUstream stream, CUgraph *graph), OWN, graph)
OF_THREAD(cuStreamGetCaptureInfo, (CUstream stream, int *status, uint64_t *id), OWN, status, id)
OF_THREAD(cuStreamGetCaptureInfo_v2, (CUstream stream, int *status, uint64_t *id, CUgraph *graph,
          const CUgraphNode **nodes, size_t *count), OWN, status, id, graph, nodes, count)
OF_THREAD(cuStreamGetCaptureInfo_v3, (CUstream stream, int *status, uint64_t *id, CUgraph *graph,
          const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count), OWN, status, id, graph, nodes, data,
          count)
OF_THREAD(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags), OWN,
          nodes, count, flags)
OF_THREAD(cuStreamUpdateCaptureDependencies_v2, (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data,
          size_t count, unsigned flags), OWN, nodes, data, count, flags)
OF_THREAD(cuStreamGetAttribute, (CUstream stream, int id, CUlaunchAttributeValue *value), OWN, id, value)
OF_THREAD(cuStreamSetAttribute, (CUstream stream, int id, const CUlaunchAttributeValue *value), OWN, id, value)
OF_THREAD(cuStreamIsCapturing, (CUstream stream, int *status), OWN, status)
OF_THREAD(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), OWN, event, flags)
OF_THREAD(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t size, unsigned flags), OWN,
          address, size, flags)
OF_THREAD(cuStreamAddCallback, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags), OWN,
          callback, data, flags)
OF_THREAD(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data), OWN, function, data)
OF_THREAD(cuEventRecord, (CUevent event, CUstream stream), event, OWN)
OF_THREAD(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags), event, OWN, flags)
OF_THREAD(cuStreamBatchMemOp_v2, (CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags),
          OWN, count, list, flags)
OF_THREAD(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags), OWN,
          address, value, flags)
OF_THREAD(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags), OWN,
          address, value, flags)
OF_THREAD(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags), OWN,
          address, value, flags)
OF_THREAD(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags), OWN,
          address, value, flags)
SG_ALIAS(cuStreamBatchMemOp_ptsz, cuStreamBatchMemOp_v2_ptsz);
SG_ALIAS(cuStreamWaitValue32_ptsz, cuStreamWaitValue32_v2_ptsz);
SG_ALIAS(cuStreamWaitValue64_ptsz, cuStreamWaitValue64_v2_ptsz);
SG_ALIAS(cuStreamWriteValue32_ptsz, cuStreamWriteValue32_v2_ptsz);
SG_ALIAS(cuStreamWriteValue64_ptsz, cuStreamWriteValue64_v2_ptsz);
OF_THREAD(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, OWN)
OF_THREAD(cuGraphUpload, (CUgraphExec exec, CUstream stream), exec, OWN)

/* ---- memory ---- */

OF_THREAD(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size, CUstream stream), to, from, size,
          OWN)
OF_THREAD(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream), to, from, size, OWN)
OF_THREAD(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, from, size,
          OWN)
OF_THREAD(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, from, size, OWN)
OF_THREAD(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
          size_t size, CUstream stream), to, to_context, from, from_context, size, OWN)
OF_THREAD(cuMemcpyHtoAAsync_v2, (CUarray to, size_t offset, const void *from, size_t size, CUstream stream), to,
          offset, from, size, OWN)
OF_THREAD(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t size, CUstream stream), to, from,
          offset, size, OWN)
OF_THREAD(cuMemcpyBatchAsync, (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, void *attributes,
          size_t *first_of, size_t attribute_count, size_t *failed, CUstream stream), to, from, sizes, count,
          attributes, first_of, attribute_count, failed, OWN)
OF_THREAD(cuMemcpyBatchAsync_v2, (CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, void *attributes,
          size_t *first_of, size_t attribute_count, CUstream stream), to, from, sizes, count, attributes, first_of,
          attribute_count, OWN)
OF_THREAD(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *box, CUstream stream), box, OWN)
OF_THREAD(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *box, CUstream stream), box, OWN)
OF_THREAD(cuMemAllocAsync, (CUdeviceptr *address, size_t size, CUstream stream), address, size, OWN)
OF_THREAD(cuMemAllocFromPoolAsync, (CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream),
          address, size, pool, OWN)
OF_THREAD(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), address, OWN)
OF_THREAD(cuMemPrefetchAsync, (CUdeviceptr address, size_t size, CUdevice device, CUstream stream), address,
          size, device, OWN)
OF_THREAD(cuMemPrefetchAsync_v2, (CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags,
          CUstream stream), address, size, location, flags, OWN)
OF_THREAD(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream), to, value,
          count, OWN)
OF_THREAD(cuMemsetD2D8Async, (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
          CUstream stream), to, pitch, value, width, height, OWN)
OF_THREAD(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream), to, value,
          count, OWN)
OF_THREAD(cuMemsetD2D16Async, (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
          CUstream stream), to, pitch, value, width, height, OWN)
OF_THREAD(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t count, CUstream stream), to, value, count,
          OWN)
OF_THREAD(cuMemsetD2D32Async, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
          CUstream stream), to, pitch, value, width, height, OWN)

/* ---- launches ---- */

OF_THREAD(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned
          block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,
          void **extra), function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, OWN,
          parameters, extra)
OF_THREAD(cuLaunchCooperativeKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void
          **parameters), function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, OWN,
          parameters)

CUresult cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);
SG_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *given, CUfunction function, void **parameters,
                                         void **extra) {
    if (given == NULL || given->hStream != NULL)
        return cuLaunchKernelEx(given, function, parameters, extra);
    CUlaunchConfig config = *given;
    config.hStream = CU_STREAM_PER_THREAD;
    return cuLaunchKernelEx(&config, function, parameters, extra);
}

/* ---- calls without a stream ---- */

static CUresult awaited(CUresult result) {
    return result == CUDA_SUCCESS ? cuStreamSynchronize(CU_STREAM_PER_THREAD) : result;
}

SG_EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size) {
    return awaited(cuMemcpyHtoDAsync_v2(to, from, size, CU_STREAM_PER_THREAD));
}

SG_EXPORT CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size) {
    return awaited(cuMemcpyDtoHAsync_v2(to, from, size, CU_STREAM_PER_THREAD));
}

SG_EXPORT CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoDAsync_v2(to, from, size, CU_STREAM_PER_THREAD);
}

SG_EXPORT CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return awaited(cuMemcpyAsync(to, from, size, CU_STREAM_PER_THREAD));
}

SG_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t size) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, size, CU_STREAM_PER_THREAD);
}

SG_EXPORT CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *box) {
    return awaited(cuMemcpy2DAsync_v2(box, CU_STREAM_PER_THREAD));
}
SG_ALIAS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2_ptds);

SG_EXPORT CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *box) {
    return awaited(cuMemcpy3DAsync_v2(box, CU_STREAM_PER_THREAD));
}

#define MEMSET(bits, type)                                                                                       \
    SG_EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr to, type value, size_t count) {                     \
        return cuMemsetD##bits##Async(to, value, count, CU_STREAM_PER_THREAD);                                   \
    }                                                                                                            \
    SG_EXPORT CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr to, size_t pitch, type value, size_t width,       \
                                                   size_t height) {                                              \
        return cuMemsetD2D##bits##Async(to, pitch, value, width, height, CU_STREAM_PER_THREAD);                  \
    }

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)

/* Straight copies: boxes of one row. */
#include "operation.h"

static CUresult submit(CUDA_MEMCPY3D box, size_t size, CUstream stream) {
    box.WidthInBytes = size;
    box.Height = box.Depth = 1;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, .copy = {.box = box}});
}

SG_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyHtoDAsync_v2);

SG_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyDtoHAsync_v2);

SG_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyDtoDAsync_v2);

/* An address of either side, as unified addressing allows: what we did not allocate is host memory. */
SG_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyAsync);

SG_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to,
                         .WidthInBytes = size, .Height = 1, .Depth = 1};
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(to_context, SG_CONTEXT) || !sg_object_is(from_context, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, .copy = {box, to_context, from_context}});
}
SG_PTSZ(cuMemcpyPeerAsync);

SG_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    return cuMemcpyHtoDAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyHtoD_v2);

SG_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoHAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyDtoH_v2);

SG_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoDAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyDtoD_v2);

SG_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyAsync(to, from, size, NULL);
}
SG_PTDS(cuMemcpy);

SG_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t size) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, size, NULL);
}
SG_PTDS(cuMemcpyPeer);

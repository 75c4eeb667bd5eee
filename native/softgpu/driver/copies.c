/* Straight copies: boxes of one row. What is not asynchronous is awaited by its caller. */
#include "operation.h"

typedef enum { ASYNCHRONOUS, AWAITED } manner;

static CUresult submit(CUDA_MEMCPY3D box, size_t size, CUstream stream, manner how) {
    box.WidthInBytes = size;
    box.Height = box.Depth = 1;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, how == AWAITED, .copy = {.box = box}});
}

static CUresult host_to_device(CUdeviceptr to, const void *from, size_t size, CUstream stream, manner how) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, stream, how);
}

static CUresult device_to_host(void *to, CUdeviceptr from, size_t size, CUstream stream, manner how) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to};
    return submit(box, size, stream, how);
}

/* An address of either side, as unified addressing allows: what we did not allocate is host memory. */
static CUresult either(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, manner how) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to};
    return submit(box, size, stream, how);
}

SG_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    return host_to_device(to, from, size, stream, ASYNCHRONOUS);
}

SG_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    return device_to_host(to, from, size, stream, ASYNCHRONOUS);
}

SG_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, stream, ASYNCHRONOUS);
}

SG_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    return either(to, from, size, stream, ASYNCHRONOUS);
}

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

SG_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    return host_to_device(to, from, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    return device_to_host(to, from, size, NULL, AWAITED);
}

/* Within the device, the call need not wait: nobody but a stream can see it undone. */
SG_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoDAsync_v2(to, from, size, NULL);
}

SG_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return either(to, from, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t size) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, size, NULL);
}

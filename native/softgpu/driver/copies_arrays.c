/* Copies to and from arrays of one row: the older calls, which take an offset into the row. */
#include "operation.h"

typedef enum { ASYNCHRONOUS, AWAITED } manner;

static CUresult submit(CUDA_MEMCPY3D box, size_t size, CUstream stream, manner how) {
    box.WidthInBytes = size;
    box.Height = box.Depth = 1;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, how == AWAITED, .copy = {.box = box}});
}

static CUresult host_to_array(CUarray to, size_t offset, const void *from, size_t size, CUstream stream, manner how) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = to, .dstXInBytes = offset};
    return submit(box, size, stream, how);
}

static CUresult array_to_host(void *to, CUarray from, size_t offset, size_t size, CUstream stream, manner how) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = offset,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to};
    return submit(box, size, stream, how);
}

SG_EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t size, CUstream stream) {
    return host_to_array(to, offset, from, size, stream, ASYNCHRONOUS);
}

SG_EXPORT CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t size, CUstream stream) {
    return array_to_host(to, from, offset, size, stream, ASYNCHRONOUS);
}

SG_EXPORT CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t size) {
    return host_to_array(to, offset, from, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t size) {
    return array_to_host(to, from, offset, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = to, .dstXInBytes = offset};
    return submit(box, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = offset,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, NULL, AWAITED);
}

SG_EXPORT CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = from_offset,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = to, .dstXInBytes = to_offset};
    return submit(box, size, NULL, AWAITED);
}

/* Copies to and from arrays of one row: the older calls, which take an offset into the row. */
#include "operation.h"

static CUresult submit(CUDA_MEMCPY3D box, size_t size, CUstream stream) {
    box.WidthInBytes = size;
    box.Height = box.Depth = 1;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, .copy = {.box = box}});
}

SG_EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = to, .dstXInBytes = offset};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyHtoAAsync_v2);

SG_EXPORT CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t size, CUstream stream) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = offset,
                         .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to};
    return submit(box, size, stream);
}
SG_PTSZ(cuMemcpyAtoHAsync_v2);

SG_EXPORT CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t size) {
    return cuMemcpyHtoAAsync_v2(to, offset, from, size, NULL);
}
SG_PTDS(cuMemcpyHtoA_v2);

SG_EXPORT CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t size) {
    return cuMemcpyAtoHAsync_v2(to, from, offset, size, NULL);
}
SG_PTDS(cuMemcpyAtoH_v2);

SG_EXPORT CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                         .dstArray = to, .dstXInBytes = offset};
    return submit(box, size, NULL);
}
SG_PTDS(cuMemcpyDtoA_v2);

SG_EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = offset,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to};
    return submit(box, size, NULL);
}
SG_PTDS(cuMemcpyAtoD_v2);

SG_EXPORT CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = from, .srcXInBytes = from_offset,
                         .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = to, .dstXInBytes = to_offset};
    return submit(box, size, NULL);
}
SG_PTDS(cuMemcpyAtoA_v2);

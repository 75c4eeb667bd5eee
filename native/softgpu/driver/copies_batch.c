/* Many copies in one call. They are queued one after the other, which is an order that the call allows, and
 * none is where one of them is wrong. */
#include "operation.h"

static sg_operation copy_of(CUdeviceptr to, CUdeviceptr from, size_t size) {
    CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = to,
                         .WidthInBytes = size, .Height = 1, .Depth = 1};
    return (sg_operation){SG_OPERATION_COPY, .copy = {.box = box}};
}

/* Attributes say when a source may be read early and where managed memory should be: both only tune. */
static CUresult batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes, size_t count,
                      const size_t *first_of, size_t attribute_count, size_t *failed, CUstream stream) {
    CUcontext context;
    CUstream resolved;
    CUresult result = sg_stream_resolve(stream, &context, &resolved);
    if (failed != NULL)
        *failed = SIZE_MAX;
    if (result != CUDA_SUCCESS)
        return result;
    /* cuda.h: not in the legacy default stream. */
    if (to == NULL || from == NULL || sizes == NULL || count == 0 || stream == NULL || stream == CU_STREAM_LEGACY ||
        attribute_count > count || (attribute_count > 0 && (first_of == NULL || first_of[0] != 0)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        sg_operation copy = copy_of(to[i], from[i], sizes[i]);
        result = sizes[i] == 0 ? CUDA_ERROR_INVALID_VALUE : sg_operation_check(context, &copy);
        if (result != CUDA_SUCCESS && failed != NULL)
            *failed = i;
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        sg_operation copy = copy_of(to[i], from[i], sizes[i]);
        result = sg_submit(stream, &copy);
    }
    return result;
}

SG_EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                         void *attributes, size_t *first_of, size_t attribute_count, CUstream stream) {
    if (attribute_count > 0 && attributes == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return batch(to, from, sizes, count, first_of, attribute_count, NULL, stream);
}

SG_EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                      void *attributes, size_t *first_of, size_t attribute_count, size_t *failed,
                                      CUstream stream) {
    if (attribute_count > 0 && attributes == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return batch(to, from, sizes, count, first_of, attribute_count, failed, stream);
}

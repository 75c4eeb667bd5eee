/* Memory sets. `count` and `width` are in elements, pitches in bytes. */
#include <string.h>

#include "driver.h"

static void fill_row(unsigned char *row, const void *value, size_t element, size_t count) {
    if (element == 1) {
        memset(row, *(const unsigned char *)value, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(row + i * element, value, element);
}

static CUresult fill(CUdeviceptr to, size_t pitch, const void *value, size_t element, size_t width, size_t height,
                     CUstream stream) {
    unsigned char *target;
    size_t row, size;
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    if (result != CUDA_SUCCESS || width == 0 || height == 0)
        return result;
    if (to % element != 0 || __builtin_mul_overflow(width, element, &row))
        return CUDA_ERROR_INVALID_VALUE;
    if (height == 1)
        pitch = row;
    if (pitch < row || pitch % element != 0 || __builtin_mul_overflow(pitch, height - 1, &size) ||
        __builtin_add_overflow(size, row, &size))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_memory_access(context, to, size, true, &target);
    for (size_t y = 0; result == CUDA_SUCCESS && y < height; y++)
        fill_row(target + y * pitch, value, element, width);
    return result;
}

#define MEMSET(bits, type)                                                                                       \
    SG_EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {       \
        return fill(to, 0, &value, sizeof value, count, 1, stream);                                              \
    }                                                                                                            \
    SG_PTSZ(cuMemsetD##bits##Async);                                                                             \
    SG_EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                          \
        return fill(to, 0, &value, sizeof value, count, 1, NULL);                                                \
    }                                                                                                            \
    SG_PTDS(cuMemsetD##bits##_v2);                                                                               \
    SG_EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,          \
                                                size_t height, CUstream stream) {                                \
        return fill(to, pitch, &value, sizeof value, width, height, stream);                                     \
    }                                                                                                            \
    SG_PTSZ(cuMemsetD2D##bits##Async);                                                                           \
    SG_EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,            \
                                              size_t height) {                                                   \
        return fill(to, pitch, &value, sizeof value, width, height, NULL);                                       \
    }                                                                                                            \
    SG_PTDS(cuMemsetD2D##bits##_v2)

MEMSET(8, unsigned char);
MEMSET(16, unsigned short);
MEMSET(32, unsigned);

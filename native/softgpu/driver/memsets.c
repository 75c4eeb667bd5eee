/* Memory sets. `count` and `width` are in elements, pitches in bytes. */
#include <string.h>

#include "timeline.h"

static void fill_row(unsigned char *row, const void *value, size_t element, size_t count) {
    if (element == 1) {
        memset(row, *(const unsigned char *)value, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(row + i * element, value, element);
}

static CUresult target_of(CUcontext context, const sg_fill_operation *f, bool write, size_t *pitch,
                          unsigned char **target) {
    size_t row, size;
    if (f->to % f->element_bytes != 0 || __builtin_mul_overflow(f->width, f->element_bytes, &row))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = f->height == 1 ? row : f->pitch;
    if (*pitch < row || *pitch % f->element_bytes != 0 || __builtin_mul_overflow(*pitch, f->height - 1, &size) ||
        __builtin_add_overflow(size, row, &size))
        return CUDA_ERROR_INVALID_VALUE;
    return write ? sg_memory_access(context, f->to, size, true, target) : sg_memory_check(context, f->to, size, true);
}

CUresult sg_fill_check(CUcontext context, const sg_fill_operation *f) {
    unsigned char *target;
    size_t pitch;
    return f->width == 0 || f->height == 0 ? CUDA_SUCCESS : target_of(context, f, false, &pitch, &target);
}

CUresult sg_fill_perform(CUcontext context, const sg_fill_operation *f) {
    unsigned char *target;
    size_t pitch;
    if (f->width == 0 || f->height == 0)
        return CUDA_SUCCESS;
    CUresult result = target_of(context, f, true, &pitch, &target);
    for (size_t y = 0; result == CUDA_SUCCESS && y < f->height; y++)
        fill_row(target + y * pitch, &f->value, f->element_bytes, f->width); /* little-endian: the low bytes */
    uint64_t bytes = (uint64_t)f->width * f->element_bytes * f->height;
    sg_timeline_cost(SG_ENGINE_COMPUTE, sg_cost_of_bytes(&context->gpu->device->facts, bytes), bytes);
    return result;
}

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned value, unsigned element_bytes, size_t width, size_t height,
                     CUstream stream) {
    sg_fill_operation fill = {to, pitch, value, element_bytes, width, height};
    return sg_submit(stream, &(sg_operation){SG_OPERATION_FILL, .fill = fill});
}

#define MEMSET(bits, type)                                                                                       \
    SG_EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {       \
        return fill(to, 0, value, sizeof value, count, 1, stream);                                               \
    }                                                                                                            \
    SG_EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count) {                          \
        return fill(to, 0, value, sizeof value, count, 1, NULL);                                                 \
    }                                                                                                            \
    SG_EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,          \
                                                size_t height, CUstream stream) {                                \
        return fill(to, pitch, value, sizeof value, width, height, stream);                                      \
    }                                                                                                            \
    SG_EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,            \
                                              size_t height) {                                                   \
        return fill(to, pitch, value, sizeof value, width, height, NULL);                                        \
    }

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)

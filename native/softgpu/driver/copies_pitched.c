/* Copies of rectangles and boxes. Arrays (textures) are not supported. */
#include <string.h>

#include "driver.h"

/* One side of the copy: where row 0 begins, and how far apart rows and slices are. */
typedef struct {
    CUmemorytype type;
    unsigned char *host;
    CUdeviceptr device;
    size_t x, y, z;
    size_t pitch, height;
} side;

typedef struct {
    size_t width, height, depth;
} extent;

static bool span_of(const side *s, const extent *e, size_t *offset, size_t *size) {
    size_t slice, last;
    if (__builtin_mul_overflow(s->pitch, s->height, &slice))
        return false;
    if (__builtin_mul_overflow(s->z + e->depth - 1, slice, &last))
        return false;
    *offset = s->z * slice + s->y * s->pitch + s->x;
    *size = (e->depth - 1) * slice + (e->height - 1) * s->pitch + e->width;
    return *size >= e->width;
}

static CUresult resolve(CUcontext context, side *s, const extent *e, bool write) {
    size_t offset, size;
    sg_allocation known;
    if (s->pitch == 0)
        s->pitch = s->x + e->width;
    if (s->height == 0)
        s->height = s->y + e->height;
    if (s->pitch < e->width || !span_of(s, e, &offset, &size))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->type == CU_MEMORYTYPE_UNIFIED) {
        s->type = sg_memory_lookup(s->device, &known) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        s->host = (unsigned char *)(uintptr_t)s->device;
    }
    if (s->type == CU_MEMORYTYPE_DEVICE)
        return sg_memory_access(context, s->device + offset, size, write, &s->host);
    if (s->type == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (s->type != CU_MEMORYTYPE_HOST || s->host == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    s->host += offset;
    return CUDA_SUCCESS;
}

static CUresult copy(CUcontext context, side *to, side *from, const extent *e) {
    if (e->width == 0 || e->height == 0 || e->depth == 0)
        return CUDA_SUCCESS;
    CUresult result = resolve(context, from, e, false);
    if (result == CUDA_SUCCESS)
        result = resolve(context, to, e, true);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        sg_log_unsupported("call", "copy of a CUDA array");
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t z = 0; z < e->depth; z++)
        for (size_t y = 0; y < e->height; y++)
            memmove(to->host + (z * to->height + y) * to->pitch, from->host + (z * from->height + y) * from->pitch,
                    e->width);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (c == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    side from = {c->srcMemoryType, (unsigned char *)(uintptr_t)c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, 0,
                 c->srcPitch, 0};
    side to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, 0, c->dstPitch, 0};
    return copy(context, &to, &from, &(extent){c->WidthInBytes, c->Height, 1});
}
SG_PTSZ(cuMemcpy2DAsync_v2);

SG_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) {
    return cuMemcpy2DAsync_v2(c, NULL);
}
SG_PTDS(cuMemcpy2D_v2);
SG_ALIAS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);
SG_ALIAS(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy2D_v2);

SG_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (c == NULL || c->srcLOD != 0 || c->dstLOD != 0)
        return CUDA_ERROR_INVALID_VALUE;
    side from = {c->srcMemoryType, (unsigned char *)(uintptr_t)c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
                 c->srcZ, c->srcPitch, c->srcHeight};
    side to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstZ, c->dstPitch,
               c->dstHeight};
    return copy(context, &to, &from, &(extent){c->WidthInBytes, c->Height, c->Depth});
}
SG_PTSZ(cuMemcpy3DAsync_v2);

SG_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) {
    return cuMemcpy3DAsync_v2(c, NULL);
}
SG_PTDS(cuMemcpy3D_v2);

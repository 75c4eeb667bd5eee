/* How a copy is done, and the calls for rectangles and boxes. */
#include <string.h>

#include "arrays.h"
#include "timeline.h"

/* One side of the copy: where row 0 begins, and how far apart rows and slices are. */
typedef struct {
    CUmemorytype type;
    unsigned char *host;
    CUdeviceptr device;
    size_t x, y, z;
    size_t pitch, height;
    CUarray array;
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

/* An array has its own pitch; the box lies within its rows. */
static CUresult resolve_array(CUcontext context, side *s, const extent *e, bool commit) {
    CUarray array = s->array;
    if (!sg_object_is(array, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    size_t row = array->shape.Width * array->element_bytes, rows = array->shape.Height ? array->shape.Height : 1;
    size_t slices = array->shape.Depth ? array->shape.Depth : 1;
    bool inside = s->x <= row && e->width <= row - s->x && s->y <= rows && e->height <= rows - s->y &&
                  s->z <= slices && e->depth <= slices - s->z;
    if (!inside || (context != NULL && array->context != context))
        return CUDA_ERROR_INVALID_VALUE;
    if (commit && !sg_array_commit(array))
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->pitch = array->pitch;
    s->height = rows;
    s->host = sg_array_host(array) + s->z * array->slice + s->y * array->pitch + s->x;
    return CUDA_SUCCESS;
}

/* `commit`: back what is written to. A check resolves without it. */
static CUresult resolve(CUcontext context, side *s, const extent *e, bool write, bool commit) {
    size_t offset, size;
    sg_allocation known;
    if (s->type == CU_MEMORYTYPE_ARRAY)
        return resolve_array(context, s, e, write && commit);
    if (s->pitch == 0)
        s->pitch = s->x + e->width;
    if (s->height == 0)
        s->height = s->y + e->height;
    if (s->pitch < e->width || !span_of(s, e, &offset, &size))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->type == CU_MEMORYTYPE_UNIFIED) {
        s->type = sg_memory_lookup(s->device, &known) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        s->host = (unsigned char *)(uintptr_t)s->device;
        context = NULL; /* unified addresses may be of any context */
    }
    if (s->type == CU_MEMORYTYPE_DEVICE && write && !commit)
        return sg_memory_check(context, s->device + offset, size, true);
    if (s->type == CU_MEMORYTYPE_DEVICE)
        return sg_memory_access(context, s->device + offset, size, write, &s->host);
    if (s->type != CU_MEMORYTYPE_HOST || s->host == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    s->host += offset;
    return CUDA_SUCCESS;
}

typedef struct {
    side to, from;
    extent size;
} sides;

static CUresult resolve_both(CUcontext context, const sg_copy_operation *copy, bool commit, sides *s) {
    const CUDA_MEMCPY3D *b = &copy->box;
    *s = (sides){
        .from = {b->srcMemoryType, (unsigned char *)(uintptr_t)b->srcHost, b->srcDevice, b->srcXInBytes, b->srcY, b->srcZ,
                 b->srcPitch, b->srcHeight, b->srcArray},
        .to = {b->dstMemoryType, b->dstHost, b->dstDevice, b->dstXInBytes, b->dstY, b->dstZ, b->dstPitch, b->dstHeight,
               b->dstArray},
        .size = {b->WidthInBytes, b->Height, b->Depth},
    };
    if (s->size.width == 0 || s->size.height == 0 || s->size.depth == 0)
        return CUDA_SUCCESS;
    CUresult result = resolve(copy->from_context != NULL ? copy->from_context : context, &s->from, &s->size, false, commit);
    if (result == CUDA_SUCCESS)
        result = resolve(copy->to_context != NULL ? copy->to_context : context, &s->to, &s->size, true, commit);
    return result;
}

static bool unknown(CUmemorytype type, const void *host, CUdeviceptr device) {
    sg_allocation found;
    if (type == CU_MEMORYTYPE_HOST)
        return !sg_memory_lookup((uintptr_t)host, &found);
    return type == CU_MEMORYTYPE_UNIFIED && !sg_memory_lookup(device, &found);
}

bool sg_copy_pageable(const sg_copy_operation *copy) {
    const CUDA_MEMCPY3D *b = &copy->box;
    return unknown(b->srcMemoryType, b->srcHost, b->srcDevice) || unknown(b->dstMemoryType, b->dstHost, b->dstDevice);
}

CUresult sg_copy_check(CUcontext context, const sg_copy_operation *copy) {
    sides s;
    if (copy->box.srcLOD != 0 || copy->box.dstLOD != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return resolve_both(context, copy, false, &s);
}

/* Whose memory a side is, for what the copy costs. Pinned host memory is the host's. */
static bool is_on_device(const side *s) {
    sg_allocation found;
    return s->type == CU_MEMORYTYPE_ARRAY ||
           (s->type != CU_MEMORYTYPE_HOST && sg_memory_lookup(s->device, &found) &&
           (found.kind == SG_MEMORY_DEVICE || found.kind == SG_MEMORY_MANAGED));
}

/* memmove: a copy within one allocation may overlap. */
CUresult sg_copy_perform(CUcontext context, const sg_copy_operation *copy) {
    sides s;
    CUresult result = resolve_both(context, copy, true, &s);
    if (result != CUDA_SUCCESS || s.size.width == 0)
        return result;
    for (size_t z = 0; z < s.size.depth; z++)
        for (size_t y = 0; y < s.size.height; y++)
            memmove(s.to.host + (z * s.to.height + y) * s.to.pitch,
                    s.from.host + (z * s.from.height + y) * s.from.pitch, s.size.width);
    sg_timeline_copy(&context->gpu->device->facts, is_on_device(&s.from), is_on_device(&s.to),
                     (uint64_t)s.size.width * s.size.height * s.size.depth);
    return CUDA_SUCCESS;
}

static CUresult submit_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool awaited) {
    if (c == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = c->srcXInBytes, .srcY = c->srcY, .srcMemoryType = c->srcMemoryType, .srcHost = c->srcHost,
        .srcDevice = c->srcDevice, .srcArray = c->srcArray, .srcPitch = c->srcPitch,
        .dstXInBytes = c->dstXInBytes, .dstY = c->dstY, .dstMemoryType = c->dstMemoryType, .dstHost = c->dstHost,
        .dstDevice = c->dstDevice, .dstArray = c->dstArray, .dstPitch = c->dstPitch,
        .WidthInBytes = c->WidthInBytes, .Height = c->Height, .Depth = 1};
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, awaited, .copy = {.box = box}});
}

SG_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
    return submit_2d(c, stream, false);
}

SG_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) {
    return submit_2d(c, NULL, true);
}
SG_ALIAS(cuMemcpy2DUnaligned_v2, cuMemcpy2D_v2);

static CUresult submit_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool awaited) {
    if (c == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_COPY, awaited, .copy = {.box = *c}});
}

SG_EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
    return submit_3d(c, stream, false);
}

SG_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) {
    return submit_3d(c, NULL, true);
}

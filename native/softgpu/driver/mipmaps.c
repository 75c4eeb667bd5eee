/* Mipmapped arrays: arrays one behind the other in one piece of memory, each half as large as the one before. A
 * level is an array like others, which is copied to and from, and of which textures and surfaces are made. */
#include <stdlib.h>

#include "arrays.h"
#include "failing.h"

enum { ALIGNMENT = 512, MOST_LEVELS = 18 };

struct CUmipmappedArray_st {
    CUcontext context;
    sg_span *span;
    size_t bytes;
    unsigned count;
    CUmipmappedArray next; /* in the context */
    struct CUarray_st levels[MOST_LEVELS];
};

static size_t half(size_t size, unsigned times) {
    return size == 0 ? 0 : size >> times != 0 ? size >> times : 1;
}

/* Layers are as many in each level. */
static CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level) {
    CUDA_ARRAY3D_DESCRIPTOR d = *whole;
    d.Width = half(d.Width, level);
    d.Height = half(d.Height, level);
    d.Depth = sg_array_layers(whole) != 0 ? d.Depth : half(d.Depth, level);
    return d;
}

/* Down to one element: 1 + log2 of the longest side, rounded down. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    unsigned most = 1;
    size_t depth = sg_array_layers(d) != 0 ? 0 : d->Depth;
    while (d->Width >> most != 0 || d->Height >> most != 0 || depth >> most != 0)
        most++;
    return most;
}

static void lay_out(CUmipmappedArray whole, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    for (unsigned i = 0; i < whole->count; i++) {
        CUDA_ARRAY3D_DESCRIPTOR shape = level_of(d, i);
        sg_array_lay_out(&whole->levels[i], whole->context, &shape);
        whole->levels[i].offset = whole->bytes;
        whole->levels[i].whole = whole;
        whole->bytes += whole->levels[i].bytes;
    }
}

/* Under the space's lock. */
static void forget(CUmipmappedArray whole) {
    for (unsigned i = 0; i < whole->count; i++)
        sg_object_remove(&whole->levels[i]);
    sg_object_remove(whole);
    sg_span_destroy(whole->span);
}

static CUresult make(CUmipmappedArray whole) {
    CUresult result = sg_span_make(whole->context->gpu, whole->bytes, false, &whole->span);
    if (result != CUDA_SUCCESS)
        return result;
    bool known = sg_object_add(whole, SG_MIPMAP);
    for (unsigned i = 0; i < whole->count; i++) {
        whole->levels[i].span = whole->span;
        known = known && sg_object_add(&whole->levels[i], SG_ARRAY);
    }
    if (!known) {
        forget(whole);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    whole->next = whole->context->mipmaps;
    whole->context->mipmaps = whole;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (made == NULL || d == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_array_check(d);
    if (result == CUDA_SUCCESS)
        result = sg_failing_allocation(context->gpu);
    if (result != CUDA_SUCCESS)
        return result;
    CUmipmappedArray whole = calloc(1, sizeof *whole);
    if (whole == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    whole->context = context;
    whole->count = levels == 0 ? 1 : levels < most_levels(d) ? levels : most_levels(d);
    lay_out(whole, d);
    sg_space_lock();
    result = make(whole);
    sg_space_unlock();
    if (result != CUDA_SUCCESS)
        free(whole);
    else
        *made = whole;
    return result;
}

static CUresult find(CUmipmappedArray whole, const void *out) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_object_is(whole, SG_MIPMAP) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SG_EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray whole, unsigned number) {
    CUresult result = find(whole, level);
    if (result == CUDA_SUCCESS && number >= whole->count)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *level = &whole->levels[number];
    return result;
}

SG_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needed, CUmipmappedArray whole,
                                                         CUdevice device) {
    sg_gpu *gpu;
    CUresult result = find(whole, needed);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(device, &gpu);
    if (result == CUDA_SUCCESS)
        *needed = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = whole->bytes, .alignment = ALIGNMENT};
    return result;
}

/* With kernels stopped. */
static void destroy(CUmipmappedArray whole) {
    sg_space_lock();
    for (CUmipmappedArray *at = &whole->context->mipmaps; *at != NULL; at = &(*at)->next)
        if (*at == whole) {
            *at = whole->next;
            break;
        }
    forget(whole);
    sg_space_unlock();
    free(whole);
}

SG_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray whole) {
    CUresult result = find(whole, &whole);
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    sg_context_drain(whole->context);
    sg_kernels_stop();
    destroy(whole);
    sg_kernels_go_on();
    return CUDA_SUCCESS;
}

void sg_mipmaps_release_all(CUcontext context) {
    while (context->mipmaps != NULL)
        destroy(context->mipmaps);
}

/* CUDA arrays: device memory with a shape. They are laid out row after row; a card tiles them, which nothing
 * can see but the time it takes. */
#include <stdlib.h>

#include "arrays.h"
#include "failing.h"

enum { PITCH_ALIGNMENT = 512, CUBE_FACES = 6 };
enum { ALL_FLAGS = SG_ARRAY_LAYERED | SG_ARRAY_SURFACE | SG_ARRAY_CUBE | SG_ARRAY_GATHER };
/* As attributes.c tells them. */
enum { WIDEST_1D = 131072, WIDEST_2D = 131072, HIGHEST_2D = 65536, LARGEST_3D = 16384 };
enum { LARGEST_LAYER = 32768, MOST_LAYERS = 2048 };

unsigned sg_channel_bytes(int format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
    }
}

unsigned char *sg_array_host(CUarray array) {
    return sg_span_view(array->span)->host + array->offset;
}

bool sg_array_commit(CUarray array) {
    sg_view *view = sg_span_view(array->span);
    return sg_view_commit(view, view->address + array->offset, array->bytes);
}

size_t sg_array_layers(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    return (d->Flags & (SG_ARRAY_LAYERED | SG_ARRAY_CUBE)) != 0 ? d->Depth : 0;
}

/* By the list of cuArray3DCreate. A cube has six faces as layers, layered cubes six each. */
static bool fits(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    bool cube = d->Flags & SG_ARRAY_CUBE, layered = d->Flags & SG_ARRAY_LAYERED;
    if ((d->Flags & SG_ARRAY_GATHER) != 0 && (d->Height == 0 || d->Depth != 0))
        return false;
    if (cube && (d->Width != d->Height || (layered ? d->Depth % CUBE_FACES != 0 : d->Depth != CUBE_FACES)))
        return false;
    if (cube || layered)
        return d->Width <= LARGEST_LAYER && d->Height <= LARGEST_LAYER && d->Depth != 0 && d->Depth <= MOST_LAYERS;
    if (d->Depth != 0)
        return d->Height != 0 && d->Width <= LARGEST_3D && d->Height <= LARGEST_3D && d->Depth <= LARGEST_3D;
    return d->Height != 0 ? d->Width <= WIDEST_2D && d->Height <= HIGHEST_2D : d->Width <= WIDEST_1D;
}

CUresult sg_array_check(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    if ((d->Flags & ~(unsigned)ALL_FLAGS) != 0 || sg_channel_bytes(d->Format) == 0) {
        sg_log_unsupported("call", "an array that is sparse, compressed, of depths, or of a planar format");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    bool good = d->Width != 0 && (d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4) && fits(d);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void sg_array_lay_out(CUarray array, CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    array->context = context;
    array->shape = *d;
    array->element_bytes = sg_channel_bytes(d->Format) * d->NumChannels;
    array->pitch = (d->Width * array->element_bytes + PITCH_ALIGNMENT - 1) & ~(size_t)(PITCH_ALIGNMENT - 1);
    array->slice = array->pitch * (d->Height != 0 ? d->Height : 1);
    array->bytes = array->slice * (d->Depth != 0 ? d->Depth : 1);
}

static CUresult make(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *d, CUarray *made) {
    CUarray array = calloc(1, sizeof *array);
    if (array == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_array_lay_out(array, context, d);
    sg_space_lock();
    CUresult result = sg_span_make(context->gpu, array->bytes, false, &array->span);
    if (result == CUDA_SUCCESS && !sg_object_add(array, SG_ARRAY)) {
        sg_span_destroy(array->span);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result == CUDA_SUCCESS) {
        array->next = context->arrays;
        context->arrays = array;
        *made = array;
    } else {
        free(array);
    }
    sg_space_unlock();
    return result;
}

SG_EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (array == NULL || descriptor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_array_check(descriptor);
    if (result == CUDA_SUCCESS)
        result = sg_failing_allocation(context->gpu);
    return result == CUDA_SUCCESS ? make(context, descriptor, array) : result;
}

SG_EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d) {
    if (d == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    CUDA_ARRAY3D_DESCRIPTOR whole = {.Width = d->Width, .Height = d->Height, .Format = d->Format,
                                     .NumChannels = d->NumChannels};
    return cuArray3DCreate_v2(array, &whole);
}

static CUresult describe(CUarray array, const void *out) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_object_is(array, SG_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SG_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array) {
    CUresult result = describe(array, descriptor);
    if (result == CUDA_SUCCESS)
        *descriptor = array->shape;
    return result;
}

SG_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array) {
    CUresult result = describe(array, descriptor);
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY_DESCRIPTOR){array->shape.Width, array->shape.Height, array->shape.Format,
                                              array->shape.NumChannels};
    return result;
}

SG_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needed, CUarray array, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = describe(array, needed);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(device, &gpu);
    if (result == CUDA_SUCCESS)
        *needed = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = array->bytes, .alignment = PITCH_ALIGNMENT};
    return result;
}

/* With kernels stopped. */
static void destroy(CUarray array) {
    sg_space_lock();
    for (CUarray *at = &array->context->arrays; *at != NULL; at = &(*at)->next)
        if (*at == array) {
            *at = array->next;
            break;
        }
    sg_object_remove(array);
    sg_span_destroy(array->span);
    sg_space_unlock();
    free(array);
}

SG_EXPORT CUresult cuArrayDestroy(CUarray array) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(array, SG_ARRAY) || array->whole != NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    sg_context_drain(array->context);
    sg_kernels_stop();
    destroy(array);
    sg_kernels_go_on();
    return CUDA_SUCCESS;
}

void sg_arrays_release_all(CUcontext context) {
    sg_kernels_stop();
    while (context->arrays != NULL)
        destroy(context->arrays);
    sg_mipmaps_release_all(context);
    sg_kernels_go_on();
}

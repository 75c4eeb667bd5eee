/* Texture and surface objects. An object remembers what it was made of; where that lies is looked up when a
 * kernel asks, so that an array destroyed before its texture is a fault of the kernel and not a crash. */
#include <stdlib.h>
#include <string.h>

#include "arrays.h"

enum { READ_AS_INTEGER = 1, NORMALIZED_COORDINATES = 2, SRGB = 0x10 };
enum { FILTER_POINT = 0, FILTER_LINEAR = 1 };

struct object {
    CUcontext context;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampling;
};

static sg_texel_kind kind_of(int format) {
    switch (format) {
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_FLOAT: return SG_TEXEL_FLOAT;
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_UNSIGNED_INT32: return SG_TEXEL_UNSIGNED;
    default: return SG_TEXEL_SIGNED;
    }
}

static void format_of(const CUDA_RESOURCE_DESC *r, int *format, unsigned *channels) {
    if (r->resType == CU_RESOURCE_TYPE_ARRAY) {
        *format = r->res.array.hArray->shape.Format;
        *channels = r->res.array.hArray->shape.NumChannels;
    } else if (r->resType == CU_RESOURCE_TYPE_LINEAR) {
        *format = r->res.linear.format;
        *channels = r->res.linear.numChannels;
    } else {
        *format = r->res.pitch2D.format;
        *channels = r->res.pitch2D.numChannels;
    }
}

static CUresult check_resource(const CUDA_RESOURCE_DESC *r) {
    if (r->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (r->resType == CU_RESOURCE_TYPE_ARRAY)
        return sg_object_is(r->res.array.hArray, SG_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (r->resType != CU_RESOURCE_TYPE_LINEAR && r->resType != CU_RESOURCE_TYPE_PITCH2D) {
        sg_log_unsupported("call", "a texture of a mipmapped array");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    int format;
    unsigned channels, bytes;
    format_of(r, &format, &channels);
    bytes = sg_channel_bytes(format) * channels;
    if (bytes == 0 || (channels != 1 && channels != 2 && channels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    if (r->resType == CU_RESOURCE_TYPE_LINEAR)
        return r->res.linear.sizeInBytes >= bytes && r->res.linear.devPtr % bytes == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    bool whole = r->res.pitch2D.width > 0 && r->res.pitch2D.height > 0 && r->res.pitch2D.pitchInBytes % 32 == 0 &&
                 r->res.pitch2D.width <= r->res.pitch2D.pitchInBytes / bytes && r->res.pitch2D.devPtr % bytes == 0;
    return whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool reads_normalized(int format, unsigned flags) {
    return !(flags & READ_AS_INTEGER) && kind_of(format) != SG_TEXEL_FLOAT && sg_channel_bytes(format) < 4;
}

static CUresult check_sampling(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *s) {
    int format;
    unsigned channels;
    format_of(r, &format, &channels);
    for (int i = 0; i < 3; i++)
        if (s->addressMode[i] < 0 || s->addressMode[i] > SG_ADDRESS_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
    if (s->filterMode != FILTER_POINT && s->filterMode != FILTER_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->flags & SRGB) {
        sg_log_unsupported("call", "a texture with conversion from sRGB");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    bool floats = kind_of(format) == SG_TEXEL_FLOAT || reads_normalized(format, s->flags);
    return s->filterMode == FILTER_LINEAR && !floats ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult make(CUcontext context, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *s, sg_kind kind,
                     unsigned long long *handle) {
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL || !sg_object_add(object, kind)) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->context = context;
    object->resource = *r;
    if (s != NULL)
        object->sampling = *s;
    *handle = (uintptr_t)object;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuTexObjectCreate(unsigned long long *handle, const CUDA_RESOURCE_DESC *resource,
                                     const CUDA_TEXTURE_DESC *sampling, const void *view) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || resource == NULL || sampling == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (view != NULL) {
        sg_log_unsupported("call", "a texture with a resource view");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = check_resource(resource);
    if (result == CUDA_SUCCESS)
        result = check_sampling(resource, sampling);
    return result == CUDA_SUCCESS ? make(context, resource, sampling, SG_TEXTURE, handle) : result;
}

/* Stores are not asked for one by one: all of the array is backed now. */
SG_EXPORT CUresult cuSurfObjectCreate(unsigned long long *handle, const CUDA_RESOURCE_DESC *resource) {
    enum { SURFACE_LOAD_STORE = 2 };
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || resource == NULL || resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = check_resource(resource)) != CUDA_SUCCESS)
        return result;
    CUarray array = resource->res.array.hArray;
    if (!(array->shape.Flags & SURFACE_LOAD_STORE))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_array_commit(array) ? make(context, resource, NULL, SG_SURFACE, handle) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult object_of(unsigned long long handle, sg_kind kind, struct object **object) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    *object = (struct object *)(uintptr_t)handle;
    return sg_object_is(*object, kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Between kernels: one that runs may be asking for it. */
static CUresult destroy(unsigned long long handle, sg_kind kind) {
    struct object *object;
    CUresult result = object_of(handle, kind, &object);
    if (result != CUDA_SUCCESS)
        return result;
    sg_context_drain(object->context);
    sg_kernels_stop();
    sg_object_remove(object);
    sg_kernels_go_on();
    free(object);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuTexObjectDestroy(unsigned long long handle) {
    return destroy(handle, SG_TEXTURE);
}

SG_EXPORT CUresult cuSurfObjectDestroy(unsigned long long handle) {
    return destroy(handle, SG_SURFACE);
}

static CUresult get_resource(CUDA_RESOURCE_DESC *resource, unsigned long long handle, sg_kind kind) {
    struct object *object;
    CUresult result = object_of(handle, kind, &object);
    if (result == CUDA_SUCCESS && resource == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *resource = object->resource;
    return result;
}

SG_EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, unsigned long long handle) {
    return get_resource(resource, handle, SG_TEXTURE);
}

SG_EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, unsigned long long handle) {
    return get_resource(resource, handle, SG_SURFACE);
}

SG_EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *sampling, unsigned long long handle) {
    struct object *object;
    CUresult result = object_of(handle, SG_TEXTURE, &object);
    if (result == CUDA_SUCCESS && sampling == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *sampling = object->sampling;
    return result;
}

/* ---- for kernels ---- */

static bool place_array(CUcontext context, CUarray array, sg_texture *t) {
    if (!sg_object_is(array, SG_ARRAY) || array->context != context)
        return false;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->shape;
    t->bytes = sg_array_host(array);
    t->layers = sg_array_layers(d);
    t->dimensions = d->Depth != 0 && t->layers == 0 ? 3 : d->Height != 0 ? 2 : 1;
    t->size[0] = d->Width;
    t->size[1] = d->Height != 0 ? d->Height : 1;
    t->size[2] = t->dimensions == 3 ? d->Depth : 1;
    t->pitch = array->pitch;
    t->slice = array->slice;
    return true;
}

static bool place_memory(CUcontext context, const CUDA_RESOURCE_DESC *r, unsigned element, sg_texture *t) {
    bool linear = r->resType == CU_RESOURCE_TYPE_LINEAR;
    CUdeviceptr address = linear ? r->res.linear.devPtr : r->res.pitch2D.devPtr;
    t->dimensions = linear ? 1 : 2;
    t->size[0] = linear ? r->res.linear.sizeInBytes / element : r->res.pitch2D.width;
    t->size[1] = linear ? 1 : r->res.pitch2D.height;
    t->size[2] = 1;
    t->pitch = linear ? 0 : r->res.pitch2D.pitchInBytes;
    size_t bytes = (t->size[1] - 1) * t->pitch + t->size[0] * element;
    return sg_memory_access(context, address, bytes, false, &t->bytes) == CUDA_SUCCESS;
}

static void sample(const struct object *object, int format, sg_texture *t) {
    const CUDA_TEXTURE_DESC *s = &object->sampling;
    bool linear_memory = object->resource.resType == CU_RESOURCE_TYPE_LINEAR;
    t->normalized_read = reads_normalized(format, s->flags);
    t->normalized_coordinates = (s->flags & NORMALIZED_COORDINATES) != 0 && !linear_memory;
    t->linear = s->filterMode == FILTER_LINEAR && !linear_memory;
    for (int i = 0; i < 3; i++) {
        bool repeats = s->addressMode[i] == SG_ADDRESS_WRAP || s->addressMode[i] == SG_ADDRESS_MIRROR;
        t->address[i] = (uint8_t)(repeats && !t->normalized_coordinates ? SG_ADDRESS_CLAMP : s->addressMode[i]);
        if (linear_memory)
            t->address[i] = SG_ADDRESS_BORDER; /* tex1Dfetch outside gives zero */
    }
    for (int i = 0; i < 4; i++)
        t->border[i] = linear_memory ? 0.0f : s->borderColor[i];
}

bool sg_texture_for_kernel(void *given, uint64_t handle, bool surface, sg_texture *t) {
    CUcontext context = given;
    const struct object *object = (const struct object *)(uintptr_t)handle;
    int format;
    unsigned channels;
    if (!sg_object_is(object, surface ? SG_SURFACE : SG_TEXTURE) || object->context != context)
        return false;
    const CUDA_RESOURCE_DESC *r = &object->resource;
    *t = (sg_texture){0};
    if (r->resType == CU_RESOURCE_TYPE_ARRAY && !place_array(context, r->res.array.hArray, t))
        return false;
    format_of(r, &format, &channels);
    t->channels = channels;
    t->channel_bytes = sg_channel_bytes(format);
    t->kind = kind_of(format);
    if (r->resType != CU_RESOURCE_TYPE_ARRAY && !place_memory(context, r, t->channels * t->channel_bytes, t))
        return false;
    if (!surface)
        sample(object, format, t);
    return true;
}

/* Arrays and mipmapped arrays of the current context: charged first by their shape, then by what the driver says
 * that they take. */
#include "account.h"
#include "cuda_devices.h"
#include "governor.h"
#include "surface.h"

/* Bytes of one element with all its channels; of a format we do not know the most there is. */
static uint64_t element_bytes(int format, unsigned channels)
{
    switch (format) {
    case 0x01: case 0x08: /* 8 bit */
    case 0xc0: case 0xc1: case 0xc2: case 0xc6: case 0xc7: case 0xc8:
        return channels;
    case 0x02: case 0x09: case 0x10: /* 16 bit, half */
    case 0xc3: case 0xc4: case 0xc5: case 0xc9: case 0xca: case 0xcb:
        return 2 * (uint64_t)channels;
    case 0x03: case 0x0a: case 0x20: /* 32 bit, float */
        return 4 * (uint64_t)channels;
    case 0xb0: /* NV12: 12 bit a pixel in all planes */
        return 2;
    default:
        if (format >= 0x91 && format <= 0x9e) /* BC1 to BC7: at most 16 bytes for 4 × 4 */
            return 1;
        return 4 * (uint64_t)(channels > 4 ? channels : 4);
    }
}

static uint64_t at_least_one(uint64_t count)
{
    return count > 0 ? count : 1;
}

/* Bytes of `levels` levels. Sparse and deferred arrays have no memory of their own. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
    if (shape == NULL || (shape->Flags & (ARRAY_SPARSE | ARRAY_DEFERRED_MAPPING)) != 0)
        return 0;
    bool layers = (shape->Flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)) != 0;
    uint64_t width = shape->Width, height = shape->Height, depth = at_least_one(shape->Depth), total = 0;
    for (unsigned level = 0; level < levels && level < 32; level++) {
        uint64_t bytes = account_product(at_least_one(width), at_least_one(height));
        bytes = account_product(account_product(bytes, depth), element_bytes(shape->Format, shape->NumChannels));
        total = bytes > UINT64_MAX - total ? UINT64_MAX : total + bytes;
        width /= 2;
        height /= 2;
        depth = layers ? depth : at_least_one(depth / 2);
    }
    return total;
}

/* ---- their true size ---- */

static CUresult ask(bool mipmap, void *array, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *needed)
{
    typedef CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *, void *, CUdevice);
    return mipmap ? REAL(cuMipmappedArrayGetMemoryRequirements, requirements *)(needed, array, device)
                  : REAL(cuArrayGetMemoryRequirements, requirements *)(needed, array, device);
}

static CUresult make(bool mipmap, void **array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
    return mipmap ? REAL(cuMipmappedArrayCreate, CUresult (*)(void **, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))(
                        array, shape, levels)
                  : REAL(cuArray3DCreate_v2, CUresult (*)(void **, const CUDA_ARRAY3D_DESCRIPTOR *))(array, shape);
}

static void destroy(bool mipmap, void *array)
{
    if (mipmap)
        REAL(cuMipmappedArrayDestroy, CUresult (*)(void *))(array);
    else
        REAL(cuArrayDestroy, CUresult (*)(void *))(array);
}

/* What a card tells only of an array whose memory is bound later: so one more of that shape is made, which has
 * none, and asked. 0 where the driver does not say. */
static uint64_t required(bool mipmap, void *array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels, CUdevice device)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed = {0};
    if (ask(mipmap, array, device, &needed) == CUDA_SUCCESS)
        return needed.size;
    CUDA_ARRAY3D_DESCRIPTOR unbound = *shape;
    void *twin = NULL;
    unbound.Flags |= ARRAY_DEFERRED_MAPPING;
    if (make(mipmap, &twin, &unbound, levels) != CUDA_SUCCESS)
        return 0;
    CUresult result = ask(mipmap, twin, device, &needed);
    destroy(mipmap, twin);
    return result == CUDA_SUCCESS ? needed.size : 0;
}

/* Charge what it truly takes; where that does not fit, it goes again. */
static CUresult correct(struct entry *entry, CUresult result, bool mipmap, void *array,
                        const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
    if (result != CUDA_SUCCESS || entry->bytes == 0)
        return result;
    uint64_t bytes = required(mipmap, array, shape, levels, devices_of_share(entry->device));
    if (bytes == 0 || account_correct(entry, bytes))
        return result;
    destroy(mipmap, array);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

#define NEW_ARRAY(name, descriptor, shape)                                                         \
    EXPORTED CUresult name(CUarray *out, const descriptor *asked)                                  \
    {                                                                                              \
        struct entry entry;                                                                        \
        CUarray got = NULL;                                                                        \
        const CUDA_ARRAY3D_DESCRIPTOR widened = asked != NULL ? (CUDA_ARRAY3D_DESCRIPTOR)shape     \
                                                              : (CUDA_ARRAY3D_DESCRIPTOR){0};      \
        CUresult result = account_begin(&entry, KIND_ARRAY, asked != NULL ? array_bytes(&widened, 1) : 0); \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        result = REAL(name, CUresult (*)(CUarray *, const descriptor *))(out != NULL ? &got : NULL, asked); \
        result = correct(&entry, result, false, got, &widened, 1);                                 \
        result = account_end(&entry, result, (uint64_t)got);                                       \
        if (result == CUDA_SUCCESS && out != NULL)                                                 \
            *out = got;                                                                            \
        return result;                                                                             \
    }

#define FLAT {asked->Width, asked->Height, 0, asked->Format, asked->NumChannels, 0}
#define SOLID {asked->Width, asked->Height, asked->Depth, asked->Format, asked->NumChannels, asked->Flags}
NEW_ARRAY(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, FLAT)
NEW_ARRAY(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, FLAT)
NEW_ARRAY(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, SOLID)
NEW_ARRAY(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, SOLID)

EXPORTED CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *asked, unsigned levels)
{
    struct entry entry;
    CUmipmappedArray got = NULL;
    CUresult result = account_begin(&entry, KIND_MIPMAP, array_bytes(asked, levels));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMipmappedArrayCreate, CUresult (*)(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))(
        out != NULL ? &got : NULL, asked, levels);
    result = correct(&entry, result, true, got, asked, levels);
    result = account_end(&entry, result, (uint64_t)got);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

#define END_ARRAY(name, kind)                                                                      \
    EXPORTED CUresult name(void *array)                                                            \
    {                                                                                              \
        struct entry entry;                                                                        \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        bool known = account_take(kind, (uint64_t)array, &entry);                                  \
        return account_gave(known, &entry, REAL(name, CUresult (*)(void *))(array));               \
    }

END_ARRAY(cuArrayDestroy, KIND_ARRAY)
END_ARRAY(cuMipmappedArrayDestroy, KIND_MIPMAP)

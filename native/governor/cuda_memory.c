/* Linear memory and arrays of the current context. */
#include "account.h"
#include "governor.h"
#include "surface.h"

/* ---- linear memory ---- */

typedef CUresult free_memory(CUdeviceptr);

static free_memory *real_free(void)
{
    return REAL(cuMemFree_v2, free_memory *);
}

EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    struct entry entry;
    CUdeviceptr got = 0;
    CUresult result = account_begin(&entry, KIND_MEMORY, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAlloc_v2, CUresult (*)(CUdeviceptr *, size_t))(out != NULL ? &got : NULL, bytes);
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

/* The 32-bit form of CUDA 2: its pointers are in the book like any other. */
EXPORTED CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned bytes)
{
    struct entry entry;
    CUdeviceptr_v1 got = 0;
    CUresult result = account_begin(&entry, KIND_MEMORY, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAlloc, CUresult (*)(CUdeviceptr_v1 *, unsigned))(out != NULL ? &got : NULL, bytes);
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

EXPORTED CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    struct entry entry;
    CUdeviceptr got = 0;
    CUresult result = account_begin(&entry, KIND_MEMORY, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAllocManaged, CUresult (*)(CUdeviceptr *, size_t, unsigned))(out != NULL ? &got : NULL, bytes, flags);
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

/* The driver chooses the pitch. Charged first for rows as they are, then for rows as they came
 * out; where that no longer fits, the memory goes back. */
EXPORTED CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    struct entry entry;
    CUdeviceptr got = 0;
    size_t row = 0;
    CUresult result = account_begin(&entry, KIND_MEMORY, account_product(width, height));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAllocPitch_v2, CUresult (*)(CUdeviceptr *, size_t *, size_t, size_t, unsigned))(
        out != NULL ? &got : NULL, pitch != NULL ? &row : NULL, width, height, element);
    if (result == CUDA_SUCCESS && !account_correct(&entry, account_product(row > width ? row : width, height))) {
        real_free()(got);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL && pitch != NULL) {
        *out = got;
        *pitch = row;
    }
    return result;
}

EXPORTED CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned *pitch, unsigned width, unsigned height, unsigned element)
{
    struct entry entry;
    CUdeviceptr_v1 got = 0;
    unsigned row = 0;
    CUresult result = account_begin(&entry, KIND_MEMORY, account_product(width, height));
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuMemAllocPitch, CUresult (*)(CUdeviceptr_v1 *, unsigned *, unsigned, unsigned, unsigned))(
        out != NULL ? &got : NULL, pitch != NULL ? &row : NULL, width, height, element);
    if (result == CUDA_SUCCESS && !account_correct(&entry, account_product(row > width ? row : width, height))) {
        REAL(cuMemFree, CUresult (*)(CUdeviceptr_v1))(got);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL && pitch != NULL) {
        *out = got;
        *pitch = row;
    }
    return result;
}

EXPORTED CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct entry entry;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    bool known = account_take(KIND_MEMORY, pointer, &entry);
    return account_gave(known, &entry, real_free()(pointer));
}

EXPORTED CUresult cuMemFree(CUdeviceptr_v1 pointer)
{
    struct entry entry;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    bool known = account_take(KIND_MEMORY, pointer, &entry);
    return account_gave(known, &entry, REAL(cuMemFree, CUresult (*)(CUdeviceptr_v1))(pointer));
}

/* ---- arrays ---- */

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

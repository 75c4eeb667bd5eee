/* Linear memory of the current context. */
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
    bool known = account_take(KIND_MEMORY, pointer, &entry) || account_take(KIND_IMPORT, pointer, &entry);
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

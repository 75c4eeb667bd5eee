/* Physical memory by handle. A handle's bytes stay until its last reference is released and its
 * last mapping is gone, in either order: many programs release the handle right after mapping. */
#include "account.h"
#include "governor.h"
#include "surface.h"

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *properties,
                              unsigned long long flags)
{
    typedef CUresult create(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    create *real = REAL(cuMemCreate, create *);
    if (properties == NULL)
        return real(out, bytes, properties, flags);
    CUmemLocation where = properties->location;
    if (where.type == LOCATION_HOST || where.type == LOCATION_HOST_NUMA || where.type == LOCATION_HOST_NUMA_CURRENT)
        return real(out, bytes, properties, flags);
    if (where.type == LOCATION_DEVICE_LOCALITY_DOMAIN)
        where.id &= 0xff;
    else if (where.type != LOCATION_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct entry entry;
    CUmemGenericAllocationHandle got = 0;
    CUresult result = account_begin_on(&entry, KIND_HANDLE, bytes, where.id);
    if (result != CUDA_SUCCESS)
        return result;
    result = real(out != NULL ? &got : NULL, bytes, properties, flags);
    result = account_end(&entry, result, got);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

static void add_reference(uint64_t handle)
{
    book_lock();
    struct entry *entry = book_find(KIND_HANDLE, handle);
    if (entry != NULL)
        entry->references++;
    book_unlock();
}

/* One reference less before the driver is asked; true where it was the last, and `taken` then is
 * the entry, out of the book. */
static bool take_reference(uint64_t handle, struct entry *taken)
{
    book_lock();
    struct entry *entry = book_find(KIND_HANDLE, handle);
    bool last = entry != NULL && entry->references <= 1;
    if (last)
        book_take(KIND_HANDLE, handle, taken);
    else if (entry != NULL)
        entry->references--;
    book_unlock();
    return last;
}

static CUresult end_reference(uint64_t handle, bool last, const struct entry *taken, CUresult result)
{
    if (result != CUDA_SUCCESS && !last)
        add_reference(handle);
    return account_gave(last, taken, result);
}

EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct entry taken;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    bool last = take_reference(handle, &taken);
    return end_reference(handle, last, &taken, REAL(cuMemRelease, CUresult (*)(uint64_t))(handle));
}

EXPORTED CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuMemRetainAllocationHandle, CUresult (*)(CUmemGenericAllocationHandle *, void *))(out, address);
    if (result == CUDA_SUCCESS && out != NULL)
        add_reference(*out);
    return result;
}

EXPORTED CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                           unsigned long long flags)
{
    struct entry taken, mapping = {.kind = KIND_MAPPING, .key = address, .bytes = bytes, .owner = handle};
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    add_reference(handle);
    CUresult result = REAL(cuMemMap, CUresult (*)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                                                  unsigned long long))(address, bytes, offset, handle, flags);
    if (result != CUDA_SUCCESS) {
        account_gave(take_reference(handle, &taken), &taken, CUDA_SUCCESS);
        return result;
    }
    book_lock();
    book_put(&mapping);
    book_unlock();
    return result;
}

EXPORTED CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct entry mapping, taken;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuMemUnmap, CUresult (*)(CUdeviceptr, size_t))(address, bytes);
    /* The range may cover several mappings, each as it was made. */
    for (CUdeviceptr at = address; result == CUDA_SUCCESS && at - address < bytes; at += mapping.bytes) {
        if (!account_take(KIND_MAPPING, at, &mapping) || mapping.bytes == 0)
            break;
        account_gave(take_reference(mapping.owner, &taken), &taken, CUDA_SUCCESS);
    }
    return result;
}

/* The pool functions, and allocation in stream order. */
#include "account.h"
#include "cuda_devices.h"
#include "governor.h"
#include "graph_memory.h"
#include "pools.h"
#include "surface.h"

#define LEGACY_STREAM ((CUstream)1)
#define PER_THREAD_STREAM ((CUstream)2)

/* ---- which pools there are ---- */

static CUresult remember(CUresult result, const CUmemoryPool *got, CUdevice device)
{
    return result != CUDA_SUCCESS || got == NULL ? result : pools_remember((uint64_t)*got, device);
}

static bool on_device(const CUmemLocation *location, CUdevice *device)
{
    *device = location->type == LOCATION_DEVICE_LOCALITY_DOMAIN ? location->id & 0xff : location->id;
    return location->type == LOCATION_DEVICE || location->type == LOCATION_DEVICE_LOCALITY_DOMAIN;
}

EXPORTED CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    CUdevice device = -1;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (properties != NULL && (properties->allocType != ALLOCATION_PINNED || !on_device(&properties->location, &device)))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = REAL(cuMemPoolCreate, CUresult (*)(CUmemoryPool *, const CUmemPoolProps *))(pool, properties);
    return remember(result, pool, device);
}

EXPORTED CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuMemPoolDestroy, CUresult (*)(CUmemoryPool))(pool);
    if (result == CUDA_SUCCESS)
        pools_destroyed((uint64_t)pool);
    return result;
}

#define DEVICE_POOL(name)                                                                          \
    EXPORTED CUresult name(CUmemoryPool *pool, CUdevice device)                                    \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = REAL(name, CUresult (*)(CUmemoryPool *, CUdevice))(pool, device);        \
        return remember(result, pool, device);                                                     \
    }

DEVICE_POOL(cuDeviceGetDefaultMemPool)
DEVICE_POOL(cuDeviceGetMemPool)

#define LOCATION_POOL(name)                                                                        \
    EXPORTED CUresult name(CUmemoryPool *pool, CUmemLocation *location, int type)                  \
    {                                                                                              \
        CUdevice device = 0;                                                                       \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        if (location != NULL && (type != ALLOCATION_PINNED || !on_device(location, &device)))      \
            return CUDA_ERROR_NOT_SUPPORTED;                                                       \
        CUresult result =                                                                          \
            REAL(name, CUresult (*)(CUmemoryPool *, CUmemLocation *, int))(pool, location, type);  \
        return remember(result, pool, device);                                                     \
    }

LOCATION_POOL(cuMemGetDefaultMemPool)
LOCATION_POOL(cuMemGetMemPool)

/* ---- allocating in stream order ---- */

/* The device whose pool serves `stream`: its context's, which need not be the current one. */
static CUresult device_of(CUstream stream, CUdevice *device)
{
    void *context = NULL;
    if (stream != NULL && stream != LEGACY_STREAM && stream != PER_THREAD_STREAM &&
        REAL(cuStreamGetCtx, CUresult (*)(CUstream, void **))(stream, &context) == CUDA_SUCCESS && context != NULL) {
        CUresult result = REAL(cuCtxPushCurrent_v2, CUresult (*)(void *))(context);
        if (result != CUDA_SUCCESS)
            return result;
        result = REAL(cuCtxGetDevice, CUresult (*)(CUdevice *))(device);
        REAL(cuCtxPopCurrent_v2, CUresult (*)(void **))(&context);
        return result;
    }
    return REAL(cuCtxGetDevice, CUresult (*)(CUdevice *))(device);
}

/* A driver that cannot capture does not. */
static bool captures(CUstream stream, CUresult (*is_capturing)(CUstream, int *))
{
    int status = 0;
    return is_capturing(stream, &status) == CUDA_SUCCESS && status != 0;
}

typedef CUresult allocate_in_pool(CUdeviceptr *, size_t, uint64_t, CUstream);

static CUresult allocate(CUdeviceptr *out, size_t bytes, uint64_t pool, CUstream stream, allocate_in_pool *take,
                         free_in_order *give)
{
    struct entry entry = {.kind = KIND_MEMORY, .bytes = bytes, .pool = pool, .references = 1};
    unsigned device;
    CUresult result = account_place(&entry.owner, &device);
    if (result != CUDA_SUCCESS)
        return result;
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = pools_make_room(pool, bytes, &device);
    if (result != CUDA_SUCCESS)
        return result;
    entry.device = (uint8_t)device;
    CUdeviceptr got = 0;
    result = take(out != NULL ? &got : NULL, bytes, pool, stream);
    if (result != CUDA_SUCCESS) {
        pools_freed(pool, bytes);
        return result;
    }
    entry.key = got;
    result = pools_keep(&entry, stream, give);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

/* While the stream captures, the allocation becomes a node of the graph. */
static CUresult capture(CUdeviceptr *out, size_t bytes, uint64_t pool, CUstream stream, allocate_in_pool *take)
{
    unsigned index;
    CUdeviceptr got = 0;
    if (!pools_device(pool, &index))
        return CUDA_ERROR_NOT_SUPPORTED; /* a pool of another process or of host memory */
    CUdevice device = devices_of_share(index);
    CUresult result = graph_memory_node_begins(device, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = take(out != NULL ? &got : NULL, bytes, pool, stream);
    graph_memory_node_ended(device, bytes);
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

static CUresult current_pool(CUstream stream, uint64_t *pool)
{
    CUdevice device;
    CUresult result = device_of(stream, &device);
    return result != CUDA_SUCCESS ? result : cuDeviceGetMemPool((CUmemoryPool *)pool, device);
}

#define STREAM_ORDERED(suffix)                                                                     \
    EXPORTED CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *out, size_t bytes,              \
                                                      CUmemoryPool pool, CUstream stream)          \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        if (captures(stream, REAL(cuStreamIsCapturing##suffix, CUresult (*)(CUstream, int *))))    \
            return capture(out, bytes, (uint64_t)pool, stream,                                     \
                           REAL(cuMemAllocFromPoolAsync##suffix, allocate_in_pool *));             \
        return allocate(out, bytes, (uint64_t)pool, stream,                                        \
                        REAL(cuMemAllocFromPoolAsync##suffix, allocate_in_pool *),                 \
                        REAL(cuMemFreeAsync##suffix, free_in_order *));                            \
    }                                                                                              \
    /* From the pool by name, so that nobody changes the device's pool between our look and the    \
     * driver's. */                                                                                \
    EXPORTED CUresult cuMemAllocAsync##suffix(CUdeviceptr *out, size_t bytes, CUstream stream)     \
    {                                                                                              \
        uint64_t pool = 0;                                                                         \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = current_pool(stream, &pool);                                             \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        return cuMemAllocFromPoolAsync##suffix(out, bytes, (CUmemoryPool)pool, stream);            \
    }                                                                                              \
    EXPORTED CUresult cuMemFreeAsync##suffix(CUdeviceptr pointer, CUstream stream)                 \
    {                                                                                              \
        struct entry entry;                                                                        \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        free_in_order *real = REAL(cuMemFreeAsync##suffix, free_in_order *);                       \
        if (captures(stream, REAL(cuStreamIsCapturing##suffix, CUresult (*)(CUstream, int *))))    \
            return real(pointer, stream); /* becomes a node: nothing is freed now */               \
        bool known = account_take(KIND_MEMORY, pointer, &entry) || account_take(KIND_IMPORT, pointer, &entry); \
        return account_gave(known, &entry, real(pointer, stream));                                 \
    }

STREAM_ORDERED()
STREAM_ORDERED(_ptsz)

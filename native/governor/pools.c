#include "pools.h"

#include "account.h"
#include "cuda_devices.h"
#include "governor.h"
#include "ledger.h"
#include "share.h"
#include "surface.h"

#define LEGACY_STREAM ((CUstream)1)
#define PER_THREAD_STREAM ((CUstream)2)

static CUresult trim_to(uint64_t pool, size_t keep)
{
    return REAL(cuMemPoolTrimTo, CUresult (*)(uint64_t, size_t))(pool, keep);
}

/* Where the driver does not say, nothing: the charge is then what lives in it. */
static uint64_t reserved_by(uint64_t pool)
{
    uint64_t reserved = 0;
    CUresult result = REAL(cuMemPoolGetAttribute, CUresult (*)(uint64_t, int, void *))(
        pool, POOL_ATTRIBUTE_RESERVED_CURRENT, &reserved);
    return result == CUDA_SUCCESS ? reserved : 0;
}

/* Charge `pool` what it has now. False: it has grown past the limit, the charge stays as it was. */
static bool settle(uint64_t pool)
{
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    bool alive = entry != NULL && !entry->gone;
    book_unlock();
    uint64_t reserved = alive ? reserved_by(pool) : 0, more = 0, less = 0;
    unsigned device = 0;
    book_lock();
    entry = book_find(KIND_POOL, pool);
    if (entry != NULL) {
        uint64_t target = reserved > entry->live ? reserved : entry->live;
        device = entry->device;
        more = target > entry->bytes ? target - entry->bytes : 0;
        less = target < entry->bytes ? entry->bytes - target : 0;
        entry->bytes = target;
    }
    book_unlock();
    ledger_release(device, less);
    if (more == 0 || ledger_charge(device, more) == CHARGED)
        return true;
    book_lock();
    if ((entry = book_find(KIND_POOL, pool)) != NULL)
        entry->bytes -= more < entry->bytes ? more : entry->bytes;
    book_unlock();
    return false;
}

/* Add to (or take from) what lives in `pool`, and take it out of the book with its last byte
 * where it was destroyed. */
static void live_change(uint64_t pool, uint64_t more, uint64_t less)
{
    struct entry ended = {0};
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    bool last = false;
    if (entry != NULL) {
        entry->live += more;
        entry->live -= less < entry->live ? less : entry->live;
        last = entry->gone && entry->live == 0 && book_take(KIND_POOL, pool, &ended);
    }
    book_unlock();
    if (last) {
        book_unreserve();
        ledger_release(ended.device, ended.bytes);
    }
}

void pools_freed(uint64_t pool, uint64_t bytes)
{
    live_change(pool, 0, bytes);
    settle(pool);
}

/* The pool at or after *at in the book, by key: the book may change between two. */
static bool next_pool(uint64_t *at, uint64_t *pool, unsigned *device)
{
    struct entry *entry;
    book_lock();
    while ((entry = book_next(at)) != NULL && entry->kind != KIND_POOL)
        ;
    if (entry != NULL) {
        *pool = entry->key;
        *device = entry->device;
    }
    book_unlock();
    return entry != NULL;
}

void pools_settle(void)
{
    uint64_t at = 0, pool;
    unsigned device;
    while (next_pool(&at, &pool, &device))
        settle(pool);
}

bool pools_trim(unsigned device)
{
    uint64_t at = 0, pool, before = ledger_used(device);
    unsigned of;
    bool any = false;
    while (next_pool(&at, &pool, &of))
        if (of == device) {
            any = true;
            trim_to(pool, 0);
            settle(pool);
        }
    return any && ledger_used(device) < before;
}

/* ---- which pools there are ---- */

static CUresult remember(CUresult result, const CUmemoryPool *got, CUdevice device)
{
    if (result != CUDA_SUCCESS || got == NULL)
        return result;
    uint64_t pool = (uint64_t)*got;
    struct entry entry = {.kind = KIND_POOL, .key = pool};
    int index = devices_share_index(device);
    if (index < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!book_reserve())
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry.device = (uint8_t)index;
    book_lock();
    struct entry *known = book_find(KIND_POOL, pool);
    if (known == NULL || known->gone)
        book_put(&entry);
    book_unlock();
    if (known != NULL)
        book_unreserve();
    settle(pool);
    return CUDA_SUCCESS;
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
    if (result != CUDA_SUCCESS)
        return result;
    book_lock();
    struct entry *entry = book_find(KIND_POOL, (uint64_t)pool);
    if (entry != NULL)
        entry->gone = true;
    book_unlock();
    live_change((uint64_t)pool, 0, 0);
    settle((uint64_t)pool);
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

static CUresult refuse_capture(CUstream stream, CUresult (*is_capturing)(CUstream, int *))
{
    int status = 0;
    CUresult result = is_capturing(stream, &status);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        return CUDA_SUCCESS; /* a driver that cannot capture */
    return result == CUDA_SUCCESS && status != 0 ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : result;
}

/* Room in `pool` for `bytes`: what it keeps idle first, then of the share. */
static CUresult make_room(uint64_t pool, uint64_t bytes, unsigned *device)
{
    settle(pool);
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    uint64_t more = 0;
    if (entry != NULL) {
        *device = entry->device;
        entry->live = bytes > UINT64_MAX - entry->live ? UINT64_MAX : entry->live + bytes;
        more = entry->live > entry->bytes ? entry->live - entry->bytes : 0;
    }
    book_unlock();
    if (entry == NULL)
        return CUDA_ERROR_NOT_SUPPORTED; /* a pool of another process or of host memory */
    CUresult result = account_charge(*device, more);
    book_lock();
    if ((entry = book_find(KIND_POOL, pool)) != NULL) {
        if (result == CUDA_SUCCESS)
            entry->bytes += more;
        else
            entry->live -= bytes < entry->live ? bytes : entry->live;
    }
    book_unlock();
    return result;
}

typedef CUresult allocate_in_pool(CUdeviceptr *, size_t, uint64_t, CUstream);
typedef CUresult free_in_order(CUdeviceptr, CUstream);

/* Written down, or freed again where the pool grew past the limit. */
static CUresult keep(struct entry *entry, CUstream stream, free_in_order *give)
{
    if (!settle(entry->pool)) {
        trim_to(entry->pool, 0);
        if (!settle(entry->pool)) {
            give(entry->key, stream);
            book_unreserve();
            pools_freed(entry->pool, entry->bytes);
            ledger_denied(entry->device);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    book_lock();
    book_put(entry);
    book_unlock();
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *out, size_t bytes, uint64_t pool, CUstream stream, allocate_in_pool *take,
                         free_in_order *give)
{
    struct entry entry = {.kind = KIND_MEMORY, .bytes = bytes, .pool = pool, .references = 1};
    unsigned device;
    CUresult result = account_place(&entry.owner, &device);
    if (result != CUDA_SUCCESS)
        return result;
    if (!book_reserve())
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = make_room(pool, bytes, &device);
    if (result != CUDA_SUCCESS) {
        book_unreserve();
        return result;
    }
    entry.device = (uint8_t)device;
    CUdeviceptr got = 0;
    result = take(out != NULL ? &got : NULL, bytes, pool, stream);
    if (result != CUDA_SUCCESS) {
        book_unreserve();
        pools_freed(pool, bytes);
        return result;
    }
    entry.key = got;
    result = keep(&entry, stream, give);
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
        CUresult result =                                                                          \
            refuse_capture(stream, REAL(cuStreamIsCapturing##suffix, CUresult (*)(CUstream, int *))); \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
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
        if (refuse_capture(stream, REAL(cuStreamIsCapturing##suffix,                               \
                                        CUresult (*)(CUstream, int *))) != CUDA_SUCCESS)           \
            return real(pointer, stream); /* becomes a node: nothing is freed now */               \
        bool known = account_take(KIND_MEMORY, pointer, &entry);                                   \
        return account_gave(known, &entry, real(pointer, stream));                                 \
    }

STREAM_ORDERED()
STREAM_ORDERED(_ptsz)

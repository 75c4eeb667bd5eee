#include "pools.h"

#include "account.h"
#include "cuda_devices.h"
#include "ledger.h"
#include "share.h"
#include "surface.h"

/* The driver keeps the memory of all graphs of a device in a pool of its own, which has no handle. Ours is a
 * number that no handle is. */
static bool is_graphs(uint64_t pool)
{
    return pool <= INT8_MAX;
}

uint64_t pools_of_graphs(CUdevice device)
{
    return (uint64_t)device + 1;
}

static CUresult trim_to(uint64_t pool, size_t keep)
{
    if (is_graphs(pool))
        return REAL(cuDeviceGraphMemTrim, CUresult (*)(CUdevice))((CUdevice)pool - 1);
    return REAL(cuMemPoolTrimTo, CUresult (*)(uint64_t, size_t))(pool, keep);
}

/* Where the driver does not say, nothing: the charge is then what lives in it. */
static uint64_t reserved_by(uint64_t pool)
{
    uint64_t reserved = 0;
    CUresult result =
        is_graphs(pool) ? REAL(cuDeviceGetGraphMemAttribute, CUresult (*)(CUdevice, int, void *))(
                              (CUdevice)pool - 1, GRAPH_MEMORY_RESERVED_CURRENT, &reserved)
                        : REAL(cuMemPoolGetAttribute, CUresult (*)(uint64_t, int, void *))(
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
    if (last && ended.export != 0)
        ledger_withdraw(ended.export - 1u);
    if (last)
        ledger_release(ended.device, ended.bytes);
}

void pools_freed(uint64_t pool, uint64_t bytes)
{
    live_change(pool, 0, bytes);
    settle(pool);
}

void pools_absorb(uint64_t pool, uint64_t bytes)
{
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    if (entry != NULL)
        entry->bytes += bytes;
    book_unlock();
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

bool pools_device(uint64_t pool, unsigned *device)
{
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    if (entry != NULL)
        *device = entry->device;
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

CUresult pools_remember(uint64_t pool, CUdevice device)
{
    struct entry entry = {.kind = KIND_POOL, .key = pool};
    int index = devices_share_index(device);
    if (index < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    entry.device = (uint8_t)index;
    book_lock();
    struct entry *known = book_find(KIND_POOL, pool);
    if (known == NULL || known->gone)
        book_put(&entry);
    book_unlock();
    settle(pool);
    return CUDA_SUCCESS;
}

void pools_destroyed(uint64_t pool)
{
    book_lock();
    struct entry *entry = book_find(KIND_POOL, pool);
    if (entry != NULL)
        entry->gone = true;
    book_unlock();
    live_change(pool, 0, 0);
    settle(pool);
}

CUresult pools_make_room(uint64_t pool, uint64_t bytes, unsigned *device)
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

CUresult pools_keep(struct entry *entry, CUstream stream, free_in_order *give)
{
    if (!settle(entry->pool)) {
        trim_to(entry->pool, 0);
        if (!settle(entry->pool)) {
            give(entry->key, stream);
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

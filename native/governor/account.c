#include "account.h"

#include <string.h>

#include "cuda_devices.h"
#include "gate.h"
#include "governor.h"
#include "ledger.h"
#include "pools.h"
#include "share.h"
#include "sharing.h"
#include "surface.h"

uint64_t account_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

CUresult account_charge(unsigned device, uint64_t bytes)
{
    enum charge answer = ledger_charge(device, bytes);
    if (answer == OVER_LIMIT && pools_trim(device))
        answer = ledger_charge(device, bytes);
    if (answer == CHARGED)
        return CUDA_SUCCESS;
    if (answer == NO_SLOT)
        return CUDA_ERROR_SYSTEM_NOT_READY;
    ledger_denied(device);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void account_release(unsigned device, uint64_t bytes)
{
    ledger_release(device, bytes);
}

/* ---- where the thread stands ---- */

static CUresult charge_unseen(uint64_t context, unsigned device)
{
    struct entry entry = {.kind = KIND_CONTEXT, .key = context, .device = (uint8_t)device, .references = 1};
    entry.bytes = share_context_bytes(device);
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = account_charge(device, entry.bytes);
    if (result != CUDA_SUCCESS)
        return result;
    book_lock();
    bool seen_meanwhile = book_find(KIND_CONTEXT, context) != NULL;
    if (!seen_meanwhile)
        book_put(&entry);
    book_unlock();
    if (seen_meanwhile) {
        account_release(device, entry.bytes);
    }
    return CUDA_SUCCESS;
}

CUresult account_place(uint64_t *context, unsigned *device)
{
    enum { INVALID_CONTEXT = 201 };
    void *current = NULL;
    CUdevice ordinal;
    CUresult result = REAL(cuCtxGetCurrent, CUresult (*)(void **))(&current);
    if (result != CUDA_SUCCESS)
        return result;
    if (current == NULL)
        return INVALID_CONTEXT;
    *context = (uint64_t)current;
    if (book_shows_context(*context, device))
        return CUDA_SUCCESS;
    result = REAL(cuCtxGetDevice, CUresult (*)(CUdevice *))(&ordinal);
    if (result != CUDA_SUCCESS)
        return result;
    int index = devices_share_index(ordinal);
    if (index < 0)
        return CUDA_ERROR_SYSTEM_NOT_READY;
    *device = (unsigned)index;
    book_lock();
    bool seen = book_find(KIND_CONTEXT, *context) != NULL;
    book_unlock();
    return seen ? CUDA_SUCCESS : charge_unseen(*context, *device);
}

/* ---- allocating ---- */

static CUresult begin(struct entry *entry)
{
    if (!book_has_room())
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = account_charge(entry->device, entry->bytes);
    return result;
}

CUresult account_begin(struct entry *entry, enum kind kind, uint64_t bytes)
{
    unsigned device;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    *entry = (struct entry){.kind = (uint8_t)kind, .bytes = bytes, .references = 1};
    CUresult result = account_place(&entry->owner, &device);
    if (result != CUDA_SUCCESS)
        return result;
    entry->device = (uint8_t)device;
    return begin(entry);
}

CUresult account_begin_on(struct entry *entry, enum kind kind, uint64_t bytes, int device)
{
    *entry = (struct entry){.kind = (uint8_t)kind, .bytes = bytes, .references = 1};
    int index = devices_share_index(device);
    if (index < 0)
        return CUDA_ERROR_SYSTEM_NOT_READY;
    entry->device = (uint8_t)index;
    return begin(entry);
}

CUresult account_end(struct entry *entry, CUresult result, uint64_t key)
{
    if (result != CUDA_SUCCESS) {
        account_release(entry->device, entry->bytes);
        return result;
    }
    entry->key = key;
    book_lock();
    book_put(entry);
    book_unlock();
    return result;
}

bool account_correct(struct entry *entry, uint64_t bytes)
{
    if (bytes > entry->bytes) {
        if (account_charge(entry->device, bytes - entry->bytes) != CUDA_SUCCESS)
            return false;
    } else {
        account_release(entry->device, entry->bytes - bytes);
    }
    entry->bytes = bytes;
    return true;
}

/* ---- giving back ---- */

bool account_take(enum kind kind, uint64_t key, struct entry *entry)
{
    book_lock();
    bool known = book_take(kind, key, entry);
    book_unlock();
    return known;
}

static void end_export(const struct entry *entry)
{
    if (entry->export != 0 && (entry->kind == KIND_IMPORT || entry->imported))
        sharing_let_go(entry->export - 1u);
    else if (entry->export != 0)
        ledger_withdraw(entry->export - 1u);
}

CUresult account_gave(bool known, const struct entry *entry, CUresult result)
{
    if (!known)
        return result;
    if (result != CUDA_SUCCESS) {
        book_lock();
        book_put(entry);
        book_unlock();
        return result;
    }
    end_export(entry);
    if (entry->pool != 0)
        pools_freed(entry->pool, entry->bytes);
    else
        account_release(entry->device, entry->bytes);
    return result;
}

static bool owned_by(const struct entry *entry, uint64_t context, bool keep)
{
    switch (entry->kind) {
    case KIND_MEMORY:
    case KIND_MODULE:
    case KIND_IMPORT:
    case KIND_ARRAY:
    case KIND_MIPMAP:
        return entry->owner == context;
    case KIND_CONTEXT:
        return !keep && entry->key == context;
    default:
        return false;
    }
}

void account_drop_context(uint64_t context, bool keep)
{
    for (;;) {
        struct entry *found, taken;
        uint64_t at = 0;
        book_lock();
        while ((found = book_next(&at)) != NULL && !owned_by(found, context, keep))
            ;
        bool known = found != NULL && book_take((enum kind)found->kind, found->key, &taken);
        book_unlock();
        if (!known)
            break;
        account_gave(true, &taken, CUDA_SUCCESS);
    }
    gate_context_gone();
}

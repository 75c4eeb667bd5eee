#include "context_memory.h"

#include <stddef.h>
#include <string.h>

#include "account.h"
#include "estimate.h"
#include "ledger.h"
#include "share.h"

/* ---- which functions were launched before ---- */

enum { ROWS = 512, IN_A_ROW = 8 };

static uint64_t launched[ROWS][IN_A_ROW];

/* One that fell out of its row is measured again: that finds nothing more, and costs a moment. */
bool context_memory_is_first(const void *function)
{
    uint64_t key = estimate_mix(0, (uint64_t)(uintptr_t)function);
    if (function == NULL || key == 0)
        return false;
    uint64_t *row = launched[key % ROWS];
    for (unsigned at = 0; at < IN_A_ROW; at++) {
        uint64_t seen = __atomic_load_n(&row[at], __ATOMIC_RELAXED);
        if (seen == key)
            return false;
        if (seen == 0) {
            __atomic_store_n(&row[at], key, __ATOMIC_RELAXED);
            return true;
        }
    }
    __atomic_store_n(&row[(key >> 32) % IN_A_ROW], key, __ATOMIC_RELAXED);
    return true;
}

void context_memory_forget(void)
{
    memset(launched, 0, sizeof launched);
}

/* ---- what they took ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Under the book's lock: `taken` bytes were allowed ahead, as far as some were. What is left of them. */
static uint64_t beyond_ahead(struct entry *context, uint64_t taken)
{
    uint64_t foreseen = smaller(taken, context->ahead);
    context->ahead -= foreseen;
    return taken - foreseen;
}

void context_memory_launched(const struct overhead *before)
{
    int64_t taken;
    if (!overhead_moved(before, 0, &taken) || taken <= 0)
        return;
    uint64_t more = (uint64_t)taken;
    book_lock();
    struct entry *context = book_find(KIND_CONTEXT, before->context);
    if (context != NULL) {
        more = beyond_ahead(context, more);
        context->bytes += more;
        context->live += more;
    }
    book_unlock();
    if (context != NULL)
        ledger_charge_taken(before->device, more);
}

/* ---- limits ---- */

uint64_t context_memory_beyond_launches(uint64_t context, uint64_t more)
{
    book_lock();
    struct entry *entry = book_find(KIND_CONTEXT, context);
    uint64_t covered = entry != NULL ? smaller(more, entry->live) : 0;
    if (entry != NULL)
        entry->live -= covered;
    book_unlock();
    return more - covered;
}

/* Under the book's lock: `less` bytes go, never of what the context itself takes. Those that went. */
static uint64_t shrink(struct entry *context, uint64_t less)
{
    uint64_t floor = share_context_bytes(context->device);
    less = smaller(less, context->bytes > floor ? context->bytes - floor : 0);
    context->bytes -= less;
    context->live -= smaller(context->live, less);
    return less;
}

void context_memory_limited(const struct overhead *before, uint64_t ahead, uint64_t less)
{
    int64_t moved = 0;
    bool told = overhead_moved(before, ahead, &moved);
    uint64_t taken = told && moved > 0 ? (uint64_t)moved : 0, given = told && moved < 0 ? (uint64_t)-moved : 0;
    uint64_t more = taken > ahead ? taken - ahead : 0;
    book_lock();
    struct entry *context = book_find(KIND_CONTEXT, before->context);
    if (context != NULL) {
        context->bytes += ahead + more;
        context->ahead += told && ahead > taken ? ahead - taken : 0;
        uint64_t limited = beyond_ahead(context, less);
        less = shrink(context, told ? less - limited + smaller(given, limited + context->live) : less);
    } else {
        less = ahead; /* it went away meanwhile, and its charge with it, but not this one */
        more = 0;
    }
    book_unlock();
    ledger_charge_taken(before->device, more);
    account_release(before->device, less);
}

void context_memory_reset(uint64_t context)
{
    uint64_t less = 0;
    unsigned device = 0;
    book_lock();
    struct entry *entry = book_find(KIND_CONTEXT, context);
    if (entry != NULL) {
        device = entry->device;
        less = shrink(entry, entry->bytes);
        entry->live = entry->ahead = 0;
    }
    book_unlock();
    account_release(device, less);
}

void context_memory_unloaded(const struct overhead *before)
{
    int64_t moved;
    uint64_t less = 0;
    context_memory_forget();
    if (!overhead_moved(before, 0, &moved) || moved >= 0)
        return;
    book_lock();
    struct entry *context = book_find(KIND_CONTEXT, before->context);
    if (context != NULL)
        less = shrink(context, smaller((uint64_t)-moved, context->live));
    book_unlock();
    account_release(before->device, less);
}

#include "total.h"

#include <stddef.h>

#include "aliquot_abi.h"
#include "share.h"
#include "words.h"

_Static_assert(TOTAL_EXPORTS == ALIQUOT_SLOTS_MAX, "exports come after all slots");
_Static_assert(TOTAL_EXPORTS + ALIQUOT_EXPORTS_MAX == ALIQUOT_ACCOUNTS_MAX, "an intent for each account");
_Static_assert(offsetof(aliquot_ledger, devices) % 16 == 0 && sizeof(aliquot_ledger_device) % 16 == 0 &&
                   offsetof(aliquot_ledger_device, charged) % 16 == 0 &&
                   offsetof(aliquot_ledger_device, charged_by) == offsetof(aliquot_ledger_device, charged) + 8,
               "both words change in one compare-and-swap");

struct total {
    uint64_t bytes, by;
};

static uint64_t signature(unsigned account, uint64_t sequence)
{
    return sequence << 16 | (account + 1);
}

static struct total read_total(unsigned device)
{
    const aliquot_ledger_device *words = &share.ledger->devices[device];
    struct total seen;
    int looks = 0;
    do {
        seen.by = load(&words->charged_by);
        seen.bytes = load(&words->charged);
    } while (seen.by != load(&words->charged_by) && ++looks < 1000);
    return seen;
}

static bool swap(unsigned device, struct total old, struct total new)
{
    bool swapped;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(swapped), "+m"(*(struct total *)&share.ledger->devices[device].charged), "+a"(old.bytes),
                       "+d"(old.by)
                     : "b"(new.bytes), "c"(new.by)
                     : "memory");
    return swapped;
}

/* The step that `by` names has happened: say so where it can be found after `by` is gone. */
static void note(uint64_t by)
{
    uint64_t account = (by & 0xffff) - 1, sequence = by >> 16;
    if (by == 0 || account >= ALIQUOT_ACCOUNTS_MAX)
        return;
    uint64_t *applied = &share.ledger->intents[account].applied, seen = load(applied);
    while (seen < sequence && !__atomic_compare_exchange_n(applied, &seen, sequence, false, __ATOMIC_SEQ_CST,
                                                           __ATOMIC_SEQ_CST))
        ;
}

static uint64_t *word_of(unsigned account, unsigned device)
{
    return account < TOTAL_EXPORTS ? &share.ledger->slots[account].used[device]
                                   : &share.ledger->exports[account - TOTAL_EXPORTS].bytes;
}

/* ---- a step ---- */

static uint64_t write_intent(unsigned account, unsigned device, uint64_t after)
{
    aliquot_intent *intent = &share.ledger->intents[account];
    uint64_t last = load(&intent->step) >> 8, seen = load(&intent->applied);
    uint64_t sequence = ((last > seen ? last : seen) + 1) & (UINT64_MAX >> 16);
    /* The old step's cell stays: until the next line we may die with it being the last. */
    __atomic_store_n(&intent->next[sequence & 1], after, __ATOMIC_RELEASE);
    __atomic_store_n(&intent->step, sequence << 8 | device, __ATOMIC_RELEASE);
    return sequence;
}

/* `bytes`, less `before`, and `after` more; at least what this account alone has. */
static uint64_t replaced(uint64_t bytes, uint64_t before, uint64_t after)
{
    return add_capped(bytes > before ? bytes - before : 0, after);
}

bool total_step(unsigned account, unsigned device, uint64_t before, uint64_t after, uint64_t limit)
{
    uint64_t sequence = 0;
    for (;;) {
        struct total seen = read_total(device);
        struct total next = {replaced(seen.bytes, before, after), 0};
        if (after > before && next.bytes > limit)
            return false;
        if (sequence == 0)
            sequence = write_intent(account, device, after);
        next.by = signature(account, sequence);
        if ((seen.by & 0xffff) != account + 1) /* our own last step is whole */
            note(seen.by);
        if (swap(device, seen, next))
            break;
    }
    __atomic_store_n(word_of(account, device), after, __ATOMIC_RELEASE);
    return true;
}

/* ---- after a death ---- */

/* Whether the step `sequence` of `account` is in `seen` or before it. `seen` was read first: a step that
 * leaves `charged_by` is noted before. */
static bool happened(unsigned account, uint64_t sequence, struct total seen)
{
    return seen.by == signature(account, sequence) || load(&share.ledger->intents[account].applied) == sequence;
}

void total_finish(unsigned account)
{
    const aliquot_intent *intent = &share.ledger->intents[account];
    uint64_t step = load(&intent->step), sequence = step >> 8;
    unsigned device = step & 0xff;
    if (sequence == 0 || device >= share.devices)
        return;
    if (happened(account, sequence, read_total(device)))
        store(word_of(account, device), load(&intent->next[sequence & 1]));
}

uint64_t total_bytes(unsigned device)
{
    return read_total(device).bytes;
}

/* ---- mending ---- */

/* What `account` holds in the total `seen`. Its word may lag behind its step. */
static uint64_t holds(unsigned account, unsigned device, struct total seen)
{
    const aliquot_intent *intent = &share.ledger->intents[account];
    uint64_t step, word;
    int looks = 0;
    do {
        step = load(&intent->step);
        word = load(word_of(account, device));
        if ((step & 0xff) == device && step >> 8 != 0 && happened(account, step >> 8, seen))
            word = load(&intent->next[step >> 8 & 1]);
    } while (step != load(&intent->step) && ++looks < 100);
    return word;
}

static uint64_t sum(unsigned device, struct total seen, unsigned own, uint64_t held)
{
    uint64_t bytes = 0;
    uint32_t high = __atomic_load_n(&share.ledger->high_water, __ATOMIC_SEQ_CST);
    for (unsigned slot = 0; slot < ALIQUOT_SLOTS_MAX && slot < high; slot++)
        if (slot != own)
            bytes = add_capped(bytes, holds(slot, device, seen));
    for (unsigned at = 0; at < ALIQUOT_EXPORTS_MAX; at++)
        if (__atomic_load_n(&share.ledger->exports[at].device, __ATOMIC_SEQ_CST) == device)
            bytes = add_capped(bytes, holds(TOTAL_EXPORTS + at, device, seen));
    return add_capped(bytes, held);
}

void total_mend(unsigned device, unsigned own, uint64_t held)
{
    for (int looks = 0; looks < 8; looks++) {
        struct total seen = read_total(device);
        struct total right = {sum(device, seen, own, held), 0};
        struct total after = read_total(device);
        if (seen.bytes != after.bytes || seen.by != after.by)
            continue; /* somebody took a step meanwhile: the sum is of no one moment */
        if (right.bytes == seen.bytes)
            return;
        note(seen.by);
        if (swap(device, seen, right))
            return;
    }
}

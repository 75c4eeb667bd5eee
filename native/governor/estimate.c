#include "estimate.h"

#include <string.h>

enum { ROWS = 1024, IN_A_ROW = 8 };

static struct estimate table[ROWS][IN_A_ROW];

uint64_t estimate_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

struct estimate *estimate_of(uint64_t key)
{
    struct estimate *row = table[key % ROWS];
    for (unsigned at = 0; at < IN_A_ROW; at++) {
        uint64_t seen = __atomic_load_n(&row[at].key, __ATOMIC_RELAXED);
        if (seen == key)
            return &row[at];
        if (seen == 0 && __atomic_compare_exchange_n(&row[at].key, &seen, key, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return &row[at];
        if (seen == key)
            return &row[at];
    }
    struct estimate *old = &row[(key >> 32) % IN_A_ROW];
    __atomic_store_n(&old->ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&old->measured, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&old->key, key, __ATOMIC_RELAXED);
    return old;
}

bool estimate_wants_solo(struct estimate *entry)
{
    uint32_t opened = __atomic_fetch_add(&entry->opened, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&entry->measured, __ATOMIC_RELAXED) < ESTIMATE_FIRST_SOLOS ||
           opened % ESTIMATE_SOLO_EACH == 0 ||
           __atomic_load_n(&entry->ns, __ATOMIC_RELAXED) >= ESTIMATE_ALWAYS_SOLO_NS;
}

void estimate_learn(struct estimate *entry, uint64_t ns, bool roughly)
{
    uint64_t known = __atomic_load_n(&entry->ns, __ATOMIC_RELAXED);
    uint32_t measured = __atomic_load_n(&entry->measured, __ATOMIC_RELAXED);
    if (known != 0 && (measured >= 1 || roughly))
        ns = (known * 7 + ns * 3) / 10;
    __atomic_store_n(&entry->ns, ns != 0 ? ns : 1, __ATOMIC_RELAXED);
    if (measured < UINT32_MAX && !roughly)
        __atomic_store_n(&entry->measured, measured + 1, __ATOMIC_RELAXED);
}

void estimate_drift(uint32_t *ratio, uint64_t measured, uint64_t predicted)
{
    if (predicted == 0)
        return;
    double now = (double)__atomic_load_n(ratio, __ATOMIC_RELAXED), found = (double)measured / (double)predicted * ESTIMATE_NO_DRIFT;
    now += 0.3 * (found - now);
    uint32_t next = now < ESTIMATE_NO_DRIFT / 8.0   ? ESTIMATE_NO_DRIFT / 8
                    : now > ESTIMATE_NO_DRIFT * 8.0 ? ESTIMATE_NO_DRIFT * 8
                                                    : (uint32_t)now;
    __atomic_store_n(ratio, next, __ATOMIC_RELAXED);
}

void estimate_forget(void)
{
    memset(table, 0, sizeof table);
}

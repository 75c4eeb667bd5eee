#include "exports.h"

#include <time.h>

#include "aliquot_abi.h"
#include "descriptors.h"
#include "locks.h"
#include "share.h"
#include "total.h"
#include "words.h"

enum { HOLDER_WORDS = ALIQUOT_SLOTS_MAX / 64 };

static aliquot_export *at(unsigned export)
{
    return &share.ledger->exports[export];
}

/* Held for microseconds by others, and by a stopped process as long as that is stopped: then not waited for. */
static bool lock_table(void)
{
    const struct timespec moment = {.tv_nsec = 100000};
    for (int looks = 0; looks < 5000; looks++) {
        enum lock answer = locks_take(LOCK_EXPORTS);
        if (answer != LOCK_OTHERS)
            return answer == LOCK_MINE;
        nanosleep(&moment, NULL);
    }
    return false;
}

static void unlock_table(void)
{
    locks_drop(LOCK_EXPORTS);
}

/* ---- one export, under the lock ---- */

static bool has_holders(const aliquot_export *export)
{
    uint64_t holders = 0;
    for (unsigned word = 0; word < HOLDER_WORDS; word++)
        holders |= load(&export->holders[word]);
    return holders != 0;
}

static bool is_in_files(const aliquot_export *export)
{
    return load(&export->named) != 0 && descriptors_open(load(&export->key));
}

static bool is_held(const aliquot_export *export)
{
    return has_holders(export) || is_in_files(export);
}

static void set_holder(aliquot_export *export, unsigned slot, bool holds)
{
    uint64_t *word = &export->holders[slot / 64], bit = UINT64_C(1) << slot % 64;
    store(word, holds ? load(word) | bit : load(word) & ~bit);
}

static uint32_t exporter_of(const aliquot_export *export)
{
    return __atomic_load_n(&export->exporter, __ATOMIC_ACQUIRE);
}

static unsigned device_of(const aliquot_export *export)
{
    uint32_t device = __atomic_load_n(&export->device, __ATOMIC_ACQUIRE);
    return device < share.devices ? device : 0;
}

static void charge(unsigned export, uint64_t bytes)
{
    uint64_t before = load(&at(export)->bytes);
    if (before != bytes)
        total_step(TOTAL_EXPORTS + export, device_of(at(export)), before, bytes, TOTAL_NO_LIMIT);
}

/* Nobody has it any more. */
static void end(unsigned export)
{
    uint64_t bytes = load(&at(export)->bytes), now = now_ns(), since = load(&at(export)->since);
    charge(export, 0);
    store(&at(export)->key, 0); /* last: until here whoever comes next does it again */
    if (bytes != 0 && now > since)
        add_double(&share.ledger->devices[device_of(at(export))].retired, (double)bytes * (double)(now - since) / 1e9);
}

/* The exporter goes: others pay, or nobody has to. The step comes first, so that a kill leaves the memory
 * charged twice for a moment, and never not at all. */
static void leave(unsigned export)
{
    if (!is_held(at(export))) {
        end(export);
        return;
    }
    if (load(&at(export)->bytes) == 0) {
        store(&at(export)->since, now_ns());
        charge(export, load(&at(export)->size));
    }
    __atomic_store_n(&at(export)->exporter, 0, __ATOMIC_RELEASE);
}

static int find(uint64_t key)
{
    for (unsigned export = 0; export < ALIQUOT_EXPORTS_MAX; export++)
        if (load(&at(export)->key) == key)
            return (int)export;
    return EXPORT_NONE;
}

/* ---- from outside ---- */

static int publish(unsigned slot, uint64_t key, unsigned device, uint64_t size, bool named)
{
    int known = find(key);
    if (known >= 0 && exporter_of(at((unsigned)known)) == slot + 1 && load(&at((unsigned)known)->size) == size)
        return known;
    if (known >= 0) /* the handle of memory that is gone, and that a dead process may still seem to hold */
        return EXPORT_NONE;
    int place = find(0);
    if (place < 0)
        return EXPORT_NONE;
    aliquot_export *export = at((unsigned)place);
    total_finish(TOTAL_EXPORTS + (unsigned)place);
    charge((unsigned)place, 0);
    for (unsigned word = 0; word < HOLDER_WORDS; word++)
        store(&export->holders[word], 0);
    store(&export->size, size);
    store(&export->named, named);
    __atomic_store_n(&export->device, device, __ATOMIC_RELEASE);
    __atomic_store_n(&export->exporter, slot + 1, __ATOMIC_RELEASE);
    store(&export->key, key); /* last: until here the place is free */
    return place;
}

int exports_publish(unsigned slot, uint64_t key, unsigned device, uint64_t size, bool named)
{
    int place = EXPORT_NONE;
    if (key != 0 && lock_table()) {
        place = publish(slot, key, device, size, named);
        unlock_table();
    }
    return place;
}

uint64_t exports_key(unsigned export)
{
    return load(&at(export)->key);
}

void exports_withdraw(unsigned slot, unsigned export)
{
    if (!lock_table())
        return; /* it stays the slot's export, and goes with the slot */
    if (load(&at(export)->key) != 0 && exporter_of(at(export)) == slot + 1) {
        total_finish(TOTAL_EXPORTS + export);
        leave(export);
    }
    unlock_table();
}

int exports_hold(unsigned slot, uint64_t key)
{
    if (!lock_table())
        return EXPORT_NONE;
    int export = find(key);
    if (export >= 0)
        set_holder(at((unsigned)export), slot, true);
    unlock_table();
    return export;
}

static void let_go(unsigned slot, unsigned export)
{
    total_finish(TOTAL_EXPORTS + export);
    set_holder(at(export), slot, false);
    if (exporter_of(at(export)) == slot + 1)
        leave(export);
    else if (exporter_of(at(export)) == 0 && !is_held(at(export)))
        end(export);
}

void exports_let_go(unsigned slot, unsigned export)
{
    if (!lock_table())
        return; /* held until this process ends */
    if (load(&at(export)->key) != 0 && exporter_of(at(export)) != slot + 1)
        let_go(slot, export);
    else if (load(&at(export)->key) != 0) /* its own, which it had opened as well */
        set_holder(at(export), slot, false);
    unlock_table();
}

static bool is_left_in_files(unsigned export)
{
    return load(&at(export)->key) != 0 && load(&at(export)->named) != 0 && exporter_of(at(export)) == 0 &&
           !has_holders(at(export));
}

void exports_sweep(void)
{
    unsigned first = 0;
    while (first < ALIQUOT_EXPORTS_MAX && !is_left_in_files(first))
        first++;
    if (first == ALIQUOT_EXPORTS_MAX || !lock_table())
        return;
    for (unsigned export = first; export < ALIQUOT_EXPORTS_MAX; export++)
        if (is_left_in_files(export) && !is_in_files(at(export))) {
            total_finish(TOTAL_EXPORTS + export);
            end(export);
        }
    unlock_table();
}

static bool is_holder(const aliquot_export *export, unsigned slot)
{
    return (load(&export->holders[slot / 64]) >> slot % 64 & 1) != 0;
}

/* What nobody has was being ended when its last holder was killed. */
static bool concerns(const aliquot_export *export, unsigned slot)
{
    uint32_t exporter = exporter_of(export);
    return load(&export->key) != 0 &&
           (exporter == slot + 1 || is_holder(export, slot) || (exporter == 0 && !is_held(export)));
}

bool exports_of_dead(unsigned slot)
{
    unsigned first = 0;
    while (first < ALIQUOT_EXPORTS_MAX && !concerns(at(first), slot))
        first++;
    if (first == ALIQUOT_EXPORTS_MAX)
        return true;
    if (!lock_table())
        return false;
    for (unsigned export = first; export < ALIQUOT_EXPORTS_MAX; export++)
        if (concerns(at(export), slot))
            let_go(slot, export);
    unlock_table();
    return true;
}

static bool has_living_holder(const aliquot_export *export, bool (*is_alive)(unsigned slot))
{
    for (unsigned slot = 0; slot < ALIQUOT_SLOTS_MAX; slot++)
        if (is_holder(export, slot) && is_alive(slot))
            return true;
    return false;
}

/* Also of an exporter that died and that nobody has cleared yet. */
uint64_t exports_bytes(unsigned device, bool (*is_alive)(unsigned slot))
{
    uint64_t total = 0;
    for (unsigned number = 0; number < ALIQUOT_EXPORTS_MAX; number++) {
        const aliquot_export *export = at(number);
        uint32_t exporter = exporter_of(export);
        if (load(&export->key) == 0 || device_of(export) != device ||
            (exporter - 1 < ALIQUOT_SLOTS_MAX && is_alive(exporter - 1)) ||
            !(has_living_holder(export, is_alive) || is_in_files(export)))
            continue;
        total = add_capped(total, load(&export->size));
    }
    return total;
}

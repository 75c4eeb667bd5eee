#include "ledger.h"

#include <pthread.h>
#include <sched.h>

#include "exports.h"
#include "latch.h"
#include "locks.h"
#include "refusal.h"
#include "share.h"
#include "slots.h"
#include "total.h"
#include "words.h"

/* A step that another process takes in two halves (exports.c) counts twice in between: "full" is believed
 * when it was so more than once. */
#define LOOKS 3

/* This process's threads take turns at its slot. Never held across a call into the driver. */
static latch turn;

static void before_fork(void)
{
    latch_take(&turn);
}

static void in_parent(void)
{
    latch_let_go(&turn);
}

static void in_child(void)
{
    latch_let_go(&turn);
    slots_forget();
}

bool ledger_open(bool writable)
{
    if (!slots_open(writable))
        return false;
    if (pthread_atfork(before_fork, in_parent, in_child) == 0)
        return true;
    refusal_set("Aliquot: out of memory, so this program has no share of a GPU", NULL);
    return false;
}

bool ledger_claim(void)
{
    latch_take(&turn);
    bool claimed = slots_claim();
    latch_let_go(&turn);
    return claimed;
}

/* ---- charging ---- */

static void raise_peak(unsigned device)
{
    uint64_t *peak = &share.ledger->devices[device].peak, total = total_bytes(device), seen = load(peak);
    while (seen < total && !__atomic_compare_exchange_n(peak, &seen, total, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* Under the turn, with a slot. What looks full may be held by the dead. */
static bool charge_after_clearing(unsigned device, uint64_t bytes, uint64_t limit)
{
    slots_reap();
    slots_mend(device);
    return slots_change_own(device, bytes, 0, limit);
}

static enum charge charge_once(unsigned device, uint64_t bytes, uint64_t limit)
{
    if (!slots_claim())
        return NO_SLOT;
    if (slots_change_own(device, bytes, 0, limit) || charge_after_clearing(device, bytes, limit))
        return CHARGED;
    return OVER_LIMIT;
}

enum charge ledger_charge(unsigned device, uint64_t bytes)
{
    enum charge answer = OVER_LIMIT;
    if (bytes == 0)
        return CHARGED;
    for (int look = 0; look < LOOKS && answer == OVER_LIMIT; look++) {
        if (look > 0)
            sched_yield();
        uint32_t generation = share_generation(); /* before the value: never newer than what was gone by */
        uint64_t limit = share_memory_limit(device);
        latch_take(&turn);
        slots_saw_limits(generation);
        slots_true_up(device, limit);
        answer = bytes > limit ? OVER_LIMIT : charge_once(device, bytes, limit);
        latch_let_go(&turn);
        if (bytes > limit)
            break;
    }
    if (answer == CHARGED)
        raise_peak(device);
    return answer;
}

void ledger_charge_taken(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return;
    latch_take(&turn);
    if (slots_claim())
        slots_change_own(device, bytes, 0, TOTAL_NO_LIMIT);
    latch_let_go(&turn);
    raise_peak(device);
}

void ledger_release(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return;
    latch_take(&turn);
    if (slots_claimed())
        slots_change_own(device, 0, bytes, TOTAL_NO_LIMIT);
    latch_let_go(&turn);
}

void ledger_denied(unsigned device)
{
    __atomic_fetch_add(&share.ledger->devices[device].denied, 1, __ATOMIC_SEQ_CST);
}

/* ---- memory of several processes ---- */

int ledger_export(uint64_t key, unsigned device, uint64_t size, bool named)
{
    latch_take(&turn);
    int answer = slots_claim() ? exports_publish(slots_own(), key, device, size, named) : EXPORT_NONE;
    locks_end();
    latch_let_go(&turn);
    return answer;
}

uint64_t ledger_export_key(unsigned export)
{
    return exports_key(export);
}

int ledger_import(uint64_t key)
{
    latch_take(&turn);
    int answer = slots_claim() ? exports_hold(slots_own(), key) : EXPORT_NONE;
    locks_end();
    latch_let_go(&turn);
    return answer;
}

static void go(void (*call)(unsigned, unsigned), unsigned export)
{
    latch_take(&turn);
    if (slots_claimed())
        call(slots_own(), export);
    locks_end();
    latch_let_go(&turn);
}

void ledger_withdraw(unsigned export)
{
    go(exports_withdraw, export);
}

void ledger_let_go(unsigned export)
{
    go(exports_let_go, export);
}

void ledger_computed(unsigned device, uint64_t ns)
{
    latch_take(&turn);
    slots_add_compute(device, ns);
    latch_let_go(&turn);
}

/* ---- asking ---- */

uint64_t ledger_used(unsigned device)
{
    uint64_t total = 0;
    latch_take(&turn);
    slots_true_up(device, share_memory_limit(device));
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        uint64_t used = slots_used(slot, device);
        if (used != 0 && slots_alive(slot))
            total = add_capped(total, used);
    }
    total = add_capped(total, exports_bytes(device, slots_alive));
    slots_asked();
    latch_let_go(&turn);
    return total;
}

static pid_t outer_pid(unsigned slot)
{
    uint64_t pid = slots_outer_pid(slot);
    return pid <= INT32_MAX ? (pid_t)pid : 0;
}

uint64_t ledger_own_number(void)
{
    return slots_own_number();
}

unsigned ledger_processes(unsigned device, struct ledger_process *out, unsigned room)
{
    uint64_t here = slots_pid_namespace();
    unsigned count = 0;
    latch_take(&turn);
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        const aliquot_slot *entry = &share.ledger->slots[slot];
        uint64_t pid = load(&entry->pid), used = slots_used(slot, device);
        if (pid == 0 || pid > INT32_MAX || used == 0 || load(&entry->pid_namespace) != here || !slots_alive(slot))
            continue;
        if (count < room)
            out[count] = (struct ledger_process){(pid_t)pid, outer_pid(slot), (unsigned)pid, used};
        count++;
    }
    slots_asked();
    latch_let_go(&turn);
    return count;
}

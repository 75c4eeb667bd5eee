#include "ledger.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "refusal.h"
#include "share.h"
#include "slots.h"
#include "words.h"

/* How often a charge that lost a race is tried again, and how often the sum must be the same
 * before "full" is believed. */
#define ATTEMPTS 200
#define STEADY 3

/* This process's threads take turns at its slot. Never held across a call into the driver. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&turn);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&turn);
}

static void in_child(void)
{
    pthread_mutex_init(&turn, NULL);
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
    pthread_mutex_lock(&turn);
    bool claimed = slots_claim();
    pthread_mutex_unlock(&turn);
    return claimed;
}

/* ---- charging ---- */

static uint64_t sum(unsigned device)
{
    uint64_t total = 0;
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++)
        total = add_capped(total, slots_used(slot, device));
    return total;
}

static void raise_peak(unsigned device, uint64_t total)
{
    uint64_t *peak = &share.ledger->devices[device].peak;
    uint64_t seen = load(peak);
    while (seen < total && !__atomic_compare_exchange_n(peak, &seen, total, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* One attempt, under the turn. `total` tells what the sum was where it failed. */
static enum charge try_charge(unsigned device, uint64_t bytes, uint64_t limit, uint64_t *total)
{
    if (!slots_claim())
        return NO_SLOT;
    if (add_capped(sum(device), bytes) > limit) {
        slots_reap();
        *total = sum(device);
        if (add_capped(*total, bytes) > limit)
            return OVER_LIMIT;
    }
    slots_change_own(device, bytes, 0);
    *total = sum(device);
    if (*total <= limit) {
        raise_peak(device, *total);
        return CHARGED;
    }
    slots_change_own(device, 0, bytes);
    *total = 0; /* lost a race: no total to believe in */
    return OVER_LIMIT;
}

static void pause_for(int attempt)
{
    if (attempt < 8) {
        sched_yield();
        return;
    }
    /* Different lengths for different processes, or losers meet again. */
    struct timespec length = {.tv_nsec = 1000 * (1 + (getpid() * 7 + attempt * 13) % 60)};
    nanosleep(&length, NULL);
}

enum charge ledger_charge(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return CHARGED;
    uint64_t previous = 0;
    for (int attempt = 0, steady = 0; attempt < ATTEMPTS && steady < STEADY; attempt++) {
        uint32_t generation = share_generation(); /* before the value: never newer than what was gone by */
        uint64_t limit = share_memory_limit(device), total = 0;
        pthread_mutex_lock(&turn);
        slots_saw_limits(generation);
        enum charge answer = bytes > limit ? OVER_LIMIT : try_charge(device, bytes, limit, &total);
        pthread_mutex_unlock(&turn);
        if (bytes > limit)
            break;
        if (answer != OVER_LIMIT)
            return answer;
        steady = total != 0 && total == previous ? steady + 1 : 0;
        previous = total;
        pause_for(attempt);
    }
    return OVER_LIMIT;
}

void ledger_release(unsigned device, uint64_t bytes)
{
    if (bytes == 0)
        return;
    pthread_mutex_lock(&turn);
    if (slots_claimed())
        slots_change_own(device, 0, bytes);
    pthread_mutex_unlock(&turn);
}

void ledger_denied(unsigned device)
{
    __atomic_fetch_add(&share.ledger->devices[device].denied, 1, __ATOMIC_SEQ_CST);
}

/* ---- asking ---- */

uint64_t ledger_used(unsigned device)
{
    uint64_t total = 0;
    pthread_mutex_lock(&turn);
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        uint64_t used = slots_used(slot, device);
        if (used != 0 && slots_alive(slot))
            total = add_capped(total, used);
    }
    slots_asked();
    pthread_mutex_unlock(&turn);
    return total;
}

unsigned ledger_processes(unsigned device, struct ledger_process *out, unsigned room)
{
    uint64_t here = slots_pid_namespace();
    unsigned count = 0;
    pthread_mutex_lock(&turn);
    for (unsigned slot = 0, slots = slots_in_use(); slot < slots; slot++) {
        const aliquot_slot *entry = &share.ledger->slots[slot];
        uint64_t pid = load(&entry->pid), used = slots_used(slot, device);
        if (pid == 0 || pid > INT32_MAX || used == 0 || load(&entry->pid_namespace) != here || !slots_alive(slot))
            continue;
        if (count < room)
            out[count] = (struct ledger_process){(pid_t)pid, used};
        count++;
    }
    slots_asked();
    pthread_mutex_unlock(&turn);
    return count;
}

/* A program that waits for its work: what that says of it, and of its turn. */
#include "gate.h"

#include <stddef.h>

#include "clock.h"
#include "gates.h"

/* Work that lasts longer than this is waited for by us first, so that neighbours see that we live; and how long at a
 * time, which is what a wait is longer by where the work ends much sooner than it should. */
#define LONG_WAIT (10 * MILLISECOND)
#define EACH_WAIT (2 * MILLISECOND)
#define EACH_WAIT_EVENT (500 * MICROSECOND)

static struct gate *gate_for_wait(void)
{
    return atomic_load(&gate_captures) == 0 ? gate_here() : NULL;
}

/* Whether what is waited for ends no sooner than the oldest of our work: it is behind that on its stream. Of an event
 * it is not known which stream it is on; where all our work is on one it will be that. */
static bool is_behind_oldest(const struct gate *gate, const struct awaited *awaited)
{
    if (awaited->kind == AWAITED_ALL)
        return true;
    if (awaited->query(awaited->handle) == CUDA_SUCCESS)
        return false;
    if (awaited->kind == AWAITED_STREAM)
        return gate_oldest(gate)->stream == awaited->handle;
    for (unsigned at = 1; at < gate->batches.count; at++)
        if (gate->batches.ring[(gate->batches.first + at) % BATCHES_MAX].stream != gate_oldest(gate)->stream)
            return false;
    return true;
}

/* Until when the program can sleep here instead of in the driver; 0: not at all. */
static uint64_t may_sleep_until(const struct gate *gate, const struct awaited *awaited, uint64_t now)
{
    const struct batch *oldest = gate_oldest(gate);
    if (gate->turns.page == NULL || oldest == NULL || !oldest->known || oldest->due_ns < now + LONG_WAIT ||
        !is_behind_oldest(gate, awaited))
        return 0;
    return now + (awaited->kind == AWAITED_EVENT ? EACH_WAIT_EVENT : EACH_WAIT);
}

/* In the driver it would not look before its work has ended, and neighbours take who does not look for dead. */
static void sleep_before_wait(struct gate *gate, const struct awaited *awaited)
{
    uint64_t now, until;
    while ((until = may_sleep_until(gate, awaited, now = clock_now())) != 0) {
        pthread_mutex_unlock(&gate->lock);
        clock_wait(until, NULL, 0);
        gate_lock(gate);
        charges_reap(gate, now = clock_now());
        if (gate->turns.page == NULL)
            return;
        if (turns_ours(&gate->turns))
            tenure_renew(gate, now, 0);
        else
            (void)turns_sit(&gate->turns, now);
    }
}

void gate_before_wait(const struct awaited *awaited)
{
    struct gate *gate = gate_for_wait();
    if (gate == NULL)
        return;
    gate_lock(gate);
    uint64_t now = clock_now();
    charges_close_batch(gate, now);
    tenure_before_wait(gate, now);
    sleep_before_wait(gate, awaited);
    pthread_mutex_unlock(&gate->lock);
}

void gate_after_wait(void)
{
    struct gate *gate = gate_for_wait();
    if (gate == NULL)
        return;
    gate_lock(gate);
    uint64_t now = clock_now();
    charges_reap(gate, now);
    gate->waited_ns = now;
    gate->turns.hurries &= gate->since_wait <= GATE_LITTLE; /* else from the next launch on */
    gate->since_wait = 0;
    tenure_settle(gate, now);
    pthread_mutex_unlock(&gate->lock);
}

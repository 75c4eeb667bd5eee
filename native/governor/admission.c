/* Whether a launch may be made now, and waiting until it may. */
#include "gates.h"

#include <stddef.h>

#include "bucket.h"
#include "clock.h"

/* How much predicted work may be queued: beside others, beside others of whom one hurries, as a guest, and alone. */
#define DEPTH (3 * MILLISECOND)
#define DEPTH_HURRIED (1 * MILLISECOND)
#define DEPTH_GUEST (1 * MILLISECOND)
#define DEPTH_ALONE (8 * MILLISECOND)
/* How long who cannot fill a turn runs beside others' before it has one again, and is measured. */
#define LANE (1000 * MILLISECOND)
/* A launch passes that waited for this long in all. Then the page is not believed for a while: the share is held by
 * its own clock, as at a cap. */
#define PATIENCE (1000 * MILLISECOND)
#define DISTRUST (10000 * MILLISECOND)
/* What a share that has spent all must earn before it goes on. */
#define EARN_ALONE (500 * MICROSECOND)
#define EARN_BESIDE (2 * MILLISECOND)

enum admission { ADMITTED, WAIT };

static bool is_capped(const struct gate *gate, uint64_t now)
{
    return gate->share.policy == POLICY_CAP || !gate_has_turns(gate, now);
}

static bool has_turn(const struct gate *gate)
{
    return gate->turns.page != NULL && turns_ours(&gate->turns);
}

/* When to look again at own work: when it should be done, but neither at once nor much later. */
static uint64_t next_look(const struct gate *gate, uint64_t now)
{
    const struct batch *oldest = gate_oldest(gate);
    uint64_t due = oldest != NULL ? oldest->due_ns : now;
    uint64_t late = now > due ? (now - due) / 4 : due - now;
    late = late < 20 * MICROSECOND ? 20 * MICROSECOND : late > MILLISECOND ? MILLISECOND : late;
    return now + late;
}

/* The turn stays ours until we look again. */
static enum admission wait_for_own_work(struct gate *gate, uint64_t now, uint64_t *look)
{
    charges_close_batch(gate, now);
    *look = next_look(gate, now);
    if (has_turn(gate)) {
        uint64_t horizon = gate->batches.horizon > *look ? gate->batches.horizon : *look;
        tenure_renew(gate, now, horizon - (gate->batches.horizon > now ? gate->batches.horizon : now));
    }
    return WAIT;
}

/* Where launches are short there must be room for a batch of them, or each would wait by itself. */
static bool is_deep(const struct gate *gate, uint64_t predicted)
{
    uint64_t room = predicted < ESTIMATE_ALWAYS_SOLO_NS ? BATCHES_NS : predicted;
    return gate->batches.count != 0 && gate->batches.queued + room > gate->depth;
}

static enum admission ask_depth(struct gate *gate, uint64_t depth, uint64_t predicted, uint64_t now, uint64_t *look)
{
    gate->depth = depth;
    return is_deep(gate, predicted) ? wait_for_own_work(gate, now, look) : ADMITTED;
}

static enum admission ask_bucket(struct gate *gate, uint64_t now, uint64_t *look)
{
    uint64_t more = !gate->spent ? 0 : gate->turns.page != NULL && turns_contended(&gate->turns, now, CALM)
                                           ? EARN_BESIDE : EARN_ALONE;
    uint64_t until = bucket_wait(&share.ledger->devices[gate->device].ready, more, gate->share.weight, now);
    uint64_t own = bucket_wait(&gate->own_ready, more, gate->share.weight, now);
    until = own > until ? own : until;
    gate->spent = until != 0;
    if (until == 0)
        return ADMITTED;
    charges_close_batch(gate, now);
    turns_stop_waiting(&gate->turns);
    if (gate->batches.count == 0 && has_turn(gate))
        tenure_pass(gate, now);
    *look = until < now + 5 * MILLISECOND ? until : now + 5 * MILLISECOND; /* the limit may be changed meanwhile */
    return WAIT;
}

/* The end of our turn: at once where nothing is under way, or nobody need wait for that. */
static enum admission end_turn(struct gate *gate, uint64_t now, uint64_t *look)
{
    charges_close_batch(gate, now);
    if (charges_launch_bound(gate, now))
        turns_run_beside(&gate->turns, now + LANE);
    if (gate->batches.count != 0 && now >= gate->turns.lane_until) {
        tenure_close(gate, now);
        return wait_for_own_work(gate, now, look);
    }
    tenure_pass(gate, now);
    *look = now + 20 * MICROSECOND;
    return WAIT;
}

static enum admission ask_in_turn(struct gate *gate, uint64_t predicted, uint64_t now, uint64_t *look)
{
    struct turns_others others = turns_look(&gate->turns, now);
    bool leaves = now < gate->turns.lane_until && others.waiting != 0;
    if (leaves || turns_over(&gate->turns, &others, predicted))
        return end_turn(gate, now, look);
    /* What is left of the turn before would go on running before the neighbour's work, if more were put behind it. */
    if (gate->turns.used == 0 && gate->batches.count != 0)
        return wait_for_own_work(gate, now, look);
    if (predicted == 0)
        turns_want_quiet(&gate->turns, now);
    bool hurried = others.hurried || turns_hurried(&gate->turns, now, CALM);
    bool contended = others.waiting != 0 || turns_contended(&gate->turns, now, CALM);
    return ask_depth(gate, hurried ? DEPTH_HURRIED : contended ? DEPTH : DEPTH_ALONE, predicted, now, look);
}

static enum admission ask_turn(struct gate *gate, uint64_t predicted, uint64_t now, uint64_t *look)
{
    switch (turns_ask(&gate->turns, predicted, now, look)) {
    case TURNS_OURS:
        return ask_in_turn(gate, predicted, now, look);
    case TURNS_GUEST:
        return ask_depth(gate, DEPTH_GUEST, predicted, now, look);
    case TURNS_BESIDE:
        turns_stop_waiting(&gate->turns);
        return ask_depth(gate, DEPTH, predicted, now, look);
    case TURNS_WAIT:
        break;
    }
    charges_close_batch(gate, now);
    return WAIT;
}

static enum admission admit(struct gate *gate, uint64_t predicted, uint64_t now, uint64_t *look)
{
    if (is_capped(gate, now) && ask_bucket(gate, now, look) == WAIT)
        return WAIT;
    bool turns = gate_has_turns(gate, now);
    bool busy = gate->batches.count != 0;
    if (busy && (predicted == 0 || batches_full(&gate->batches) || (!turns && is_deep(gate, predicted))))
        return wait_for_own_work(gate, now, look);
    return turns ? ask_turn(gate, predicted, now, look) : ADMITTED;
}

/* ---- waiting ---- */

static uint64_t progress(const struct gate *gate)
{
    uint64_t others = gate->turns.page != NULL ? turns_progress(&gate->turns) : 0;
    return others + gate->turns.charged * 65536 + gate->batches.count;
}

static void refresh(struct gate *gate, uint64_t now)
{
    gate->share = share_compute(gate->device);
    turns_weigh(&gate->turns, (struct turns_share){share_lease_number(), gate->share.weight, gate->share.rank}, now);
}

/* Whether a launch that waits since `began`, and has seen nobody get on since `*moved`, is to pass now. */
static bool is_stuck(struct gate *gate, uint64_t began, uint64_t *seen, uint64_t *moved, uint64_t now)
{
    uint64_t progressed = progress(gate);
    if (progressed != *seen || now < gate->batches.horizon || now < turns_until(&gate->turns, now)) {
        *seen = progressed;
        *moved = now;
    }
    if (gate->spent || now - *moved < STUCK) {
        if (gate->spent || now - began < PATIENCE)
            return false;
        gate->distrust_until = now + DISTRUST;
        turns_forget(&gate->turns);
        return false; /* it goes on as at a cap */
    }
    return true;
}

void admission_wait(struct gate *gate, uint64_t predicted)
{
    uint64_t look, seen = progress(gate), now = clock_now(), began = now, moved = now;
    for (;; now = clock_now()) {
        refresh(gate, now);
        charges_reap(gate, now);
        uint32_t *wake = gate->turns.seat != TURNS_NO_SEAT && gate->turns.page != NULL
                             ? &gate->turns.page->seats[gate->turns.seat].wake : NULL;
        uint32_t woken = wake != NULL ? __atomic_load_n(wake, __ATOMIC_SEQ_CST) : 0;
        if (admit(gate, predicted, now, &look) == ADMITTED || is_stuck(gate, began, &seen, &moved, now))
            return;
        pthread_mutex_unlock(&gate->lock);
        clock_wait(look, wake, woken);
        gate_lock(gate);
    }
}

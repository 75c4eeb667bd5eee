/* What the rooms of the gate have in common: gate.c lets launches through, admission.c makes them wait, tenure.c keeps
 * and gives up the turn, charges.c accounts, waits.c is where the program waits for its work. Everything here but
 * gate_here() is called under the gate's lock. */
#ifndef GOVERNOR_GATES_H
#define GOVERNOR_GATES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "batches.h"
#include "share.h"
#include "turns.h"

#define MICROSECOND TURNS_MICROSECOND
#define MILLISECOND TURNS_MILLISECOND
/* A launch that sees nobody get on for this long passes; what was never seen may take so long. */
#define STUCK (50 * MILLISECOND)
/* Somebody waited in the last so much, and will again. */
#define CALM (50 * MILLISECOND)

struct gate {
    pthread_mutex_t lock;
    unsigned device;
    struct turns turns;
    struct batches batches;
    struct share_compute share;
    uint32_t ratio;
    uint64_t depth;          /* how much may be queued now */
    uint64_t distrust_until; /* the page is not believed */
    uint64_t drained_ns;     /* since when nothing of ours is left, as far as we saw */
    uint64_t thinking;       /* usual ns from there to the next launch */
    uint64_t waited_ns;      /* when the program last waited for its work */
    uint64_t since_wait;     /* ns of work launched since */
    uint32_t pace;           /* of 256 batches: how many were launched slower than the device works */
    uint32_t surprise;       /* how far measures are off what was predicted, usually, in 256ths */
    uint64_t own_ready;      /* as the ledger's word, of this process alone: what nobody else can write */
    bool spent;
};

/* A program that waits for no more than this at a time hurries. */
#define GATE_LITTLE (1 * MILLISECOND)

/* Of the current context's device; NULL: none, and nothing is held. */
struct gate *gate_here(void);

/* How many captures are under way, in all threads. */
extern _Atomic int gate_captures;

static inline bool gate_has_turns(const struct gate *gate, uint64_t now)
{
    return gate->turns.page != NULL && now >= gate->distrust_until;
}

/* What is decided under the lock may look at the page. */
static inline void gate_lock(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    turns_mind_page(&gate->turns);
}

/* The oldest batch that is not accounted for, or NULL. */
static inline const struct batch *gate_oldest(const struct gate *gate)
{
    return gate->batches.count != 0 ? &gate->batches.ring[gate->batches.first] : NULL;
}

/* ---- charges.c ---- */

/* `ns` more of the device's time (or less, below 0). */
void charges_spend(struct gate *gate, int64_t ns, uint64_t now);
void charges_close_batch(struct gate *gate, uint64_t now);
/* What has ended is charged what it took. */
void charges_reap(struct gate *gate, uint64_t now);
/* Whether what is queued will end when it is said to: neighbours may count on that. */
bool charges_foresee(const struct gate *gate);
/* Whether the program launches slower than the device works, and waits for nothing. */
bool charges_launch_bound(const struct gate *gate, uint64_t now);

/* ---- tenure.c ---- */

/* The turn is free, and who is next is woken. */
void tenure_pass(struct gate *gate, uint64_t now);
/* It is free when what is queued has ended, for we launch nothing more. False: that cannot be foretold. */
bool tenure_close(struct gate *gate, uint64_t now);
/* It lasts until what was launched should be done, and `more`. */
void tenure_renew(struct gate *gate, uint64_t now, uint64_t more);
/* The program is about to wait for its work: whether that is the end of the turn. */
void tenure_before_wait(struct gate *gate, uint64_t now);
/* After work of ours has ended: whether to keep the turn. */
void tenure_settle(struct gate *gate, uint64_t now);
/* The device waited for our next launch, in our turn. */
void tenure_idled(struct gate *gate, uint64_t now);

/* ---- admission.c ---- */

/* Wait until a launch that should take `predicted` (0: not known) may be made; the lock is free meanwhile. */
void admission_wait(struct gate *gate, uint64_t predicted);

#endif

/* What this process has on one device: launches in batches, each between two events.
 *
 * The rim of the compute limit that speaks to the driver. Everything here is called under the gate's lock
 * except batches_join(), which is the hot path: a launch inside the open batch costs one compare-and-swap. */
#ifndef GOVERNOR_BATCHES_H
#define GOVERNOR_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"
#include "estimate.h"

typedef CUresult record_event(CUevent, CUstream);

enum { BATCHES_MAX = 64, BATCHES_LAUNCHES = 64 };
#define BATCHES_NS UINT64_C(300000)

struct batch {
    CUcontext context; /* of its events */
    CUevent begin, end;
    CUstream stream;
    record_event *record; /* as its stream wants it */
    struct estimate *shape;
    uint64_t predicted, opened_ns, closed_ns, due_ns;
    uint64_t others;   /* charged to neighbours when it opened */
    uint64_t taken;    /* how often this process had taken the turn then */
    uint64_t lead;     /* for how long a neighbour's work should then still have lasted */
    unsigned launches;
    bool known, solo, measured, first, disturbed, closed;
};

struct batches {
    struct batch ring[BATCHES_MAX];
    unsigned first, count;
    uint64_t credit;      /* of the open batch: launches << 48 | nanoseconds; 0: none may join */
    uint64_t credit_given;
    CUstream open_stream; /* read without the lock */
    bool open;
    uint64_t queued;      /* predicted ns of all that has not been seen to end */
    uint64_t horizon;     /* when that should have ended */
    CUcontext last_context; /* of the batch reaped last; its end event, until the ring comes round */
    CUevent last_end;
};

/* A launch of `predicted` ns may go into the open batch on `stream`, and is in it. */
static inline bool batches_join(struct batches *batches, CUstream stream, uint64_t predicted)
{
    uint64_t credit = __atomic_load_n(&batches->credit, __ATOMIC_ACQUIRE), step = (UINT64_C(1) << 48) | predicted;
    if (credit < step || (credit & 0xffffffffffff) < predicted ||
        __atomic_load_n(&batches->open_stream, __ATOMIC_RELAXED) != stream)
        return false;
    return __atomic_compare_exchange_n(&batches->credit, &credit, credit - step, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

/* One place stays free: the end event of the batch that was reaped last is still needed. */
static inline bool batches_full(const struct batches *batches)
{
    return batches->count == BATCHES_MAX - 1;
}

/* `record` NULL: it cannot be measured. */
struct batch *batches_begin(struct batches *batches, CUcontext context, CUstream stream, record_event *record);
/* Let launches join the open batch. */
void batches_allow(struct batches *batches, uint64_t ns);
/* End the open batch, if there is one: nothing joins it, its end event is recorded. Returns what has joined. */
uint64_t batches_close(struct batches *batches, uint64_t now);

enum batch_state { BATCH_NONE, BATCH_RUNS, BATCH_ENDED, BATCH_LOST };
/* The oldest batch that is closed, and whether it has ended; `*span` is then what its events tell. `ask`
 * false: the driver must not be asked now, and what it would say is lost. */
enum batch_state batches_oldest(struct batches *batches, struct batch **oldest, uint64_t *span, bool ask);
/* It is accounted for. */
void batches_drop(struct batches *batches, struct batch *oldest, uint64_t now);

/* Forget all: the context of their events is gone, or this is a forked child. */
void batches_forget(struct batches *batches);

#endif

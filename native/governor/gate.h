/* The gate that every launch of the share goes through.
 *
 * A launch passes when the share is not paused, has not spent what a cap allows, has its turn on the device,
 * and does not pile up more work than neighbours can wait for. It never waits without end: what does not get
 * on for a while passes out of turn, so programs that depend on each other do not hang. Nothing waits while
 * anything is being captured, nor in a host function, where the driver refuses launches anyway.
 *
 * turns.c, bucket.c, estimate.c and measure.c decide; this is the rim that has the clock, the lock, the sleep
 * and, through batches.c, the driver (its rooms: gates.h). No thread of our own, no signal, no allocation. */
#ifndef GOVERNOR_GATE_H
#define GOVERNOR_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "batches.h"
#include "cuda_api.h"
#include "overhead.h"

/* Once, when the share and the driver are open. */
void gates_open(void);

/* One launch on its way: what gate_enter() has to tell gate_leave(). */
struct launch {
    struct gate *gate; /* NULL: it just passes */
    bool solo;
    bool measured;     /* what the driver takes by itself for it is to be charged */
    struct overhead before;
};

/* Wait until a launch of the shape `key`, of `function`, on `stream` may be made. `per_thread`: NULL is the thread's
 * stream. */
void gate_enter(struct launch *launch, uint64_t key, const void *function, CUstream stream, bool per_thread);
/* It was made. */
void gate_leave(const struct launch *launch);

/* What the program waits for, and whether that is over, by the driver. */
struct awaited {
    enum { AWAITED_ALL, AWAITED_STREAM, AWAITED_EVENT } kind;
    void *handle;
    CUresult (*query)(void *);
};
/* The program is about to wait for its work, and has waited. */
void gate_before_wait(const struct awaited *awaited);
void gate_after_wait(void);

/* A stream is about to be destroyed: nothing can be recorded on it after. */
void gate_before_stream_ends(CUstream stream);
/* A context is gone, and its events and functions with it. */
void gate_context_gone(void);

/* A capture begins (+1) or ends (-1). */
void gate_capturing(int change);

#endif

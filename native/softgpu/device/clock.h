/* What this process keeps beside the shared model of one device. Only device/ includes this. */
#ifndef SG_CLOCK_H
#define SG_CLOCK_H

#include "model_layout.h"

struct sg_moment {
    uint64_t sequence;
    uint64_t ended_ns;
    _Atomic bool ended;
    _Atomic unsigned references;
};

struct sg_clock {
    pthread_mutex_t lock; /* held for a step, never while waiting */
    uint64_t published;   /* what `model` is a copy of ... */
    bool intact;          /* ... and still the same as */
    uint64_t dead_looked_ns;
    uint64_t last_end_ns[SG_ENGINES]; /* of an operation of this process */
    sg_moment *moments[SG_MODEL_PENDING]; /* of pending operations, by sequence number modulo */
    bool wake[SG_MODEL_MEMBERS];          /* slots that this step lets go on */
    sg_model model;
};

/* One step: begin, change clock->model, end. Under clock->lock. `end` says whether it was published; else
 * begin again. NULL, and *error, where this process cannot take part. */
sg_member *sg_step_begin(sg_device *device, int *error);
bool sg_step_end(sg_device *device);
/* This process's clock of the device, made when first asked for; NULL without memory. */
struct sg_clock *sg_clock_of(sg_device *device);
/* The entry of the calling thread, running; NULL where there is no room. */
sg_thread *sg_step_thread(sg_device *device);

/* Has this process an operation that never ends? */
bool sg_model_hangs(sg_device *device);

/* watch.c: those who run and perhaps never call again */
typedef struct {
    uint64_t incarnation, thread, submitted, cpu_ticks, since_ns, looked_ns;
} sg_watched;
typedef struct {
    sg_watched others[SG_MODEL_THREADS];
    uint64_t began_ns;
} sg_watch;
/* Takes the dead out of clock->model and marks absent who does nothing. True where it changed something. */
bool sg_watch_look(sg_device *device, sg_watch *watch);

#endif

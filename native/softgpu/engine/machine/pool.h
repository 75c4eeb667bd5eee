/* Threads that help a launch with its blocks. They are made when a launch first wants them, wait for the
 * next one asleep, leave after some idle seconds, and end with the process. */
#ifndef SG_MACHINE_POOL_H
#define SG_MACHINE_POOL_H

#include "machine.h"

/* What one launch wants of the pool; it lies on the stack of the launching thread. */
typedef struct sg_job {
    struct sg_job *next;
    sg_grid *grid;
    sg_result *result;
    unsigned open;    /* helpers that may still come */
    unsigned taken;   /* that came: the last one's worker number */
    unsigned working; /* that came and are not done */
    bool failed;      /* a helper had no memory */
    pthread_cond_t changed;
} sg_job;

/* Asks for `count` helpers. With `all`, false and nothing done where there cannot be as many at once:
 * blocks that wait for each other must all run. Else fewer may come, or none. */
bool sg_call_helpers(sg_job *job, sg_grid *grid, sg_result *result, unsigned count, bool all);
/* Waits until those that came are done, and with `all` until all came. Their instructions and faults are
 * in the result then. */
void sg_dismiss_helpers(sg_job *job, bool all);

/* launch.c: adds a worker's instructions to the result, and its fault unless there is one. */
void sg_report(sg_result *result, const sg_worker *worker);

#endif

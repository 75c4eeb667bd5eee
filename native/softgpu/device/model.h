/* Model time: what passes for time on a device, and when its work is done.
 *
 *   real     the machine's monotonic clock; a kernel takes what the CPU takes. Nothing of this file is used.
 *   scaled   the same clock; an operation takes what the cost model says, times the device's scale, or what
 *            the CPU takes for it where that is longer
 *   virtual  a clock of the device's own, which stands still while anybody runs who could submit work
 *
 * Work is computed when it is submitted, in all modes. In the last two its *time* is modelled apart: each
 * operation goes onto one of the device's engines when what it follows is done and the engine is free. The
 * compute engine serves one process at a time, in slices, as a card without MPS does. A moment is the end
 * of an operation; it is waited for and asked about here. */
#ifndef SG_MODEL_H
#define SG_MODEL_H

#include "device.h"

typedef enum {
    SG_ENGINE_NONE = 0, /* takes no time: a join of two streams, an event */
    SG_ENGINE_COMPUTE,
    SG_ENGINE_COPY_IN,  /* from the host */
    SG_ENGINE_COPY_OUT,
} sg_engine;
#define SG_ENGINES 4

#define SG_FOREVER UINT64_MAX

/* The end of an operation of this process. Counted references; NULL is the beginning of time. */
typedef struct sg_moment sg_moment;

/* The end of an operation of any process, as one tells another of it. `sequence` 0: it has ended. */
typedef struct {
    uint32_t slot, incarnation; /* the latter's SG_INCARNATION_BITS lowest bits */
    uint64_t sequence;
} sg_shared_end;
enum { SG_INCARNATION_BITS = 15, SG_INCARNATION_MASK = (1 << SG_INCARNATION_BITS) - 1 };

typedef struct {
    sg_engine engine;
    uint64_t duration_ns;      /* SG_FOREVER: until it is released, see sg_model_release */
    uint64_t bytes;            /* moved through the device's memory, or over the link to the host */
    const sg_moment *after[2]; /* of the same device; either may be NULL */
    sg_shared_end beyond;      /* and of another process */
    uint64_t since_ns;         /* scaled: when the CPU began with it, which counts as time on the engine; 0 now */
} sg_task;

static inline bool sg_model_used(const sg_device *device) {
    return device->facts.time != SG_TIME_REAL;
}

/* Nanoseconds on the device's clock. In real and scaled mode the monotonic clock. */
uint64_t sg_model_now(sg_device *device);
/* The calling thread waits until the clock says `ns`. Any mode. */
int sg_model_wait_until(sg_device *device, uint64_t ns);

/* The rest is for scaled and virtual. Put an operation on the timeline; *end is the caller's to drop.
 * Waits where the process has SG_MODEL_PENDING operations that did not end. */
int sg_model_submit(sg_device *device, const sg_task *task, sg_moment **end);
int sg_model_wait(sg_device *device, const sg_moment *moment);
/* Has it ended? In virtual mode a "no" takes one microsecond of the clock, so that a loop which only asks
 * comes to its end. */
bool sg_model_ended(sg_device *device, const sg_moment *moment);
/* The same two for an operation of any process. */
int sg_model_wait_shared(sg_device *device, const sg_shared_end *end);
bool sg_model_ended_shared(sg_device *device, const sg_shared_end *end);
/* In virtual mode: the answer to a query was "not yet". */
void sg_model_not_yet(sg_device *device);
/* Virtual mode: the calling thread waits until `met`, which is asked at every signal of `key` and now and then. */
int sg_model_wait_signal(sg_device *device, uint64_t key, bool (*met)(void *), void *of);
/* Those who wait for `key` go on, before any time passes. Nothing in other modes. */
void sg_model_signal(sg_device *device, uint64_t key);
/* When it ended; SG_FOREVER where it has not. */
uint64_t sg_moment_ns(sg_device *device, const sg_moment *moment);
/* What stands for it in other processes. */
uint64_t sg_moment_sequence(const sg_moment *moment);
sg_moment *sg_moment_keep(sg_moment *moment);
void sg_moment_drop(sg_moment *moment);
/* The calling thread is about to wait for something that is not of the model: the clock goes on without it
 * until its next call here. */
void sg_model_step_aside(sg_device *device);
/* What was submitted with SG_FOREVER by this process ends now. */
int sg_model_release(sg_device *device);

/* This process leaves: what it had on the timeline is gone. */
void sg_model_leave(sg_device *device);
/* In a forked child. */
void sg_model_forget(sg_device *device);

/* ---- costs (cost.c): nanoseconds, the device's scale applied ---- */

typedef struct {
    uint64_t instructions;      /* of lanes */
    uint64_t bytes;             /* of global memory, as the lanes ask for them: no cache is modelled */
    uint64_t blocks;
    uint64_t resident_blocks;   /* that the device holds at once */
    uint64_t longest_block_ns;  /* of its slowest warp: instructions one after another, and sleep */
    uint64_t all_blocks_ns;     /* the sum of the same over all blocks */
} sg_kernel_cost;

uint64_t sg_cost_of_kernel(const sg_facts *facts, const sg_kernel_cost *work);
/* Through the device's own memory: both ways counted. */
uint64_t sg_cost_of_bytes(const sg_facts *facts, uint64_t bytes);
/* Over the link to the host. */
uint64_t sg_cost_of_transfer(const sg_facts *facts, uint64_t bytes);

/* ---- the oracle (oracle.c): what each process truly had ---- */

typedef struct {
    int32_t pid; /* as the reader sees it; 0 where it cannot */
    bool living;
    char name[64];
    uint64_t compute_ns, copy_ns; /* engines busy for it; in real mode only compute is known */
    uint64_t kernels, copies;
    uint64_t bytes;      /* moved by its kernels through device memory */
    uint64_t copied;     /* over the link */
} sg_account;

typedef struct {
    sg_time time;
    uint64_t now_ns, slice_ns;
    uint64_t compute_ns;   /* of all */
    uint64_t switching_ns; /* the compute engine changed hands */
    uint64_t switches, preemptions;
    int count;
    sg_account accounts[SG_MAXIMUM_PROCESSES];
} sg_busy_report;

int sg_busy_read(sg_device *device, sg_busy_report *report);

#endif

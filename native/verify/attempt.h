/* One try to get more than the share has, and what came of it. */
#ifndef VERIFY_ATTEMPT_H
#define VERIFY_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICES_MAX 16
#define MIB (1ull << 20)

/* The share under test, as whoever made it says; nothing of it comes from the library that is tried. */
struct share {
    unsigned devices;
    char uuid[DEVICES_MAX][64];
    uint64_t limit[DEVICES_MAX];         /* bytes */
    uint64_t context_bytes[DEVICES_MAX]; /* what a context takes; 0 unknown */
    unsigned thousandths[DEVICES_MAX];   /* of the device's time; 0: its launches are not tried */
};

extern struct share share;

enum outcome {
    HELD,
    HOLE,
    BROKEN,  /* the attempt itself did not run to its end */
    UNTRIED, /* not offered here: `note` says why */
};

struct finding {
    enum outcome outcome;
    uint64_t granted; /* bytes that the share's processes had at once */
    uint64_t limit;   /* of what they may have; 0 where it is not about bytes */
    unsigned achieved; /* thousandths of the device's time */
    unsigned allowed;  /* of those it may have; 0 where it is not about time */
    unsigned error;    /* thousandths that no controller can do better by */
    int result;        /* the driver's last answer; 0 where it is of no interest */
    char note[256];
};

typedef struct finding attempt_function(void);

enum environment { AS_IT_IS, NO_LIBRARY_PATH, EMPTY_LIBRARY_PATH, OTHER_SHARE, ALL_DEVICES, OTHER_ORDER, NOTHING };

struct attempt {
    const char *name, *group, *what;
    attempt_function *run;
    enum environment environment; /* in which the program is started anew for it */
    bool in_static_program;
};

extern const struct attempt attempts[];
extern const unsigned attempt_count;

/* Bytes granted beside the limit: more is a hole. */
struct finding judged(uint64_t granted, uint64_t limit, int result);
/* Time had beside the time allowed: more than what can be achieved, (Q (1 - share) + d) / W for work of Q
 * that is under way, kernels of d and a window of W, is a hole. */
#define QUEUE_MS 5.0f
struct finding judged_time(unsigned achieved, unsigned allowed, float kernel_ms, float window_ms);
struct finding with_note(struct finding finding, enum outcome outcome, const char *note);

/* memory.c: as much as `device` gives, by one kind of allocation, all kept. `result` is the last refusal.
 * The first try is one byte more than the limit. */
typedef int allocate(uint64_t bytes, uint64_t *granted);
uint64_t fill(allocate *one, unsigned device, int *result);
/* driver_begin and fill by cuMemAlloc: what every way round is tried with. */
struct finding fill_directly(void);
uint64_t allocate_directly(unsigned device, int *result);

attempt_function try_direct, try_legacy, try_pitch, try_managed, try_array, try_array_3d, try_mipmap, try_virtual,
    try_virtual_mapped, try_async, try_async_thread, try_pool, try_graph_node, try_captured, try_contexts, try_module,
    try_heap, try_double_free; /* memory.c, memory_indirect.c */
/* processes.c: what `count` children have at once by `work`, beside what is held already. */
struct finding together(unsigned count, attempt_function *work, uint64_t held_already);
/* This program, started anew, fills what it gets. */
attempt_function executed;

attempt_function try_race, try_threads, try_fork, try_fork_after, try_exec; /* processes.c */
attempt_function try_import, try_mail;                                     /* handed.c */
attempt_function try_addresses, try_deepbind, try_twice, try_environment, try_limits_file; /* ways.c */
attempt_function try_static;                                                   /* processes.c */
attempt_function try_launch, try_launch_thread, try_launch_extended, try_launch_cooperative, try_launch_legacy,
    try_launch_graph, try_launch_streams; /* compute.c */
attempt_function try_devices, try_settings, try_other_processes;                 /* view.c */

#endif

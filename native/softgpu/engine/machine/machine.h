/* The machine: warps of 32 lanes run by worker threads of the host.
 *
 * A warp is a set of fragments: lanes that stand at the same instruction in the same frame.
 * One fragment runs at a time; the others wait for it to reach them (they then merge), for
 * lanes of their own warp, or for a barrier. Of those that may run, the deepest frame goes
 * first and in it the lowest address, so that lanes which part at a branch meet again where
 * the compiler laid their paths together. */
#ifndef SG_MACHINE_MACHINE_H
#define SG_MACHINE_MACHINE_H

#include "../code/code.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct sg_worker sg_worker;
typedef struct sg_block sg_block;
typedef struct sg_grid sg_grid;

enum { FULL_MASK = -1 };
/* Backward branches until sg_tick. */
enum { SG_TICK_BRANCHES = 64 };
enum { BARRIERS = 16, RANGES = 64, CHUNK_SHIFT = 21 };

/* The registers of one activation of a function, for all lanes that entered it together. */
typedef struct sg_frame {
    struct sg_frame *parent;
    const sg_code *code;
    const sg_call *call;      /* what brought us here: NULL in a kernel */
    const sg_insn *return_to;
    unsigned char *registers; /* 64-aligned */
    size_t capacity;
    uint32_t lanes;           /* that have neither returned nor exited */
    uint32_t depth;
    uint32_t local_base;      /* of its variables, in a thread's local memory */
    struct sg_frame *next;    /* in sg_worker.frames */
} sg_frame;

typedef enum { FRAGMENT_READY, FRAGMENT_MEETING, FRAGMENT_BARRIER, FRAGMENT_GRID } sg_fragment_state;

typedef struct {
    const sg_insn *pc;
    sg_frame *frame;
    uint32_t mask;
    uint8_t state;
    uint8_t barrier;
} sg_fragment;

typedef struct {
    sg_status status;
    uint64_t address;
    uint32_t global_bytes;
    const sg_insn *insn;
    bool placed; /* `block` and `thread` are known */
    uint32_t block[3], thread[3];
    char message[200];
} sg_fault;

struct sg_warp {
    const unsigned char *base[2]; /* [0] registers of the frame, [1] constants - 1 */
    const sg_insn *pc;
    uint32_t mask;   /* lanes that run the current instruction */
    uint32_t dead;   /* lanes that exited or never were */
    bool full;       /* every living lane is in `mask`: results need no blending */
    bool stop;       /* leave the loop: finished, waiting, or faulted */
    bool guarded;    /* `guarded_mask` holds the mask to return to */
    bool forced;     /* the next meeting does not wait */
    bool held;       /* the running fragment keeps its turn (see turns.c) */
    bool finished;
    bool prepared; /* the kernel's prologue ran: its results lie in the root frame */
    uint32_t guarded_mask;
    uint32_t carry;  /* condition code of add.cc and the like, a bit a lane */
    int32_t ticks;   /* backward branches until sg_tick */
    uint32_t turn;   /* ticks the running fragment has had */
    uint32_t looks;  /* ticks of this warp, ever */
    uint32_t spread; /* the mask that `active` and `lanes` are of: that of the last instruction that ran */
    uint64_t active; /* lanes in `mask` */
    uint64_t instructions;
    uint64_t issued;   /* instructions counted before those; with `slept_ns` its time: timing.c */
    uint64_t slept_ns;
    sg_frame *frame;
    sg_fragment fragments[LANES]; /* those that do not run */
    uint32_t fragment_count;
    uint32_t cluster_arrived; /* lanes between barrier.cluster.arrive and the end of its phase */
    uint32_t number; /* %warpid */
    unsigned char *local; /* of lane 0; the next lane's is `local_stride` on */
    sg_block *block;
    sg_worker *worker;
    uint32_t lanes[LANES] __attribute__((aligned(64))); /* `mask`, spread: 0 or ~0 */
    uint64_t scratch[LANES] __attribute__((aligned(64))); /* what an instruction makes before it is blended, */
    uint32_t chosen[LANES] __attribute__((aligned(64)));  /* and the lanes for which its condition holds: 0 or ~0 */
    uint32_t tid[3][LANES] __attribute__((aligned(64)));
    sg_frame root;
};

typedef struct {
    uint32_t arrived;  /* threads */
    uint32_t expected; /* 0: every living thread */
    uint32_t votes[3]; /* bar.red: and, or, popc over those that arrived */
    uint32_t results[3];
} sg_barrier;

struct sg_block {
    sg_grid *grid;
    uint32_t index[3];
    uint32_t warp_count;
    uint32_t living;  /* threads */
    uint32_t at_grid; /* threads that wait at a grid-wide barrier */
    bool counted;     /* in sg_grid.waiting */
    uint64_t round;   /* sg_grid.round when it was counted */
    sg_warp *warps;
    unsigned char *shared;
    sg_barrier barriers[BARRIERS];
    uint32_t cluster_arrived; /* threads, at barrier.cluster */
    uint32_t awaited; /* a bit for each barrier that someone arrived at */
    uint32_t used;    /* a bit for each barrier that was ever arrived at in this block */
    bool finished;
};

/* The last answer of sg_memory.find for one instruction, and the last chunk it stored to. */
typedef struct {
    sg_range range;
    uint64_t chunk;
} sg_cached_range;

enum { CHUNKS_KNOWN = 64 };

struct sg_worker {
    sg_grid *grid;
    unsigned number;
    sg_cached_range ranges[RANGES];
    uint64_t chunks[CHUNKS_KNOWN]; /* committed, by number modulo; ~0 none */
    sg_fault fault;
    uint64_t instructions;
    uint64_t bytes;    /* of global memory */
    uint64_t longest_block_ns, all_blocks_ns;
    sg_block *blocks; /* one; with a cooperative launch all of its own */
    size_t block_count;
    unsigned char *arena; /* warps, registers, local and shared memory of `blocks` */
    size_t arena_bytes;
    sg_frame *frames; /* all that were made for calls */
    sg_frame **free_frames;
    size_t free_count, free_capacity;
};

/* One launch. */
struct sg_grid {
    const sg_kernel *kernel;
    const sg_launch *launch;
    uint64_t block_total;
    _Atomic int stopping; /* a worker faulted: the others give up */
    _Atomic uint64_t deadline_ns; /* 0: none */
    uint32_t warps_per_block;
    uint32_t threads_per_block;
    uint32_t shared_bytes; /* static and dynamic */
    uint32_t dynamic_base; /* shared address of .extern arrays */
    uint32_t local_stride; /* bytes from one lane's local memory to the next */
    uint32_t local_limit;  /* bytes of it that may be used */
    unsigned worker_count;
    _Atomic bool pausing;  /* every worker is to stand still: pause.c */
    /* On a line of its own: all above is read at every access, and each block changes this. */
    _Atomic uint64_t next_block __attribute__((aligned(64)));
    pthread_mutex_t lock __attribute__((aligned(64)));  /* of all below */
    pthread_cond_t resumed;
    unsigned active;       /* workers, of which ... */
    unsigned parked;       /* ... stand still */
    bool away;             /* the device is somebody else's */
    uint64_t pauses;
    uint64_t waiting;      /* blocks at a grid-wide barrier */
    uint64_t ended;        /* blocks that finished: they do not come any more */
    uint64_t round;        /* barriers that all passed */
    unsigned char workspace[64];   /* at SG_GRID_WINDOW: for grid barriers in PTX */
};

/* ---- faults.c ---- */

/* Of the lanes that run: the first of them is named. */
void sg_fault_at(sg_warp *warp, const sg_insn *insn, sg_status status, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 5, 6), cold));
void sg_fault_lane(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_status status, uint64_t address,
                   const char *format, ...) __attribute__((format(printf, 6, 7), cold));
/* "a load of 4 bytes at 0x10 " and what is wrong with it. `global`: not to a window or a buffer. */
void sg_fault_access(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_status status, uint64_t address,
                     unsigned size, bool store, bool global, const char *wrong, ...)
    __attribute__((format(printf, 9, 10), cold));
/* The launch took too long; the warp is where it was found. */
void sg_fault_timeout(sg_warp *warp, const sg_insn *insn) __attribute__((cold));
/* What an instruction was made of; NULL unknown. */
const sg_instruction *sg_instruction_of(const sg_module *module, const sg_insn *insn);
/* Where a warp stands that does not run, or NULL; *lane is one that does. */
const sg_insn *sg_where(const sg_warp *warp, unsigned *lane);
const char *sg_space_text(unsigned space);

/* ---- turns.c: which lanes run ---- */

void sg_set_mask(sg_warp *warp, uint32_t mask);
/* Others may have to merge with the running fragment or run before it. */
void sg_settle(sg_warp *warp);
/* The running fragment waits, or is no more: take another, or stop. */
void sg_next(sg_warp *warp);
void sg_park(sg_warp *warp, const sg_insn *pc, sg_fragment_state state, uint8_t barrier);
void sg_split(sg_warp *warp, const sg_insn *pc, uint32_t mask);
void sg_enter_frame(sg_warp *warp, sg_frame *frame);
void sg_tick(sg_warp *warp, const sg_insn *insn);
bool sg_force_meeting(sg_warp *warp);
/* The lanes of `members` meet at `insn`. False: the fragment waits, the handler returns. */
bool sg_meet(sg_warp *warp, const sg_insn *insn, uint32_t members);
void sg_finish_lanes(sg_warp *warp, uint32_t lanes);

/* ---- frames.c ---- */

sg_frame *sg_take_frame(sg_worker *worker, const sg_code *code);
void sg_give_frame(sg_worker *worker, sg_frame *frame);
void sg_free_frames(sg_worker *worker);

/* ---- block.c ---- */

void sg_prepare_block(sg_worker *worker, sg_block *block);
void sg_start_block(sg_block *block, uint64_t number);
/* Gives every warp that can run a turn. False when none could: all wait. */
bool sg_run_block(sg_worker *worker, sg_block *block);
/* Runs it to its end; a wait that nobody can end is a fault. */
void sg_finish_block(sg_worker *worker, sg_block *block);

/* ---- worker.c ---- */

bool sg_open_worker(sg_worker *worker, sg_grid *grid, unsigned number);
void sg_close_worker(sg_worker *worker);
void sg_work(sg_worker *worker);

/* ---- pause.c ---- */

/* A worker runs between these two, and nowhere else. */
void sg_join_workers(sg_grid *grid);
void sg_leave_workers(sg_grid *grid);
/* Stands still together with all other workers, while the device is somebody else's. Its thread holds no lock. */
void sg_pause(sg_grid *grid);
static inline void sg_pause_if_due(sg_grid *grid) {
    const sg_preemption *preemption = &grid->launch->preemption;
    if (preemption->due && (atomic_load_explicit(&grid->pausing, memory_order_relaxed) ||
                            preemption->due(preemption->context)))
        sg_pause(grid);
}
/* Has the launch had the device for as long as it may? */
bool sg_out_of_time(sg_grid *grid);

/* ---- barriers.c ---- */

void sg_recheck_barriers(sg_block *block);
void sg_recheck_cluster(sg_block *block);
/* Grid-wide: counts the block in when all its threads wait; lets them go when all blocks
 * came. */
void sg_recheck_grid(sg_block *block);
void sg_leave_grid(sg_grid *grid);

/* ---- reach.c: from an address to the host's memory ---- */

/* NULL after a fault. `size` is a power of two. */
unsigned char *sg_reach_lane(sg_warp *warp, const sg_insn *insn, unsigned lane, unsigned space, uint64_t address,
                             unsigned size, bool store);
/* The same for `size` bytes of any number below a chunk's, aligned to a power of two. */
unsigned char *sg_reach_span(sg_warp *warp, const sg_insn *insn, unsigned lane, unsigned space, uint64_t address,
                             unsigned size, unsigned alignment, bool store);
sg_cached_range *sg_find_range(sg_warp *warp, const sg_insn *insn, uint64_t address);
/* `lane` is who stores there, for the message. */
bool sg_commit_chunk(sg_warp *warp, const sg_insn *insn, unsigned lane, sg_cached_range *range, uint64_t address);
/* Bytes from `address` that may be read as a string, at most `limit`. */
const char *sg_reach_text(sg_warp *warp, unsigned lane, uint64_t address, size_t *available);

/* ---- builtins.c ---- */

/* -1: no builtin of this name. */
int sg_builtin_named(const char *name);
void sg_run_builtin(sg_warp *warp, const sg_insn *insn, int builtin, const sg_call *call);
/* print.c: one lane's vprintf. Returns what the function returns. */
int sg_print(sg_warp *warp, const sg_insn *insn, unsigned lane, uint64_t format, uint64_t arguments);

/* ---- timing.c: the time of a kernel whose launch is modelled ---- */

/* Since the block began. */
uint64_t sg_warp_ns(const sg_warp *warp);
void sg_note_block_time(sg_worker *worker, const sg_block *block);

uint64_t sg_now_ns(void);

#endif

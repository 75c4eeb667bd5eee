/* A worker: one host thread, its blocks and their memory. */
#include "machine.h"

#include <stdlib.h>
#include <time.h>

/* The memory of the last launches, for the next: an allocation of this size is a mapping that
 * the kernel of the host must clear page by page. Slots are taken and put back by exchange:
 * a lock here could be held by another thread at a fork, and the child would hang. */
typedef struct {
    size_t size;
    unsigned char bytes[] __attribute__((aligned(64)));
} kept_memory;

enum { KEPT = 8, LARGEST_KEPT = 8 * 1024 * 1024 };
static _Atomic(kept_memory *) kept[KEPT]; /* one launch's helpers, mostly */

static unsigned char *take_memory(size_t size) {
    kept_memory *memory = NULL;
    for (int i = 0; i < KEPT && size <= LARGEST_KEPT; i++) {
        memory = atomic_exchange(&kept[i], NULL);
        if (memory && memory->size >= size)
            return memory->bytes;
        free(memory);
    }
    memory = aligned_alloc(64, (sizeof *memory + size + 63) & ~(size_t)63);
    if (!memory)
        return NULL;
    memory->size = size;
    return memory->bytes;
}

static void give_memory(unsigned char *bytes) {
    if (!bytes)
        return;
    kept_memory *memory = (kept_memory *)(bytes - offsetof(kept_memory, bytes));
    for (int i = 0; i < KEPT && memory->size <= LARGEST_KEPT; i++) {
        kept_memory *none = NULL;
        if (atomic_compare_exchange_strong(&kept[i], &none, memory))
            return;
    }
    free(memory);
}

static size_t round_up(size_t size) { return (size + 63) & ~(size_t)63; }

typedef struct {
    size_t warps, registers, local, shared, total; /* bytes */
} block_layout;

static block_layout lay_out(const sg_grid *grid) {
    block_layout layout;
    layout.warps = round_up(grid->warps_per_block * sizeof(sg_warp));
    layout.registers = round_up(grid->kernel->code->frame_bytes) * grid->warps_per_block;
    layout.local = round_up((size_t)grid->local_stride * LANES) * grid->warps_per_block;
    layout.shared = round_up(grid->shared_bytes + 16);
    layout.total = layout.warps + layout.registers + layout.local + layout.shared;
    return layout;
}

static void place_block(const sg_grid *grid, sg_block *block, const block_layout *layout, unsigned char *memory) {
    block->warps = (sg_warp *)memory;
    memset(block->warps, 0, layout->warps);
    unsigned char *registers = memory + layout->warps;
    unsigned char *local = registers + layout->registers;
    block->shared = local + layout->local;
    for (uint32_t w = 0; w < grid->warps_per_block; w++) {
        block->warps[w].root.registers = registers + round_up(grid->kernel->code->frame_bytes) * w;
        block->warps[w].local = local + round_up((size_t)grid->local_stride * LANES) * w;
    }
}

/* A cooperative launch holds all blocks at once: the share of worker `number`. */
static uint64_t own_blocks(const sg_grid *grid, unsigned number) {
    if (!grid->launch->cooperative)
        return 1;
    return (grid->block_total - number + grid->worker_count - 1) / grid->worker_count;
}

bool sg_open_worker(sg_worker *worker, sg_grid *grid, unsigned number) {
    memset(worker, 0, sizeof *worker);
    worker->grid = grid;
    worker->number = number;
    for (int i = 0; i < RANGES; i++)
        worker->ranges[i].chunk = ~(uint64_t)0;
    for (int i = 0; i < CHUNKS_KNOWN; i++)
        worker->chunks[i] = ~(uint64_t)0;
    block_layout layout = lay_out(grid);
    worker->block_count = own_blocks(grid, number);
    worker->blocks = calloc(worker->block_count, sizeof *worker->blocks);
    worker->arena = take_memory(layout.total * worker->block_count);
    if (!worker->blocks || !worker->arena)
        return false;
    for (size_t i = 0; i < worker->block_count; i++) {
        place_block(grid, &worker->blocks[i], &layout, worker->arena + layout.total * i);
        sg_prepare_block(worker, &worker->blocks[i]);
    }
    return true;
}

void sg_close_worker(sg_worker *worker) {
    sg_free_frames(worker);
    free(worker->blocks);
    give_memory(worker->arena);
}

/* The first warp that has something left to do; where none has, any. */
static sg_warp *unfinished(sg_worker *worker) {
    for (size_t b = 0; b < worker->block_count; b++)
        for (uint32_t w = 0; w < worker->blocks[b].warp_count; w++)
            if (!worker->blocks[b].finished && !worker->blocks[b].warps[w].finished)
                return &worker->blocks[b].warps[w];
    return &worker->blocks[0].warps[0];
}

static bool out_of_time(sg_worker *worker) {
    sg_grid *grid = worker->grid;
    if (!sg_out_of_time(grid))
        return false;
    sg_fault_timeout(unfinished(worker), NULL);
    return true;
}

static bool given_up(const sg_worker *worker) {
    return worker->fault.status != SG_OK || atomic_load_explicit(&worker->grid->stopping, memory_order_relaxed);
}

static void work_through(sg_worker *worker) {
    sg_grid *grid = worker->grid;
    sg_block *block = &worker->blocks[0];
    while (!given_up(worker) && !out_of_time(worker)) {
        uint64_t number = atomic_fetch_add_explicit(&grid->next_block, 1, memory_order_relaxed);
        if (number >= grid->block_total)
            return;
        sg_start_block(block, number);
        sg_finish_block(worker, block);
    }
}

/* All blocks in turn, as long as any is left; those that wait for blocks of other workers
 * leave the processor to them. */
static void work_together(sg_worker *worker) {
    sg_grid *grid = worker->grid;
    for (size_t i = 0; i < worker->block_count; i++)
        sg_start_block(&worker->blocks[i], worker->number + i * grid->worker_count);
    for (bool left = true; left && !given_up(worker) && !out_of_time(worker);) {
        bool ran = false;
        left = false;
        for (size_t i = 0; i < worker->block_count && !given_up(worker); i++) {
            sg_block *block = &worker->blocks[i];
            if (block->finished)
                continue;
            left = true;
            ran |= sg_run_block(worker, block);
            if (block->finished)
                sg_leave_grid(grid);
        }
        if (left && !ran)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

void sg_work(sg_worker *worker) {
    if (worker->grid->launch->cooperative)
        work_together(worker);
    else
        work_through(worker);
    if (worker->fault.status != SG_OK)
        atomic_store_explicit(&worker->grid->stopping, 1, memory_order_relaxed);
}

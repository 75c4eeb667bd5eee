/* A launch: checked, shared out over workers, joined, reported. */
#include "pool.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 1024, MOST_WORKERS = 256 };
/* What a recursive kernel may use of local memory beyond its own variables, per thread. */
enum { RECURSION_BYTES = 64 * 1024, LARGEST_STACK = 512 * 1024 };

/* A card's default of 1 KiB counts frames of a compiler that keeps variables in registers; ours hold all of
 * them, so a limit raises what there is and never lowers it. */
static uint32_t stack_of(const sg_launch *launch) {
    uint32_t wanted = launch->stack_bytes < LARGEST_STACK ? launch->stack_bytes : LARGEST_STACK;
    return wanted > RECURSION_BYTES ? (wanted + 15) & ~15u : RECURSION_BYTES;
}
/* Host memory for the blocks of a cooperative launch. */
static const uint64_t MOST_RESIDENT = (uint64_t)4 << 30;
/* Waking a helper costs some 20 us, the first time a thread: only for launches that the first block shows
 * to last. */
static const uint64_t WORTH_A_THREAD_NS = 200000;

static bool refuse(sg_result *result, const char *why) {
    result->status = SG_INVALID_LAUNCH;
    snprintf(result->message, sizeof result->message, "%s", why);
    return false;
}

static bool check(const sg_kernel *kernel, const sg_launch *launch, sg_result *result) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (!launch->grid[i] || !launch->block[i])
            return refuse(result, "a grid or block of size zero");
        threads *= launch->block[i] > MOST_THREADS ? MOST_THREADS + 1 : launch->block[i];
    }
    sg_kernel_info info = sg_kernel_describe(kernel);
    if (threads > info.maximum_threads)
        return refuse(result, "more threads in a block than the kernel allows");
    for (int i = 0; i < 3; i++)
        if (info.required_threads[i] && launch->block[i] != info.required_threads[i])
            return refuse(result, "the block is not of the size that the kernel requires (.reqntid)");
    if (kernel->code->function->cluster_blocks > 1) {
        refuse(result, "clusters of more than one block (.reqnctapercluster) are not supported");
        result->status = SG_UNSUPPORTED;
        return false;
    }
    if (!launch->parameters && kernel->parameter_bytes)
        return refuse(result, "the kernel has parameters, the launch has none");
    if ((uint64_t)kernel->static_shared + launch->dynamic_shared_bytes + 1024 > SG_WINDOW_BYTES)
        return refuse(result, "too much shared memory");
    return true;
}

static uint32_t align_up(uint32_t value, uint32_t alignment) {
    return alignment ? (value + alignment - 1) / alignment * alignment : value;
}

static void describe(sg_grid *grid, const sg_kernel *kernel, const sg_launch *launch) {
    memset(grid, 0, sizeof *grid);
    grid->kernel = kernel;
    grid->launch = launch;
    grid->block_total = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    grid->deadline_ns = launch->timeout_ns ? sg_now_ns() + launch->timeout_ns : 0;
    grid->threads_per_block = launch->block[0] * launch->block[1] * launch->block[2];
    grid->warps_per_block = (grid->threads_per_block + LANES - 1) / LANES;
    grid->dynamic_base = align_up(kernel->static_shared, kernel->dynamic_alignment);
    grid->shared_bytes = launch->dynamic_shared_bytes ? grid->dynamic_base + launch->dynamic_shared_bytes
                                                      : kernel->static_shared;
    grid->local_limit = kernel->local_bytes + (kernel->recursive ? stack_of(launch) : 0);
    /* An odd number of cache lines, so that 32 lanes do not fall on the same sets. */
    grid->local_stride = grid->local_limit ? (align_up(grid->local_limit, 64) | 64) : 0;
    uint64_t wanted = launch->worker_threads ? launch->worker_threads : 1;
    wanted = wanted > MOST_WORKERS ? MOST_WORKERS : wanted;
    grid->worker_count = (unsigned)(wanted < grid->block_total ? wanted : grid->block_total);
    pthread_mutex_init(&grid->lock, NULL);
    pthread_cond_init(&grid->resumed, NULL);
}

static bool fits_resident(const sg_grid *grid) {
    uint64_t block = (uint64_t)grid->warps_per_block *
                         (sizeof(sg_warp) + grid->kernel->code->frame_bytes + (uint64_t)grid->local_stride * LANES) +
                     grid->shared_bytes;
    return grid->block_total <= MOST_RESIDENT / (block + 4096);
}

/* The one that begins last before it: each lies in one piece. */
static const char *function_of(const sg_module *module, const sg_insn *insn) {
    const sg_code *found = NULL;
    for (size_t i = 0; insn && i < module->ir->function_count; i++) {
        const sg_code *code = &module->codes[i];
        if (code->function->defined && module->insns + code->first <= insn && (!found || code->first >= found->first))
            found = code;
    }
    return found ? found->function->name : NULL;
}

void sg_report(sg_result *result, const sg_worker *worker) {
    const sg_module *module = worker->grid->kernel->module;
    result->instructions += worker->instructions;
    result->bytes += worker->bytes;
    result->all_blocks_ns += worker->all_blocks_ns;
    if (worker->longest_block_ns > result->longest_block_ns)
        result->longest_block_ns = worker->longest_block_ns;
    if (worker->fault.status == SG_OK || result->status != SG_OK)
        return;
    result->status = worker->fault.status;
    result->address = worker->fault.address;
    const sg_instruction *source = sg_instruction_of(module, worker->fault.insn);
    result->line = source ? source->line : 0;
    memcpy(result->message, worker->fault.message, sizeof result->message);
    result->place = (sg_fault_place){.known = worker->fault.placed,
                                     .instruction = source ? source->form : NULL,
                                     .function = function_of(module, worker->fault.insn),
                                     .global_bytes = worker->fault.global_bytes};
    memcpy(result->place.block, worker->fault.block, sizeof result->place.block);
    memcpy(result->place.thread, worker->fault.thread, sizeof result->place.thread);
}

/* The first block in this thread; if the rest will take a while, helpers for it. */
static bool worth_helping(sg_grid *grid, sg_worker *worker) {
    uint64_t number = atomic_fetch_add_explicit(&grid->next_block, 1, memory_order_relaxed);
    uint64_t before = sg_now_ns();
    sg_start_block(&worker->blocks[0], number);
    sg_finish_block(worker, &worker->blocks[0]);
    uint64_t took = sg_now_ns() - before;
    return worker->fault.status == SG_OK && took * (grid->block_total - 1) > WORTH_A_THREAD_NS;
}

static void run_all(sg_grid *grid, sg_worker *own, sg_result *result) {
    unsigned others = grid->worker_count - 1;
    bool cooperative = grid->launch->cooperative;
    sg_join_workers(grid);
    bool helped = others && (cooperative || worth_helping(grid, own)), refused = false;
    sg_job job;
    if (helped && !sg_call_helpers(&job, grid, result, others, cooperative))
        refused = true;
    else
        sg_work(own);
    sg_leave_workers(grid);
    if (helped) {
        sg_dismiss_helpers(&job, cooperative && !refused);
        refused |= job.failed && cooperative;
    }
    if (refused && result->status == SG_OK) {
        result->status = SG_NO_MEMORY;
        snprintf(result->message, sizeof result->message, "not enough host memory or threads for a cooperative launch");
    }
}

sg_status sg_run(const sg_kernel *kernel, const sg_launch *launch, sg_result *result) {
    memset(result, 0, sizeof *result);
    if (!check(kernel, launch, result))
        return result->status;
    sg_grid grid;
    describe(&grid, kernel, launch);
    if (launch->cooperative && !fits_resident(&grid)) {
        refuse(result, "a cooperative launch of more blocks than can be resident");
        return result->status;
    }
    sg_worker *worker = malloc(sizeof *worker);
    if (worker && sg_open_worker(worker, &grid, 0)) {
        run_all(&grid, worker, result);
        sg_report(result, worker);
    } else {
        result->status = SG_NO_MEMORY;
        snprintf(result->message, sizeof result->message, "out of host memory for the launch");
    }
    if (worker)
        sg_close_worker(worker);
    free(worker);
    pthread_cond_destroy(&grid.resumed);
    pthread_mutex_destroy(&grid.lock);
    return result->status;
}

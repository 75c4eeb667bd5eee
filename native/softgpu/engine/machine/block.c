/* One block: its warps take turns on one thread. */
#include "machine.h"

/* Once for each worker: thread numbers do not change from block to block. */
void sg_prepare_block(sg_worker *worker, sg_block *block) {
    const sg_grid *grid = worker->grid;
    const uint32_t *size = grid->launch->block;
    block->grid = worker->grid;
    block->warp_count = grid->warps_per_block;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        sg_warp *warp = &block->warps[w];
        warp->block = block;
        warp->worker = worker;
        warp->number = w;
        for (uint32_t i = 0; i < LANES; i++) {
            uint32_t thread = w * LANES + i;
            warp->tid[0][i] = thread % size[0];
            warp->tid[1][i] = thread / size[0] % size[1];
            warp->tid[2][i] = thread / size[0] / size[1];
        }
    }
}

static void start_warp(sg_warp *warp) {
    const sg_grid *grid = warp->block->grid;
    uint32_t rest = grid->threads_per_block - warp->number * LANES;
    uint32_t lanes = rest >= LANES ? (uint32_t)FULL_MASK : (1u << rest) - 1;
    warp->dead = ~lanes;
    warp->fragment_count = 0;
    warp->stop = warp->guarded = warp->forced = warp->held = warp->finished = false;
    warp->carry = 0;
    warp->issued = warp->slept_ns = 0;
    warp->cluster_arrived = 0;
    warp->turn = 0;
    warp->ticks = SG_TICK_BRANCHES;
    warp->root.code = grid->kernel->code; /* the rest of it is 0 and stays so */
    warp->root.lanes = lanes;
    if (warp->frame != &warp->root) /* most blocks end where they began */
        sg_enter_frame(warp, &warp->root);
    const sg_code *code = grid->kernel->code;
    warp->pc = grid->kernel->module->insns + (warp->prepared ? code->body : code->first);
    sg_set_mask(warp, lanes);
    if (warp->prepared) /* counted in every block, so that the number of workers does not show */
        warp->instructions += warp->active * (code->body - code->first);
    warp->prepared = true;
}

/* Divisions only where the grid has the dimension: a block may be shorter than they are. */
static void place_in_grid(sg_block *block, uint64_t number) {
    const uint32_t *size = block->grid->launch->grid;
    for (int i = 0; i < 3; i++) {
        bool whole = number < size[i];
        block->index[i] = (uint32_t)(whole ? number : number % size[i]);
        number = whole ? 0 : number / size[i];
    }
}

void sg_start_block(sg_block *block, uint64_t number) {
    place_in_grid(block, number);
    block->living = block->grid->threads_per_block;
    block->at_grid = 0;
    block->counted = false;
    block->finished = false;
    block->awaited = 0;
    block->cluster_arrived = 0;
    if (block->used)
        memset(block->barriers, 0, sizeof block->barriers);
    block->used = 0;
    for (uint32_t w = 0; w < block->warp_count; w++)
        start_warp(&block->warps[w]);
}

static bool can_run(const sg_warp *warp) {
    if (warp->mask)
        return true;
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        if (warp->fragments[i].state == FRAGMENT_READY)
            return true;
    return false;
}

/* Up to the next instruction that is not straight, or to a fault. */
static inline const sg_insn *run_straight(sg_warp *warp, const sg_insn *insn) {
    const sg_insn *end = insn + insn->straight;
    warp->instructions += warp->active * insn->straight;
    do {
        insn->run(warp, insn);
        insn++;
    } while (insn != end && !warp->stop);
    warp->instructions -= warp->active * (uint64_t)(end - insn);
    return insn;
}

static void run_warp(sg_warp *warp) {
    warp->stop = false;
    if (!warp->mask)
        sg_next(warp);
    while (!warp->stop) {
        const sg_insn *insn = warp->pc;
        if (insn->straight)
            insn = run_straight(warp, insn);
        if (warp->stop)
            break;
        warp->pc = insn + 1;
        warp->instructions += warp->active;
        insn->run(warp, insn);
    }
    warp->worker->instructions += warp->instructions;
    warp->issued += warp->instructions;
    warp->instructions = 0;
}

static bool given_up(const sg_worker *worker) {
    return worker->fault.status != SG_OK || atomic_load_explicit(&worker->grid->stopping, memory_order_relaxed);
}

bool sg_run_block(sg_worker *worker, sg_block *block) {
    bool ran = false, left = false;
    sg_pause_if_due(worker->grid);
    if (worker->grid->launch->cooperative)
        sg_recheck_grid(block);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        sg_warp *warp = &block->warps[w];
        if (warp->finished)
            continue;
        left = true;
        if (!can_run(warp))
            continue;
        ran = true;
        run_warp(warp);
        if (given_up(worker))
            return true;
    }
    block->finished = !left;
    if (block->finished && worker->grid->launch->modelled)
        sg_note_block_time(worker, block);
    return ran;
}

/* Lanes that wait for others of their warp, while those wait for a barrier. */
static bool force_someone(sg_block *block) {
    for (uint32_t w = 0; w < block->warp_count; w++)
        if (!block->warps[w].finished && sg_force_meeting(&block->warps[w]))
            return true;
    return false;
}

/* A card hangs here until its watchdog ends the kernel. */
static void fault_deadlock(sg_block *block) {
    uint32_t w = 0;
    unsigned lane;
    while (w + 1 < block->warp_count && block->warps[w].finished)
        w++;
    const sg_insn *insn = sg_where(&block->warps[w], &lane);
    unsigned number = block->awaited ? (unsigned)__builtin_ctz(block->awaited) : BARRIERS;
    if (number == BARRIERS) {
        sg_fault_lane(&block->warps[w], insn, lane, SG_TIMEOUT, 0, "deadlock: every warp of the block waits at a barrier");
        return;
    }
    const sg_barrier *barrier = &block->barriers[number];
    sg_fault_lane(&block->warps[w], insn, lane, SG_TIMEOUT, 0,
                  "deadlock: barrier %u has %u of the %u threads it waits for, and every warp of the block waits", number,
                  barrier->arrived, barrier->expected ? barrier->expected : block->living);
}

void sg_finish_block(sg_worker *worker, sg_block *block) {
    while (!block->finished) {
        bool ran = sg_run_block(worker, block);
        if (given_up(worker))
            return;
        if (ran || block->finished || force_someone(block))
            continue;
        fault_deadlock(block);
        return;
    }
}

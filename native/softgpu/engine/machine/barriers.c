/* Barriers of a block. Operands: 0 the barrier's number, 1 the number of threads (flags: 2
 * given); barrier_reduce: 2 the predicate (flags: 1 negated), 3 the result. */
#include "machine.h"

#define HANDLER_FOR(name) \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn); \
    void sg_run_##name(sg_warp *warp, const sg_insn *insn)

static uint32_t first_of(const sg_warp *warp, const sg_insn *insn, int n) {
    const uint32_t *column = (const uint32_t *)(warp->base[insn->operand[n] & 1] + insn->operand[n]);
    return column[__builtin_ctz(warp->mask)];
}

static void write_result(const sg_fragment *fragment, const sg_insn *insn, const sg_barrier *barrier) {
    uint32_t *column = (uint32_t *)(fragment->frame->registers + insn->operand[3]);
    if (insn->variant == W_popc) {
        for (uint32_t left = fragment->mask; left; left &= left - 1)
            column[__builtin_ctz(left)] = barrier->results[2];
    } else {
        bool holds = barrier->results[insn->variant == W_and ? 0 : 1];
        *column = (*column & ~fragment->mask) | (holds ? fragment->mask : 0);
    }
}

static void release(sg_block *block, unsigned number) {
    sg_barrier *barrier = &block->barriers[number];
    memcpy(barrier->results, barrier->votes, sizeof barrier->results);
    barrier->arrived = 0;
    barrier->expected = 0;
    block->awaited &= ~(1u << number);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        sg_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->fragment_count; i++) {
            sg_fragment *fragment = &warp->fragments[i];
            if (fragment->state != FRAGMENT_BARRIER || fragment->barrier != number)
                continue;
            fragment->state = FRAGMENT_READY;
            if ((fragment->pc - 1)->handler == H_barrier_reduce)
                write_result(fragment, fragment->pc - 1, barrier);
        }
    }
}

void sg_recheck_barriers(sg_block *block) {
    for (uint32_t left = block->awaited; left; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctz(left);
        const sg_barrier *barrier = &block->barriers[number];
        uint32_t needed = barrier->expected ? barrier->expected : block->living;
        if (barrier->arrived && barrier->arrived >= needed)
            release(block, number);
    }
}

static sg_barrier *arrive(sg_warp *warp, const sg_insn *insn, uint32_t *number) {
    *number = first_of(warp, insn, 0);
    if (*number >= BARRIERS) {
        sg_fault_at(warp, insn, SG_TRAP, 0, "barrier %u: there are %d", *number, BARRIERS);
        return NULL;
    }
    sg_barrier *barrier = &warp->block->barriers[*number];
    if (!barrier->arrived)
        barrier->votes[0] = 1, barrier->votes[1] = barrier->votes[2] = 0;
    warp->block->awaited |= 1u << *number;
    warp->block->used |= 1u << *number;
    uint32_t count = insn->flags & 2 ? first_of(warp, insn, 1) : 0;
    if (count)
        barrier->expected = count;
    /* Counts are multiples of the warp: its absent lanes count with those that came. */
    barrier->arrived += count && warp->full ? LANES : (uint32_t)warp->active;
    return barrier;
}

static void wait(sg_warp *warp, const sg_insn *insn, uint32_t number) {
    sg_park(warp, insn + 1, FRAGMENT_BARRIER, (uint8_t)number);
    sg_recheck_barriers(warp->block);
    sg_next(warp);
}

HANDLER_FOR(barrier) {
    uint32_t number;
    if (arrive(warp, insn, &number))
        wait(warp, insn, number);
}

HANDLER_FOR(barrier_arrive) {
    uint32_t number;
    if (arrive(warp, insn, &number))
        sg_recheck_barriers(warp->block);
}

HANDLER_FOR(barrier_reduce) {
    uint32_t number;
    sg_barrier *barrier = arrive(warp, insn, &number);
    if (!barrier)
        return;
    uint32_t votes = *(const uint32_t *)(warp->base[insn->operand[2] & 1] + insn->operand[2]);
    votes = (insn->flags & 1 ? ~votes : votes) & warp->mask;
    barrier->votes[0] &= votes == warp->mask;
    barrier->votes[1] |= votes != 0;
    barrier->votes[2] += (uint32_t)__builtin_popcount(votes);
    wait(warp, insn, number);
}

/* ---- a cluster of one block: arrive and wait are two instructions ---- */

void sg_recheck_cluster(sg_block *block) {
    if (!block->cluster_arrived || block->cluster_arrived < block->living)
        return;
    block->cluster_arrived = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        sg_warp *warp = &block->warps[w];
        warp->cluster_arrived = 0;
        for (uint32_t i = 0; i < warp->fragment_count; i++)
            if (warp->fragments[i].state == FRAGMENT_BARRIER && warp->fragments[i].barrier == BARRIERS)
                warp->fragments[i].state = FRAGMENT_READY;
    }
}

HANDLER_FOR(cluster_arrive) {
    if (warp->cluster_arrived & warp->mask) {
        sg_fault_at(warp, insn, SG_TRAP, 0, "barrier.cluster.arrive twice without a wait");
        return;
    }
    warp->cluster_arrived |= warp->mask;
    warp->block->cluster_arrived += (uint32_t)warp->active;
    sg_recheck_cluster(warp->block);
}

/* Lanes whose arrival was the last one of the phase, or was taken into it already, go on. */
HANDLER_FOR(cluster_wait) {
    uint32_t waiting = warp->cluster_arrived & warp->mask;
    if (!waiting)
        return;
    if (waiting != warp->mask) {
        sg_split(warp, insn + 1, warp->mask & ~waiting);
        sg_set_mask(warp, waiting);
    }
    sg_park(warp, insn + 1, FRAGMENT_BARRIER, BARRIERS);
    sg_next(warp);
}

/* bar.warp.sync: operand 0 the members. */
HANDLER_FOR(barrier_warp) {
    atomic_thread_fence(memory_order_seq_cst);
    sg_meet(warp, insn, first_of(warp, insn, 0));
}

/* ---- all blocks of a cooperative launch ---- */

static void advance_round(sg_grid *grid) {
    if (grid->waiting && grid->waiting + grid->ended >= grid->block_total) {
        grid->waiting = 0;
        grid->round++;
    }
}

static void free_waiting(sg_block *block) {
    block->counted = false;
    block->at_grid = 0;
    for (uint32_t w = 0; w < block->warp_count; w++)
        for (uint32_t i = 0; i < block->warps[w].fragment_count; i++)
            if (block->warps[w].fragments[i].state == FRAGMENT_GRID)
                block->warps[w].fragments[i].state = FRAGMENT_READY;
}

void sg_recheck_grid(sg_block *block) {
    sg_grid *grid = block->grid;
    if (!block->at_grid || block->at_grid < block->living)
        return;
    pthread_mutex_lock(&grid->lock);
    if (!block->counted) {
        block->counted = true;
        block->round = grid->round;
        grid->waiting++;
        advance_round(grid);
    }
    bool passed = grid->round != block->round;
    pthread_mutex_unlock(&grid->lock);
    if (passed)
        free_waiting(block);
}

void sg_leave_grid(sg_grid *grid) {
    pthread_mutex_lock(&grid->lock);
    grid->ended++;
    advance_round(grid);
    pthread_mutex_unlock(&grid->lock);
}

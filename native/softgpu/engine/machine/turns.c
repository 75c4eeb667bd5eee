/* Which lanes of a warp run: splitting, merging, waiting, taking turns. */
#include "machine.h"

/* A warp that loops gives the others of its block a turn every so often: they may wait for
 * what it does, or it for what they do, and neighbouring warps use neighbouring memory. From
 * 16 to 128 the length made no difference to any kernel measured. */
enum { TICK_BRANCHES = SG_TICK_BRANCHES };
/* The clock and the other workers are looked at less often. */
enum { TICKS_PER_LOOK = 16 };
/* A fragment that has looped this often while others of its warp could run gives them a
 * turn: a lane that spins for a lock must not starve the one that holds it. */
enum { TICKS_PER_TURN = 64 };

/* A warp mostly comes back to the mask it had: `spread` says of which `lanes` and `active` are. */
void sg_set_mask(sg_warp *warp, uint32_t mask) {
    warp->mask = mask;
    warp->full = (mask | warp->dead) == (uint32_t)FULL_MASK;
    if (warp->spread == mask)
        return;
    warp->spread = mask;
    warp->active = (uint64_t)__builtin_popcount(mask);
    for (int i = 0; i < LANES; i++)
        warp->lanes[i] = 0u - (mask >> i & 1);
}

void sg_enter_frame(sg_warp *warp, sg_frame *frame) {
    warp->frame = frame;
    warp->base[0] = frame->registers;
    warp->base[1] = (const unsigned char *)((uintptr_t)frame->code->constants - 1);
}

void sg_split(sg_warp *warp, const sg_insn *pc, uint32_t mask) {
    warp->fragments[warp->fragment_count++] = (sg_fragment){pc, warp->frame, mask, FRAGMENT_READY, 0};
}

static void remove_fragment(sg_warp *warp, uint32_t at) {
    warp->fragments[at] = warp->fragments[--warp->fragment_count];
}

static void resume(sg_warp *warp, uint32_t at) {
    sg_fragment chosen = warp->fragments[at];
    remove_fragment(warp, at);
    warp->pc = chosen.pc;
    if (chosen.frame != warp->frame)
        sg_enter_frame(warp, chosen.frame);
    sg_set_mask(warp, chosen.mask);
    warp->turn = 0;
}

static bool runs_before(const sg_frame *frame, const sg_insn *pc, const sg_frame *other, const sg_insn *other_pc) {
    if (frame->depth != other->depth)
        return frame->depth > other->depth;
    return frame == other ? pc < other_pc : (uintptr_t)frame < (uintptr_t)other;
}

static void merge(sg_warp *warp) {
    uint32_t mask = warp->mask;
    for (uint32_t i = 0; i < warp->fragment_count;) {
        const sg_fragment *other = &warp->fragments[i];
        if (other->state == FRAGMENT_READY && other->pc == warp->pc && other->frame == warp->frame) {
            mask |= other->mask;
            remove_fragment(warp, i);
        } else {
            i++;
        }
    }
    if (mask != warp->mask)
        sg_set_mask(warp, mask);
}

void sg_settle(sg_warp *warp) {
    merge(warp);
    if (!warp->fragment_count)
        warp->held = false;
    if (warp->held)
        return;
    int best = -1;
    const sg_frame *frame = warp->frame;
    const sg_insn *pc = warp->pc;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const sg_fragment *other = &warp->fragments[i];
        if (other->state == FRAGMENT_READY && runs_before(other->frame, other->pc, frame, pc)) {
            best = (int)i;
            frame = other->frame;
            pc = other->pc;
        }
    }
    if (best >= 0) {
        sg_fragment waiting = {warp->pc, warp->frame, warp->mask, FRAGMENT_READY, 0};
        resume(warp, (uint32_t)best);
        warp->fragments[warp->fragment_count++] = waiting;
        merge(warp);
    }
}

void sg_park(sg_warp *warp, const sg_insn *pc, sg_fragment_state state, uint8_t barrier) {
    warp->fragments[warp->fragment_count++] = (sg_fragment){pc, warp->frame, warp->mask, (uint8_t)state, barrier};
}

bool sg_force_meeting(sg_warp *warp) {
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        if (warp->fragments[i].state == FRAGMENT_MEETING) {
            warp->fragments[i].state = FRAGMENT_READY;
            warp->forced = true;
            return true;
        }
    return false;
}

static int best_ready(const sg_warp *warp) {
    int best = -1;
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const sg_fragment *f = &warp->fragments[i];
        if (f->state == FRAGMENT_READY && (best < 0 || runs_before(f->frame, f->pc, warp->fragments[best].frame,
                                                                    warp->fragments[best].pc)))
            best = (int)i;
    }
    return best;
}

static bool waits_for_others(const sg_warp *warp) {
    for (uint32_t i = 0; i < warp->fragment_count; i++)
        if (warp->fragments[i].state == FRAGMENT_BARRIER || warp->fragments[i].state == FRAGMENT_GRID)
            return true;
    return false;
}

void sg_next(sg_warp *warp) {
    int best = best_ready(warp);
    /* Lanes that wait to meet lanes which will not come (they exited, or the program is
     * wrong): a card's result is undefined there; ours is to go on with who is here. */
    if (best < 0 && warp->fragment_count && !waits_for_others(warp) && sg_force_meeting(warp))
        best = best_ready(warp);
    if (best < 0) {
        warp->mask = 0;
        warp->stop = true;
        warp->finished = !warp->fragment_count;
        return;
    }
    resume(warp, (uint32_t)best);
    merge(warp);
}

static uint32_t meeting_lanes(const sg_warp *warp, const sg_insn *insn) {
    uint32_t lanes = warp->mask;
    bool anywhere = insn->handler == H_barrier_warp; /* bar.warp.sync: the instructions may differ */
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        const sg_fragment *other = &warp->fragments[i];
        bool same = other->pc == insn && other->frame == warp->frame;
        if (other->state == FRAGMENT_MEETING && (same || (anywhere && other->pc->handler == H_barrier_warp)))
            lanes |= other->mask;
    }
    return lanes;
}

/* Those that waited at this instruction join the running fragment; those at another
 * bar.warp.sync go on after theirs. */
static void gather(sg_warp *warp, const sg_insn *insn) {
    uint32_t mask = warp->mask;
    for (uint32_t i = 0; i < warp->fragment_count;) {
        sg_fragment *other = &warp->fragments[i];
        bool meeting = other->state == FRAGMENT_MEETING;
        if (meeting && other->pc == insn && other->frame == warp->frame) {
            mask |= other->mask;
            remove_fragment(warp, i);
            continue;
        }
        if (meeting && insn->handler == H_barrier_warp && other->pc->handler == H_barrier_warp) {
            other->state = FRAGMENT_READY;
            other->pc++;
        }
        i++;
    }
    if (mask != warp->mask)
        sg_set_mask(warp, mask);
}

bool sg_meet(sg_warp *warp, const sg_insn *insn, uint32_t members) {
    uint32_t wanted = members & ~warp->dead;
    if (!(wanted & ~warp->mask) || warp->guarded)
        return true; /* everyone is here already: by far the most frequent */
    bool forced = warp->forced;
    warp->forced = false;
    if (forced || !(wanted & ~meeting_lanes(warp, insn))) {
        gather(warp, insn);
        return true;
    }
    warp->instructions -= warp->active; /* it runs again */
    sg_park(warp, insn, FRAGMENT_MEETING, 0);
    sg_next(warp);
    return false;
}

void sg_finish_lanes(sg_warp *warp, uint32_t lanes) {
    warp->dead |= lanes;
    if (warp->cluster_arrived) {
        warp->block->cluster_arrived -= (uint32_t)__builtin_popcount(warp->cluster_arrived & lanes);
        warp->cluster_arrived &= ~lanes;
    }
    warp->block->living -= lanes == warp->spread ? (uint32_t)warp->active : (uint32_t)__builtin_popcount(lanes);
    warp->root.lanes &= ~lanes;
    for (sg_frame *frame = warp->frame; frame != &warp->root;) {
        sg_frame *parent = frame->parent;
        frame->lanes &= ~lanes;
        if (!frame->lanes)
            sg_give_frame(warp->worker, frame);
        frame = parent;
    }
    if (warp->block->awaited)
        sg_recheck_barriers(warp->block);
    if (warp->block->cluster_arrived)
        sg_recheck_cluster(warp->block);
}

/* Ready fragments other than the running one take turns once one has looped too long. */
static void rotate(sg_warp *warp) {
    for (uint32_t i = 0; i < warp->fragment_count; i++) {
        if (warp->fragments[i].state != FRAGMENT_READY)
            continue;
        sg_fragment waiting = {warp->pc, warp->frame, warp->mask, FRAGMENT_READY, 0};
        sg_fragment chosen = warp->fragments[i];
        /* keep their order, oldest first: the one that ran goes to the end */
        memmove(&warp->fragments[i], &warp->fragments[i + 1],
                (warp->fragment_count - i - 1) * sizeof *warp->fragments);
        warp->fragments[warp->fragment_count - 1] = chosen;
        resume(warp, warp->fragment_count - 1);
        warp->fragments[warp->fragment_count++] = waiting;
        warp->held = true;
        return;
    }
}

/* True where the launch is over. */
static bool look(sg_warp *warp, const sg_insn *insn) {
    sg_grid *grid = warp->block->grid;
    if (atomic_load_explicit(&grid->stopping, memory_order_relaxed)) {
        warp->stop = true;
        return true;
    }
    if (sg_out_of_time(grid)) {
        sg_fault_timeout(warp, insn);
        return true;
    }
    return false;
}

void sg_tick(sg_warp *warp, const sg_insn *insn) {
    warp->ticks = TICK_BRANCHES;
    sg_pause_if_due(warp->block->grid);
    if (++warp->looks % TICKS_PER_LOOK == 0 && look(warp, insn))
        return;
    if (++warp->turn >= TICKS_PER_TURN && warp->fragment_count)
        rotate(warp);
    if (warp->block->warp_count > 1 || warp->block->grid->launch->cooperative)
        warp->stop = true; /* the other warps have their turn; this one goes on where it is */
}

/* What an access of a warp is where the quick ways of rows.h did not see it: rows all the same, perhaps of lanes
 * that are not all there, or scattered, which goes lane by lane. Faults of loads and stores are found here. */
#ifndef SG_MACHINE_SHAPES_H
#define SG_MACHINE_SHAPES_H

#include "rows.h"

typedef struct {
    bool run;
    rows at;                    /* of a run */
    unsigned char *lane[LANES]; /* scattered: where the lanes in the mask are */
} shape;

static inline bool find_run(const sg_warp *warp, const uint64_t *ea, unsigned size, run *found) {
    uint64_t step = ea[1] - ea[0], low = ea[0], high = ea[HALF], differ = 0;
    if (warp->mask != (uint32_t)FULL_MASK) { /* a loop's last warp, a guard: one element, or nothing */
        low = high = ea[first_lane(warp->mask)];
        EACH_LANE differ |= (ea[i] ^ low) & (uint64_t)(int64_t)(int32_t)warp->lanes[i];
        *found = (run){{low, low}, 0};
        return !differ;
    }
    if (step != 0 && step != size)
        return false;
    _Pragma("GCC ivdep") for (int i = 0; i < HALF; i++)
        differ |= (ea[i] ^ (low + step * (uint64_t)i)) | (ea[HALF + i] ^ (high + step * (uint64_t)i));
    *found = (run){{low, high}, step};
    return !differ;
}

static inline void take_run(const run *r, uintptr_t origin, shape *found) {
    found->run = true;
    found->at = rows_of(r, origin);
}

/* ---- shared, local and parameter memory: one buffer and a bound ---- */

static bool fault_outside(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, uint64_t bound, unsigned size,
                          bool store) {
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)first_lane(left);
        uint64_t address = ea[lane];
        if (address & (size - 1)) {
            sg_fault_access(warp, insn, lane, SG_MISALIGNED, address, size, store, false,
                            "of .%s memory is not aligned: it has to be at a multiple of %u", sg_space_text(insn->space), size);
            break;
        }
        if (address > bound || bound - address < size) {
            sg_fault_access(warp, insn, lane, SG_ILLEGAL_ADDRESS, address, size, store, false,
                            "is outside the %llu bytes of .%s memory", (unsigned long long)bound,
                            sg_space_text(insn->space));
            break;
        }
    }
    return false;
}

static inline bool within(const sg_warp *warp, const uint64_t *ea, uint64_t bound, unsigned size) {
    uint64_t last = bound - size, bad = bound < size;
    EACH_LANE bad |= (uint64_t)((ea[i] > last) | ((ea[i] & (size - 1)) != 0)) & warp->lanes[i];
    return !bad;
}

static inline void scatter(const uint64_t *ea, uintptr_t origin, shape *found) {
    found->run = false;
    EACH_LANE found->lane[i] = (unsigned char *)(origin + ea[i]);
}

static inline bool reach_buffer(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, unsigned char *buffer,
                                uint64_t bound, shape *found) {
    uint64_t ea[LANES] __attribute__((aligned(64)));
    run r;
    if (is_uniform(insn)) {
        r = (run){{uniform_address(warp, insn), uniform_address(warp, insn)}, 0};
        if (!run_within(&r, 0, bound, size)) {
            EACH_LANE ea[i] = r.first[0];
            return fault_outside(warp, insn, ea, bound, size, store);
        }
        take_run(&r, (uintptr_t)buffer, found);
        return true;
    }
    addresses(warp, insn, ea);
    if (find_run(warp, ea, size, &r) && run_within(&r, 0, bound, size)) {
        take_run(&r, (uintptr_t)buffer, found);
        return true;
    }
    if (!within(warp, ea, bound, size))
        return fault_outside(warp, insn, ea, bound, size, store);
    scatter(ea, (uintptr_t)buffer, found);
    return true;
}

/* Local memory is one piece a lane, so that a generic pointer into it is a plain offset. */
static inline bool reach_local(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
    const sg_grid *grid = warp->block->grid;
    uint64_t ea[LANES] __attribute__((aligned(64))), stride = grid->local_stride;
    all_addresses(warp, insn, ea);
    if (!within(warp, ea, grid->local_limit, size))
        return fault_outside(warp, insn, ea, grid->local_limit, size, store);
    found->run = false;
    EACH_LANE found->lane[i] = (unsigned char *)((uintptr_t)warp->local + stride * (uint64_t)i + ea[i]);
    return true;
}

/* ---- global memory ---- */

static inline bool committed(sg_warp *warp, const sg_insn *insn, int lane, sg_cached_range *range, uint64_t address) {
    return range->chunk == address >> CHUNK_SHIFT || sg_commit_chunk(warp, insn, (unsigned)lane, range, address);
}

static inline bool run_committed(sg_warp *warp, const sg_insn *insn, sg_cached_range *range, const run *r, bool store) {
    uint64_t length = r->step * (HALF - 1);
    int first = first_lane(warp->mask); /* alone, or the whole warp runs */
    return !store || (committed(warp, insn, first, range, r->first[0]) &&
                      committed(warp, insn, first + (r->step ? HALF - 1 : 0), range, r->first[0] + length) &&
                      committed(warp, insn, first % HALF + HALF, range, r->first[1]) &&
                      committed(warp, insn, LANES - 1, range, r->first[1] + length));
}

/* One by one: windows, several allocations, faults. */
static bool reach_each(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, unsigned size, bool store, shape *found) {
    found->run = false;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        int i = first_lane(left);
        found->lane[i] = sg_reach_lane(warp, insn, (unsigned)i, insn->space, ea[i], size, store);
        if (!found->lane[i])
            return false;
    }
    return true;
}

static bool reach_global(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
    uint64_t ea[LANES] __attribute__((aligned(64)));
    all_addresses(warp, insn, ea);
    sg_cached_range *cached = cached_range(warp, insn);
    uint64_t any = ea[first_lane(warp->mask)];
    if (any < cached->range.first || any >= cached->range.last) {
        if (any < SG_CODE_WINDOW + SG_WINDOW_BYTES || !(cached = sg_find_range(warp, insn, any)))
            return reach_each(warp, insn, ea, size, store, found);
    }
    uintptr_t origin = (uintptr_t)cached->range.host - cached->range.first;
    run r;
    if (find_run(warp, ea, size, &r) && run_within(&r, cached->range.first, cached->range.last, size)) {
        take_run(&r, origin, found);
        return run_committed(warp, insn, cached, &r, store);
    }
    if (!all_within(warp, cached, ea, size, store))
        return reach_each(warp, insn, ea, size, store, found);
    scatter(ea, origin, found);
    return true;
}

static bool reach_slowly(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
    const sg_grid *grid = warp->block->grid;
    switch (insn->space) {
    case SPACE_SHARED:
        return reach_buffer(warp, insn, size, store, warp->block->shared, grid->shared_bytes, found);
    case SPACE_LOCAL:
        return reach_local(warp, insn, size, store, found);
    case SPACE_PARAM:
        if (store) {
            sg_fault_at(warp, insn, SG_ILLEGAL_ADDRESS, 0, "a kernel's parameters are read-only");
            return false;
        }
        return reach_buffer(warp, insn, size, store, (unsigned char *)grid->launch->parameters,
                            grid->kernel->parameter_bytes, found);
    default:
        if (!reach_global(warp, insn, size, store, found))
            return false;
        warp->worker->bytes += found->run && !found->at.step ? size : size * warp->active;
        return true;
    }
}

static bool reach(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
    found->run = true;
    return reach_rows(warp, insn, size, store, &found->at) || reach_slowly(warp, insn, size, store, found);
}

#endif

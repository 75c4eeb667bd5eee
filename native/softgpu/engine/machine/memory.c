/* Loads and stores. The common accesses of a warp are two runs of 16 lanes, each with a base
 * and a step: neighbours in a row (step: the element), one element for all (step 0), and the
 * rows of a tile 16 wide. Runs are checked at their ends and moved as a whole; what is no
 * run is scattered and goes lane by lane. */
#include "addresses.h"

enum { HALF = LANES / 2 };

typedef struct {
    bool run;
    unsigned step;              /* of a run: 0 or the size of the access */
    unsigned char *base[2];     /* of a run: where lanes 0 and 16 are */
    unsigned char *lane[LANES]; /* scattered: where the lanes in the mask are */
} shape;

/* ---- addresses ---- */

/* Two addresses that stand for all: of lane 0 and lane 16. */
typedef struct {
    uint64_t first[2];
    uint64_t step;
} run;

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

/* Whether both ends of both halves lie in [first, last), aligned. */
static inline bool run_within(const run *r, uint64_t first, uint64_t last, unsigned size) {
    if (last - first < size || ((r->first[0] | r->first[1]) & (size - 1)))
        return false;
    uint64_t highest = last - size, length = r->step * (HALF - 1);
    return r->first[0] >= first && r->first[1] >= first && r->first[0] <= highest && r->first[1] <= highest &&
           highest - r->first[0] >= length && highest - r->first[1] >= length;
}

static inline void take_run(const run *r, uintptr_t origin, shape *found) {
    found->run = true;
    found->step = (unsigned)r->step;
    found->base[0] = (unsigned char *)(origin + r->first[0]);
    found->base[1] = (unsigned char *)(origin + r->first[1]);
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

/* Neighbours, seen from their indices alone: where lane 0's is; NULL: look closer. */
static inline unsigned char *reach_row(sg_warp *warp, const sg_insn *insn, unsigned size, bool store) {
    uint64_t first, step;
    if (insn->mode < ADDRESS_INDEX_S32 || warp->mask != (uint32_t)FULL_MASK || !indexed_run(warp, insn, &first, &step) ||
        step != size)
        return NULL;
    const sg_cached_range *cached = cached_range(warp, insn);
    uint64_t length = (uint64_t)size * LANES, offset = first - cached->range.first;
    uint64_t bytes = cached->range.last - cached->range.first;
    if (offset >= bytes || bytes - offset < length || (first & (size - 1)))
        return NULL;
    if (store && (cached->chunk != first >> CHUNK_SHIFT || cached->chunk != (first + length - 1) >> CHUNK_SHIFT))
        return NULL;
    return cached->range.host + offset;
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

static inline bool reach(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
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
        warp->worker->bytes += found->run && !found->step ? size : size * warp->active;
        return true;
    }
}

/* ---- loads ---- */

/* The value at `at` in every lane's access: M in memory, S in the column, through E, which
 * extends the sign. */
#define LOAD(name, M, E, S)                                               \
    static inline void take_##name(const sg_warp *warp, const shape *from, unsigned at, S *d) { \
        if (!from->run) {                                                 \
            for (uint32_t left = warp->mask; left; left &= left - 1) {    \
                int i = first_lane(left);                                 \
                M value;                                                  \
                memcpy(&value, from->lane[i] + at, sizeof value);         \
                d[i] = (S)(E)value;                                       \
            }                                                             \
        } else if (from->step == sizeof(M)) {                             \
            for (int half = 0; half < 2; half++) {                        \
                const M *row = (const M *)from->base[half];               \
                S *part = d + HALF * half;                                \
                _Pragma("GCC ivdep") for (int i = 0; i < HALF; i++) part[i] = (S)(E)row[i]; \
            }                                                             \
        } else if (from->step) {                                          \
            for (int i = 0; i < LANES; i++) {                             \
                M value;                                                  \
                memcpy(&value, from->base[i / HALF] + from->step * (unsigned)(i % HALF) + at, sizeof value); \
                d[i] = (S)(E)value;                                       \
            }                                                             \
        } else {                                                          \
            M low, high;                                                  \
            memcpy(&low, from->base[0] + at, sizeof low);                 \
            memcpy(&high, from->base[1] + at, sizeof high);               \
            const uint32_t *m = warp->lanes;                              \
            if (warp->full) {                                             \
                _Pragma("GCC ivdep") for (int i = 0; i < HALF; i++) d[i] = (S)(E)low; \
                _Pragma("GCC ivdep") for (int i = HALF; i < LANES; i++) d[i] = (S)(E)high; \
            } else {                                                      \
                EACH_LANE d[i] = m[i] ? (S)(E)low : d[i];                 \
            }                                                             \
        }                                                                 \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        const M *row = (const M *)reach_row(warp, insn, (unsigned)sizeof(M), false); \
        if (row && insn->count == 1) {                                    \
            S *d = DESTINATION(S, 0);                                     \
            EACH_LANE d[i] = (S)(E)row[i];                                \
            warp->worker->bytes += LANES * sizeof(M);                     \
            return;                                                       \
        }                                                                 \
        shape from;                                                       \
        if (!reach(warp, insn, (unsigned)sizeof(M) * insn->count, false, &from)) \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            take_##name(warp, &from, k * (unsigned)sizeof(M), DESTINATION(S, k)); \
    }
LOAD(ld_u8, uint8_t, uint32_t, uint32_t)
LOAD(ld_s8, int8_t, int32_t, uint32_t)
LOAD(ld_u16, uint16_t, uint32_t, uint32_t)
LOAD(ld_s16, int16_t, int32_t, uint32_t)
LOAD(ld_32, uint32_t, uint32_t, uint32_t)
LOAD(ld_u8_64, uint8_t, uint64_t, uint64_t)
LOAD(ld_s8_64, int8_t, int64_t, uint64_t)
LOAD(ld_u16_64, uint16_t, uint64_t, uint64_t)
LOAD(ld_s16_64, int16_t, int64_t, uint64_t)
LOAD(ld_u32_64, uint32_t, uint64_t, uint64_t)
LOAD(ld_s32_64, int32_t, int64_t, uint64_t)
LOAD(ld_64, uint64_t, uint64_t, uint64_t)

/* ---- stores ---- */

#define STORE(name, M, S)                                                 \
    static inline void put_##name(const sg_warp *warp, const shape *to, unsigned at, const S *s) { \
        if (!to->run) {                                                   \
            for (uint32_t left = warp->mask; left; left &= left - 1) {    \
                int i = first_lane(left);                                 \
                M value = (M)s[i];                                        \
                memcpy(to->lane[i] + at, &value, sizeof value);           \
            }                                                             \
        } else if (to->step == sizeof(M)) {                               \
            for (int half = 0; half < 2; half++) {                        \
                M *row = (M *)to->base[half];                             \
                const S *part = s + HALF * half;                          \
                _Pragma("GCC ivdep") for (int i = 0; i < HALF; i++) row[i] = (M)part[i]; \
            }                                                             \
        } else if (to->step) {                                            \
            for (int i = 0; i < LANES; i++) {                             \
                M value = (M)s[i];                                        \
                memcpy(to->base[i / HALF] + to->step * (unsigned)(i % HALF) + at, &value, sizeof value); \
            }                                                             \
        } else { /* all to one place, or each half: the last lane's value stays */ \
            M low = (M)s[warp->mask & 0xffff ? 31 - __builtin_clz(warp->mask & 0xffff) : 31 - __builtin_clz(warp->mask)]; \
            M high = (M)s[31 - __builtin_clz(warp->mask)];                \
            memcpy(to->base[0] + at, &low, sizeof low);                   \
            memcpy(to->base[1] + at, &high, sizeof high);                 \
        }                                                                 \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        M *row = (M *)reach_row(warp, insn, (unsigned)sizeof(M), true);   \
        if (row && insn->count == 1) {                                    \
            const S *s = SOURCE(S, 0);                                    \
            EACH_LANE row[i] = (M)s[i];                                   \
            warp->worker->bytes += LANES * sizeof(M);                     \
            return;                                                       \
        }                                                                 \
        shape to;                                                         \
        if (!reach(warp, insn, (unsigned)sizeof(M) * insn->count, true, &to)) \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            put_##name(warp, &to, k * (unsigned)sizeof(M), SOURCE(S, k)); \
    }
STORE(st_8, uint8_t, uint32_t)
STORE(st_16, uint16_t, uint32_t)
STORE(st_32, uint32_t, uint32_t)
STORE(st_64, uint64_t, uint64_t)

/* ---- addresses as values ---- */

/* cvta: to and from a window; a null pointer has no special value there. */
HANDLER_FOR(offset_address) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint64_t offset = (uint64_t)insn->immediate;
    FILL(uint64_t, 0, EACH_LANE out[i] = a[i] + offset);
}

static inline bool lies_in(uint64_t address, unsigned space) {
    switch (space) {
    case SPACE_SHARED: return address - SG_SHARED_WINDOW < SG_WINDOW_BYTES;
    case SPACE_LOCAL: return address - SG_LOCAL_WINDOW < SG_WINDOW_BYTES;
    case SPACE_PARAM: return address - SG_PARAM_WINDOW < SG_WINDOW_BYTES;
    default: return address >= SG_CODE_WINDOW + SG_WINDOW_BYTES || address - SG_GRID_WINDOW < SG_WINDOW_BYTES;
    }
}

HANDLER_FOR(isspacep) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint32_t result = 0;
    for (int i = 0; i < LANES; i++)
        result |= (uint32_t)lies_in(a[i], insn->space) << i;
    sg_set_predicate(warp, insn, 0, result);
}

HANDLER_FOR(fence) {
    (void)warp, (void)insn;
    atomic_thread_fence(memory_order_seq_cst);
}

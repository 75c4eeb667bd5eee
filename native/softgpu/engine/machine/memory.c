/* Loads and stores. An access of a warp is one of three shapes, and the common two move 32
 * lanes at once: ROW (each lane the next element) and ONE (all lanes the same). */
#include "lanes.h"

typedef enum { SHAPE_ROW, SHAPE_ONE, SHAPE_SCATTER } shape_kind;

typedef struct {
    shape_kind kind;
    unsigned char *base;        /* ROW: of lane 0; ONE: of all */
    unsigned char *lane[LANES]; /* SCATTER: of the lanes in the mask */
} shape;

static inline int first_lane(uint32_t mask) { return __builtin_ctz(mask); }

/* ---- addresses ---- */

/* Effective addresses; returns true where all are the same by construction. */
static inline bool addresses(sg_warp *warp, const sg_insn *insn, uint64_t *ea) {
    uint64_t offset = (uint64_t)insn->immediate;
    switch (insn->mode) {
    case ADDRESS_WIDE: {
        const uint64_t *base = SOURCE(uint64_t, 4);
        EACH_LANE ea[i] = base[i] + offset;
        return false;
    }
    case ADDRESS_NARROW: {
        const uint32_t *base = SOURCE(uint32_t, 4);
        EACH_LANE ea[i] = (uint32_t)(base[i] + (uint32_t)offset);
        return false;
    }
    case ADDRESS_FRAME:
        offset += warp->frame->local_base;
    }
    EACH_LANE ea[i] = offset;
    return true;
}

/* How the addresses of the active lanes lie to one another. Lanes that are not active may
 * hold anything: a row needs them all, one address only the active. */
static inline bool all_equal(const sg_warp *warp, const uint64_t *ea) {
    uint64_t first = ea[first_lane(warp->mask)], differ = 0;
    EACH_LANE differ |= (ea[i] ^ first) & (uint64_t)(int64_t)(int32_t)warp->lanes[i];
    return !differ;
}

static inline bool in_a_row(const uint64_t *ea, uint64_t step) {
    uint64_t differ = 0, first = ea[0];
    EACH_LANE differ |= ea[i] ^ (first + step * (uint64_t)i);
    return !differ;
}

/* ---- shared, local and parameter memory: one buffer and a bound ---- */

static void fault_outside(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, uint64_t bound, unsigned size) {
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        uint64_t address = ea[first_lane(left)];
        if (address & (size - 1)) {
            sg_fault_at(warp, insn, SG_MISALIGNED, address, "%u bytes of .%s memory at 0x%llx are not aligned", size,
                        sg_space_text(insn->space), (unsigned long long)address);
            return;
        }
        if (address > bound || bound - address < size) {
            sg_fault_at(warp, insn, SG_ILLEGAL_ADDRESS, address,
                        "%u bytes at 0x%llx are outside the %llu bytes of .%s memory", size,
                        (unsigned long long)address, (unsigned long long)bound, sg_space_text(insn->space));
            return;
        }
    }
}

static inline bool within(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, uint64_t bound, unsigned size) {
    uint64_t last = bound - size, bad = bound < size;
    EACH_LANE bad |= (uint64_t)((ea[i] > last) | ((ea[i] & (size - 1)) != 0)) & warp->lanes[i];
    if (__builtin_expect(bad != 0, 0))
        fault_outside(warp, insn, ea, bound, size);
    return !bad;
}

static inline bool reach_buffer(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, bool same, unsigned size,
                                unsigned char *buffer, uint64_t bound, shape *found) {
    if (!within(warp, insn, ea, bound, size))
        return false;
    if (same || all_equal(warp, ea)) {
        found->kind = SHAPE_ONE;
        found->base = buffer + ea[first_lane(warp->mask)];
    } else if (warp->mask == (uint32_t)FULL_MASK && in_a_row(ea, size)) {
        found->kind = SHAPE_ROW;
        found->base = buffer + ea[0];
    } else {
        found->kind = SHAPE_SCATTER;
        EACH_LANE found->lane[i] = (unsigned char *)((uintptr_t)buffer + ea[i]);
    }
    return true;
}

/* Local memory is one piece a lane, so that a generic pointer into it is a plain offset. */
static inline bool reach_local(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, unsigned size, shape *found) {
    const sg_grid *grid = warp->block->grid;
    if (!within(warp, insn, ea, grid->local_limit, size))
        return false;
    found->kind = SHAPE_SCATTER;
    uint64_t stride = grid->local_stride;
    EACH_LANE found->lane[i] = (unsigned char *)((uintptr_t)warp->local + stride * (uint64_t)i + ea[i]);
    return true;
}

/* ---- global memory ---- */

static inline bool holds(const sg_range *range, uint64_t address, unsigned size) {
    return address >= range->first && address < range->last && range->last - address >= size;
}

static inline bool committed(sg_warp *warp, const sg_insn *insn, sg_cached_range *range, uint64_t address, bool store) {
    return !store || range->chunk == address >> CHUNK_SHIFT || sg_commit_chunk(warp, insn, range, address);
}

/* One by one: windows, several allocations, faults. */
static bool reach_each(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, unsigned size, bool store, shape *found) {
    found->kind = SHAPE_SCATTER;
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        int i = first_lane(left);
        found->lane[i] = sg_reach_lane(warp, insn, (unsigned)i, insn->space, ea[i], size, store);
        if (!found->lane[i])
            return false;
    }
    return true;
}

static inline bool reach_global(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, bool same, unsigned size,
                                bool store, shape *found) {
    sg_cached_range *cached = &warp->worker->ranges[(size_t)((uintptr_t)insn / sizeof *insn) % RANGES];
    const sg_range *range = &cached->range;
    uint64_t first = ea[first_lane(warp->mask)];
    if (!holds(range, first, size)) {
        if (first < SG_CODE_WINDOW + SG_WINDOW_BYTES || !(cached = sg_find_range(warp, insn, first)))
            return reach_each(warp, insn, ea, size, store, found);
    }
    uintptr_t origin = (uintptr_t)range->host - range->first;
    if (warp->mask == (uint32_t)FULL_MASK && in_a_row(ea, size)) {
        if (!(first & (size - 1)) && holds(range, ea[LANES - 1], size) && ea[LANES - 1] >= first) {
            found->kind = SHAPE_ROW;
            found->base = (unsigned char *)(origin + first);
            return committed(warp, insn, cached, first, store) && committed(warp, insn, cached, ea[LANES - 1], store);
        }
    } else if (same || all_equal(warp, ea)) {
        if (!(first & (size - 1))) {
            found->kind = SHAPE_ONE;
            found->base = (unsigned char *)(origin + first);
            return committed(warp, insn, cached, first, store);
        }
    }
    uint64_t low = range->first, last = range->last - size, bad = range->last - low < size, chunk = cached->chunk;
    EACH_LANE {
        uint64_t outside = (ea[i] < low) | (ea[i] > last) | ((ea[i] & (size - 1)) != 0);
        bad |= (outside | (store & (ea[i] >> CHUNK_SHIFT != chunk))) & warp->lanes[i];
    }
    if (bad)
        return reach_each(warp, insn, ea, size, store, found);
    found->kind = SHAPE_SCATTER;
    EACH_LANE found->lane[i] = (unsigned char *)(origin + ea[i]);
    return true;
}

static inline bool reach(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, shape *found) {
    uint64_t ea[LANES] __attribute__((aligned(64)));
    bool same = addresses(warp, insn, ea);
    const sg_grid *grid = warp->block->grid;
    switch (insn->space) {
    case SPACE_SHARED:
        return reach_buffer(warp, insn, ea, same, size, warp->block->shared, grid->shared_bytes, found);
    case SPACE_LOCAL:
        return reach_local(warp, insn, ea, size, found);
    case SPACE_PARAM:
        if (store) {
            sg_fault_at(warp, insn, SG_ILLEGAL_ADDRESS, ea[first_lane(warp->mask)], "a kernel's parameters are read-only");
            return false;
        }
        return reach_buffer(warp, insn, ea, same, size, (unsigned char *)grid->launch->parameters,
                            grid->kernel->parameter_bytes, found);
    default:
        return reach_global(warp, insn, ea, same, size, store, found);
    }
}

/* ---- loads ---- */

/* Component `k` of `count`, each of type M in memory, S in the column (through E, which
 * extends the sign). Lanes are read one by one only where they are scattered. */
#define LOAD(name, M, E, S)                                               \
    static inline void take_##name(sg_warp *warp, const shape *from, unsigned step, unsigned at, S *d) { \
        if (from->kind == SHAPE_SCATTER) {                                \
            if (warp->mask == (uint32_t)FULL_MASK) {                      \
                for (int i = 0; i < LANES; i++) {                         \
                    M value;                                              \
                    memcpy(&value, from->lane[i] + at, sizeof value);     \
                    d[i] = (S)(E)value;                                   \
                }                                                         \
            } else {                                                      \
                for (uint32_t left = warp->mask; left; left &= left - 1) { \
                    int i = first_lane(left);                             \
                    M value;                                              \
                    memcpy(&value, from->lane[i] + at, sizeof value);     \
                    d[i] = (S)(E)value;                                   \
                }                                                         \
            }                                                             \
        } else if (from->kind == SHAPE_ROW && step == sizeof(M)) {        \
            const M *row = (const M *)from->base;                         \
            EACH_LANE d[i] = (S)(E)row[i];                                \
        } else if (from->kind == SHAPE_ROW) {                             \
            for (int i = 0; i < LANES; i++) {                             \
                M value;                                                  \
                memcpy(&value, from->base + step * (unsigned)i + at, sizeof value); \
                d[i] = (S)(E)value;                                       \
            }                                                             \
        } else {                                                          \
            M value;                                                      \
            memcpy(&value, from->base + at, sizeof value);                \
            S wide = (S)(E)value;                                         \
            if (warp->full) {                                             \
                EACH_LANE d[i] = wide;                                    \
            } else {                                                      \
                const uint32_t *m = warp->lanes;                          \
                EACH_LANE d[i] = m[i] ? wide : d[i];                      \
            }                                                             \
        }                                                                 \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        shape from;                                                       \
        unsigned step = (unsigned)sizeof(M) * insn->count;                \
        if (!reach(warp, insn, step, false, &from))                       \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            take_##name(warp, &from, step, k * (unsigned)sizeof(M), DESTINATION(S, k)); \
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
    static inline void put_##name(sg_warp *warp, const shape *to, unsigned step, unsigned at, const S *s) { \
        if (to->kind == SHAPE_SCATTER) {                                  \
            for (uint32_t left = warp->mask; left; left &= left - 1) {    \
                int i = first_lane(left);                                 \
                M value = (M)s[i];                                        \
                memcpy(to->lane[i] + at, &value, sizeof value);           \
            }                                                             \
        } else if (to->kind == SHAPE_ROW && step == sizeof(M)) {          \
            M *row = (M *)to->base;                                       \
            EACH_LANE row[i] = (M)s[i];                                   \
        } else if (to->kind == SHAPE_ROW) {                               \
            for (int i = 0; i < LANES; i++) {                             \
                M value = (M)s[i];                                        \
                memcpy(to->base + step * (unsigned)i + at, &value, sizeof value); \
            }                                                             \
        } else {                                                          \
            M value = (M)s[31 - __builtin_clz(warp->mask)];               \
            memcpy(to->base + at, &value, sizeof value);                  \
        }                                                                 \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        shape to;                                                         \
        unsigned step = (unsigned)sizeof(M) * insn->count;                \
        if (!reach(warp, insn, step, true, &to))                          \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            put_##name(warp, &to, step, k * (unsigned)sizeof(M), SOURCE(S, k)); \
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

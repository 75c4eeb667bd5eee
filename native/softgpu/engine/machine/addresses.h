/* Effective addresses of a warp's access, as lowering described them (ADDRESS_*). */
#ifndef SG_MACHINE_ADDRESSES_H
#define SG_MACHINE_ADDRESSES_H

#include "lanes.h"

enum { HALF = LANES / 2 };

static inline int first_lane(uint32_t mask) { return __builtin_ctz(mask); }

/* Of one lane. */
static inline uint64_t sg_lane_address(const sg_warp *warp, const sg_insn *insn, int i) {
    uint64_t offset = (uint64_t)insn->immediate;
    switch (insn->mode) {
    case ADDRESS_WIDE: return SOURCE(uint64_t, 4)[i] + offset;
    case ADDRESS_NARROW: return (uint32_t)(SOURCE(uint32_t, 4)[i] + (uint32_t)offset);
    case ADDRESS_INDEX_S32:
        return SOURCE(uint64_t, 4)[i] + offset + (uint64_t)((int64_t)SOURCE(int32_t, 5)[i] * insn->target);
    case ADDRESS_INDEX_U32: return SOURCE(uint64_t, 4)[i] + offset + (uint64_t)SOURCE(uint32_t, 5)[i] * (uint32_t)insn->target;
    case ADDRESS_INDEX_64: return SOURCE(uint64_t, 4)[i] + offset + SOURCE(uint64_t, 5)[i] * (uint32_t)insn->target;
    case ADDRESS_FRAME: return warp->frame->local_base + offset;
    default: return offset;
    }
}

/* Of all lanes; those of lanes that are not active may be anything. */
static inline void addresses(sg_warp *warp, const sg_insn *insn, uint64_t *ea) {
    uint64_t offset = (uint64_t)insn->immediate, scale = (uint32_t)insn->target;
    if (insn->mode == ADDRESS_NARROW) {
        const uint32_t *base = SOURCE(uint32_t, 4);
        EACH_LANE ea[i] = (uint32_t)(base[i] + (uint32_t)offset);
        return;
    }
    const uint64_t *base = SOURCE(uint64_t, 4);
    if (insn->mode == ADDRESS_WIDE) {
        EACH_LANE ea[i] = base[i] + offset;
    } else if (insn->mode == ADDRESS_INDEX_S32) {
        const int32_t *index = SOURCE(int32_t, 5);
        EACH_LANE ea[i] = base[i] + offset + (uint64_t)((int64_t)index[i] * (int32_t)scale);
    } else if (insn->mode == ADDRESS_INDEX_U32) {
        const uint32_t *index = SOURCE(uint32_t, 5);
        EACH_LANE ea[i] = base[i] + offset + (uint64_t)index[i] * (uint32_t)scale;
    } else {
        const uint64_t *index = SOURCE(uint64_t, 5);
        EACH_LANE ea[i] = base[i] + offset + index[i] * scale;
    }
}

/* An address that is the same for all lanes by construction. */
static inline bool is_uniform(const sg_insn *insn) {
    return insn->mode == ADDRESS_ABSOLUTE || insn->mode == ADDRESS_FRAME;
}
static inline uint64_t uniform_address(const sg_warp *warp, const sg_insn *insn) {
    return (uint64_t)insn->immediate + (insn->mode == ADDRESS_FRAME ? warp->frame->local_base : 0);
}

static inline void all_addresses(sg_warp *warp, const sg_insn *insn, uint64_t *ea) {
    if (is_uniform(insn)) {
        uint64_t address = uniform_address(warp, insn);
        EACH_LANE ea[i] = address;
    } else {
        addresses(warp, insn, ea);
    }
}

/* Whether every active lane's access lies in [first, last), aligned, and a store in the chunk that is
 * known to be backed. */
static inline bool all_within(const sg_warp *warp, const sg_cached_range *cached, const uint64_t *ea, unsigned size,
                              bool store) {
    uint64_t low = cached->range.first, last = cached->range.last - size, chunk = cached->chunk;
    uint64_t bad = cached->range.last - low < size;
    EACH_LANE {
        uint64_t outside = (ea[i] < low) | (ea[i] > last) | ((ea[i] & (size - 1)) != 0);
        bad |= (outside | (store & (ea[i] >> CHUNK_SHIFT != chunk))) & warp->lanes[i];
    }
    return !bad;
}

static inline sg_cached_range *cached_range(sg_warp *warp, const sg_insn *insn) {
    return &warp->worker->ranges[(size_t)((uintptr_t)insn / sizeof *insn) % RANGES];
}

#endif

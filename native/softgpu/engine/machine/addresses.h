/* Effective addresses of a warp's access, as lowering described them (ADDRESS_*). */
#ifndef SG_MACHINE_ADDRESSES_H
#define SG_MACHINE_ADDRESSES_H

#include "lanes.h"

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

/* Whether a column is `low`, `low + by`, `low + 2 by`, ...; `by` is 0 or 1. */
static inline bool goes_up_32(const uint32_t *column, uint32_t low, uint32_t by);
static inline bool goes_up_64(const uint64_t *column, uint64_t low, uint64_t by) {
    uint64_t differ = 0;
    EACH_LANE differ |= column[i] ^ (low + by * (uint64_t)i);
    return !differ;
}

/* GCC ends this loop with a reduction of the differences in six dependent steps; a mask needs none. */
#if defined(__AVX512F__)
static inline bool goes_up_32(const uint32_t *column, uint32_t low, uint32_t by) {
    const __m512i ramp = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i first = _mm512_add_epi32(_mm512_set1_epi32((int)low), _mm512_and_si512(ramp, _mm512_set1_epi32(0 - (int)by)));
    __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(16 * (int)by));
    return !(_mm512_cmpneq_epi32_mask(first, _mm512_load_si512(column)) |
             _mm512_cmpneq_epi32_mask(second, _mm512_load_si512(column + 16)));
}
#elif defined(__AVX2__)
static inline bool goes_up_32(const uint32_t *column, uint32_t low, uint32_t by) {
    const __m256i ramp = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), step = _mm256_set1_epi32(8 * (int)by);
    __m256i wanted = _mm256_set1_epi32((int)low), same = _mm256_set1_epi32(-1);
    wanted = _mm256_add_epi32(wanted, _mm256_and_si256(ramp, _mm256_set1_epi32(0 - (int)by)));
    for (int i = 0; i < LANES; i += 8, wanted = _mm256_add_epi32(wanted, step))
        same = _mm256_and_si256(same, _mm256_cmpeq_epi32(wanted, _mm256_load_si256((const __m256i *)(column + i))));
    return _mm256_movemask_epi8(same) == -1;
}
#else
static inline bool goes_up_32(const uint32_t *column, uint32_t low, uint32_t by) {
    uint32_t differ = 0;
    EACH_LANE differ |= column[i] ^ (low + by * (uint32_t)i);
    return !differ;
}
#endif

/* base + scale * index of a full warp whose indices are all the same or go up by one: the address of
 * lane 0 and the step; false where they do neither. An index must not wrap on the way. */
static inline bool indexed_run(const sg_warp *warp, const sg_insn *insn, uint64_t *first, uint64_t *step) {
    uint64_t base = *SOURCE(uint64_t, 4) + (uint64_t)insn->immediate, scale = (uint32_t)insn->target;
    if (insn->mode == ADDRESS_INDEX_64) {
        const uint64_t *index = SOURCE(uint64_t, 5);
        uint64_t low = index[0], by = index[1] - low;
        *first = base + low * scale;
        *step = by * scale;
        return by <= 1 && goes_up_64(index, low, by);
    }
    const uint32_t *index = SOURCE(uint32_t, 5);
    uint32_t low = index[0], by = index[1] - low;
    bool is_signed = insn->mode == ADDRESS_INDEX_S32;
    uint64_t extended = is_signed ? (uint64_t)(int64_t)(int32_t)low : low;
    bool wraps = is_signed ? (int32_t)index[LANES - 1] < (int32_t)low : index[LANES - 1] < low;
    *first = base + extended * scale;
    *step = by * scale;
    return by <= 1 && !wraps && goes_up_32(index, low, by);
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

/* The common accesses of a warp: two rows of 16 lanes, each with a base and a step. Neighbours in a row
 * (step: the element), one element for all (step 0), and the rows of a tile 16 wide are such. They are seen
 * from the columns as they are, before 32 addresses of 64 bits are made of them, checked at their ends, and
 * moved as a whole. */
#ifndef SG_MACHINE_ROWS_H
#define SG_MACHINE_ROWS_H

#include "addresses.h"

/* Into each handler, where the size of the access is a constant. */
#define INLINE inline __attribute__((always_inline))

/* Addresses that stand for all: of lane 0 and lane 16. */
typedef struct {
    uint64_t first[2];
    uint64_t step;
} run;

/* Where they lie, for the host. */
typedef struct {
    unsigned char *base[2];
    unsigned step; /* 0 or the size of the access */
} rows;

/* Whether both halves lie in [first, last), aligned. */
static INLINE bool run_within(const run *r, uint64_t first, uint64_t last, unsigned size) {
    uint64_t room = last - first, length = r->step * (HALF - 1) + size;
    return room >= length && r->first[0] - first <= room - length && r->first[1] - first <= room - length &&
           !((r->first[0] | r->first[1]) & (size - 1));
}

static INLINE rows rows_of(const run *r, uintptr_t origin) {
    return (rows){{(unsigned char *)(origin + r->first[0]), (unsigned char *)(origin + r->first[1])}, (unsigned)r->step};
}

/* ---- from columns ---- */

/* Whether 16 lanes of a column go up by `by` from the first, or, where it does not `rise`, are all like it. */
static INLINE bool half_rises_32(const uint32_t *column, uint32_t by, bool rises);
static INLINE bool half_rises_64(const uint64_t *column, uint64_t by, bool rises);

/* GCC ends such a loop with a reduction of the differences in six dependent steps; a mask needs none. `by` is
 * a constant where this is inlined, and so is its multiple. */
#if defined(__AVX512F__)
static INLINE bool half_rises_32(const uint32_t *column, uint32_t by, bool rises) {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i rise = _mm512_and_si512(_mm512_mullo_epi32(lane, _mm512_set1_epi32((int)by)), _mm512_set1_epi32(-rises));
    __m512i wanted = _mm512_add_epi32(_mm512_set1_epi32((int)column[0]), rise);
    return !_mm512_cmpneq_epi32_mask(wanted, _mm512_load_si512(column));
}
static INLINE bool half_rises_64(const uint64_t *column, uint64_t by, bool rises) {
    const __m512i lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), upper = _mm512_set1_epi64(8);
    __m512i step = _mm512_set1_epi64((long long)by), first = _mm512_set1_epi64((long long)column[0]);
    __m512i rising = _mm512_set1_epi64(-rises);
    __m512i low = _mm512_add_epi64(first, _mm512_and_si512(_mm512_mullo_epi64(lane, step), rising));
    __m512i high = _mm512_add_epi64(low, _mm512_and_si512(_mm512_mullo_epi64(upper, step), rising));
    return !(_mm512_cmpneq_epi64_mask(low, _mm512_load_si512(column)) |
             _mm512_cmpneq_epi64_mask(high, _mm512_load_si512(column + 8)));
}
#elif defined(__AVX2__)
static INLINE bool half_rises_32(const uint32_t *column, uint32_t by, bool rises) {
    const __m256i *lanes = (const __m256i *)column, lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i step = _mm256_set1_epi32((int)by), rising = _mm256_set1_epi32(-rises), first = _mm256_set1_epi32((int)column[0]);
    __m256i low = _mm256_add_epi32(first, _mm256_and_si256(_mm256_mullo_epi32(lane, step), rising));
    __m256i high = _mm256_add_epi32(low, _mm256_and_si256(_mm256_slli_epi32(step, 3), rising));
    return _mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi32(low, _mm256_load_si256(lanes)),
                                                 _mm256_cmpeq_epi32(high, _mm256_load_si256(lanes + 1)))) == -1;
}
#else
static INLINE bool half_rises_32(const uint32_t *column, uint32_t by, bool rises) {
    uint32_t differ = 0, step = rises ? by : 0;
    for (int i = 0; i < HALF; i++)
        differ |= column[i] ^ (column[0] + step * (uint32_t)i);
    return !differ;
}
#endif
#if !defined(__AVX512F__)
static INLINE bool half_rises_64(const uint64_t *column, uint64_t by, bool rises) {
    uint64_t differ = 0, step = rises ? by : 0;
    for (int i = 0; i < HALF; i++)
        differ |= column[i] ^ (column[0] + step * (uint64_t)i);
    return !differ;
}
#endif

/* Both halves, and the same way: as lanes 0 and 1 have it. */
static INLINE bool rises_32(const uint32_t *column, uint32_t by, bool *rises) {
    *rises = column[1] != column[0];
    return half_rises_32(column, by, *rises) && half_rises_32(column + HALF, by, *rises);
}
static INLINE bool rises_64(const uint64_t *column, uint64_t by, bool *rises) {
    *rises = column[1] != column[0];
    return half_rises_64(column, by, *rises) && half_rises_64(column + HALF, by, *rises);
}

/* base + scale * index, where the indices of a half are all the same, or go up by one and scale is `size`.
 * One of 32 bits must not wrap on the way. */
static INLINE bool indexed_run(const sg_warp *warp, const sg_insn *insn, unsigned size, run *found) {
    uint64_t base = *SOURCE(uint64_t, 4) + (uint64_t)insn->immediate, scale = (uint32_t)insn->target;
    bool rises, same;
    if (insn->mode == ADDRESS_INDEX_64) {
        const uint64_t *index = SOURCE(uint64_t, 5);
        same = rises_64(index, 1, &rises);
        *found = (run){{base + index[0] * scale, base + index[HALF] * scale}, rises ? scale : 0};
        return same && (!rises || scale == size);
    }
    const uint32_t *index = SOURCE(uint32_t, 5);
    same = rises_32(index, 1, &rises);
    /* Signed ones wrap behind the largest, as do unsigned ones half of all further on. */
    uint32_t sign = insn->mode == ADDRESS_INDEX_S32 ? (uint32_t)1 << 31 : 0, low = index[0] ^ sign, high = index[HALF] ^ sign;
    bool wraps = rises && (low > UINT32_MAX - (HALF - 1) || high > UINT32_MAX - (HALF - 1));
    uint64_t below = sign; /* what the exclusive or added */
    *found = (run){{base + (low - below) * scale, base + (high - below) * scale}, rises ? scale : 0};
    return same && !wraps && (!rises || scale == size);
}

/* Addresses of 32 bits may wrap: such a run is within nothing. */
static INLINE bool narrow_run(const sg_warp *warp, const sg_insn *insn, unsigned size, run *found) {
    const uint32_t *base = SOURCE(uint32_t, 4);
    uint32_t offset = (uint32_t)insn->immediate;
    bool rises, same = rises_32(base, size, &rises);
    *found = (run){{(uint32_t)(base[0] + offset), (uint32_t)(base[HALF] + offset)}, rises ? size : 0};
    return same;
}

static INLINE bool wide_run(const sg_warp *warp, const sg_insn *insn, unsigned size, run *found) {
    const uint64_t *base = SOURCE(uint64_t, 4);
    uint64_t offset = (uint64_t)insn->immediate;
    bool rises, same = rises_64(base, size, &rises);
    *found = (run){{base[0] + offset, base[HALF] + offset}, rises ? size : 0};
    return same;
}

/* Of a full warp. */
static INLINE bool full_run(const sg_warp *warp, const sg_insn *insn, unsigned size, run *found) {
    switch (insn->mode) {
    case ADDRESS_NARROW: return narrow_run(warp, insn, size, found);
    case ADDRESS_WIDE: return wide_run(warp, insn, size, found);
    case ADDRESS_ABSOLUTE: *found = (run){{(uint64_t)insn->immediate, (uint64_t)insn->immediate}, 0}; return true;
    case ADDRESS_FRAME: return false;
    default: return indexed_run(warp, insn, size, found);
    }
}

/* ---- to memory ---- */

/* A store's: whether the chunk that is known to be backed holds both halves. */
static INLINE bool in_known_chunk(const run *r, uint64_t chunk, unsigned size) {
    uint64_t length = r->step * (HALF - 1) + size - 1;
    return r->first[0] >> CHUNK_SHIFT == chunk && (r->first[0] + length) >> CHUNK_SHIFT == chunk &&
           r->first[1] >> CHUNK_SHIFT == chunk && (r->first[1] + length) >> CHUNK_SHIFT == chunk;
}

/* False: look closer. Nothing is wrong yet. */
static INLINE bool reach_rows(sg_warp *warp, const sg_insn *insn, unsigned size, bool store, rows *found) {
    run r;
    if (warp->mask != (uint32_t)FULL_MASK || !full_run(warp, insn, size, &r))
        return false;
    if (insn->space == SPACE_SHARED) {
        *found = rows_of(&r, (uintptr_t)warp->block->shared);
        return run_within(&r, 0, warp->block->grid->shared_bytes, size);
    }
    const sg_cached_range *cached = cached_range(warp, insn);
    if (insn->space > SPACE_GENERIC || !run_within(&r, cached->range.first, cached->range.last, size) ||
        (store && !in_known_chunk(&r, cached->chunk, size)))
        return false;
    *found = rows_of(&r, (uintptr_t)cached->range.host - cached->range.first);
    warp->worker->bytes += r.step ? (uint64_t)size * LANES : size;
    return true;
}

/* The two that kernels have most. Shared memory by an address of 32 bits. */
static INLINE bool reach_shared(const sg_warp *warp, const sg_insn *insn, unsigned size, rows *found) {
    run r;
    if (warp->mask != (uint32_t)FULL_MASK || !narrow_run(warp, insn, size, &r))
        return false;
    *found = rows_of(&r, (uintptr_t)warp->block->shared);
    return run_within(&r, 0, warp->block->grid->shared_bytes, size);
}

/* Global memory by base + size * index, where all indices make one row: lane 0's place. NULL: look closer. */
static INLINE unsigned char *reach_row(sg_warp *warp, const sg_insn *insn, unsigned size, bool store) {
    uint64_t first = *SOURCE(uint64_t, 4) + (uint64_t)insn->immediate, length = (uint64_t)size * LANES;
    if (insn->mode == ADDRESS_INDEX_64) {
        const uint64_t *index = SOURCE(uint64_t, 5);
        first += index[0] * size;
        if (index[HALF] - index[0] != HALF || !half_rises_64(index, 1, true) || !half_rises_64(index + HALF, 1, true))
            return NULL;
    } else {
        const uint32_t *index = SOURCE(uint32_t, 5);
        uint32_t sign = insn->mode == ADDRESS_INDEX_S32 ? (uint32_t)1 << 31 : 0, low = index[0] ^ sign;
        first += ((uint64_t)low - sign) * size;
        if (index[HALF] - index[0] != HALF || low > UINT32_MAX - (LANES - 1) || !half_rises_32(index, 1, true) ||
            !half_rises_32(index + HALF, 1, true))
            return NULL;
    }
    const sg_cached_range *cached = cached_range(warp, insn);
    uint64_t offset = first - cached->range.first, room = cached->range.last - cached->range.first;
    if (warp->mask != (uint32_t)FULL_MASK || room < length || offset > room - length || first & (size - 1) ||
        (store && (first >> CHUNK_SHIFT != cached->chunk || (first + length - 1) >> CHUNK_SHIFT != cached->chunk)))
        return NULL;
    warp->worker->bytes += length;
    return cached->range.host + offset;
}

#endif

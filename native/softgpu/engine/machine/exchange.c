/* Lanes that look at one another: shuffles, votes, matches, reductions. */
#include "lanes.h"

static inline int first_lane(uint32_t mask) { return __builtin_ctz(mask); }

/* The member mask is the same in every lane of a defined program: the first active one's. */
static inline bool meet(sg_warp *warp, const sg_insn *insn, int n) {
    return sg_meet(warp, insn, SOURCE(uint32_t, n)[first_lane(warp->mask)]);
}

/* ---- shfl: operands d, a, b, c, members, p ---- */

typedef enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX } shuffle;

/* The lane to read and whether it lies in range (PTX ISA, shfl). */
static inline int partner(shuffle mode, int lane, uint32_t b, uint32_t c, bool *in_range) {
    int offset = (int)(b & 31), clamp = (int)(c & 31), segment = (int)(c >> 8 & 31);
    int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment, other = 0;
    switch (mode) {
    case SHUFFLE_UP:
        other = lane - offset;
        *in_range = other >= highest; /* with c = 0 this is the segment's lowest lane */
        break;
    case SHUFFLE_DOWN:
        other = lane + offset;
        *in_range = other <= highest;
        break;
    case SHUFFLE_BFLY:
        other = lane ^ offset;
        *in_range = other <= highest;
        break;
    case SHUFFLE_IDX:
        other = lowest | (offset & ~segment);
        *in_range = other <= highest;
        break;
    }
    return *in_range ? other : lane;
}

static inline void exchange(sg_warp *warp, const sg_insn *insn, shuffle mode) {
    if (!meet(warp, insn, 4))
        return;
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    uint32_t found = 0, values[LANES] __attribute__((aligned(64)));
    for (int i = 0; i < LANES; i++) {
        bool in_range;
        values[i] = a[partner(mode, i, b[i], c[i], &in_range) & 31];
        found |= (uint32_t)in_range << i;
    }
    FILL(uint32_t, 0, EACH_LANE out[i] = values[i]);
    if (insn->flags & 1)
        sg_set_predicate(warp, insn, 5, found);
}
HANDLER_FOR(shfl_up) { exchange(warp, insn, SHUFFLE_UP); }
HANDLER_FOR(shfl_down) { exchange(warp, insn, SHUFFLE_DOWN); }
HANDLER_FOR(shfl_bfly) { exchange(warp, insn, SHUFFLE_BFLY); }
HANDLER_FOR(shfl_idx) { exchange(warp, insn, SHUFFLE_IDX); }

/* ---- votes: operands d, p, members; flags: 1 p is negated ---- */

static inline bool vote(sg_warp *warp, const sg_insn *insn, uint32_t *voters, uint32_t *ayes) {
    uint32_t members = SOURCE(uint32_t, 2)[first_lane(warp->mask)];
    if (!sg_meet(warp, insn, members))
        return false;
    *voters = members & warp->mask;
    *ayes = (insn->flags & 1 ? ~PREDICATE(1) : PREDICATE(1)) & *voters;
    return true;
}

#define VOTE(name, expression)                                            \
    HANDLER_FOR(name) {                                                   \
        uint32_t voters, ayes;                                            \
        if (vote(warp, insn, &voters, &ayes))                             \
            sg_set_predicate(warp, insn, 0, (expression) ? ~0u : 0);      \
    }
VOTE(vote_all, ayes == voters)
VOTE(vote_any, ayes != 0)
VOTE(vote_uni, ayes == 0 || ayes == voters)

HANDLER_FOR(vote_ballot) {
    uint32_t voters, ayes;
    if (vote(warp, insn, &voters, &ayes))
        FILL(uint32_t, 0, EACH_LANE out[i] = ayes);
}

/* ---- match: operands d, a, members, p ---- */

#define MATCH(T, suffix)                                                  \
    HANDLER_FOR(match_any_##suffix) {                                     \
        if (!meet(warp, insn, 2))                                         \
            return;                                                       \
        const T *a = SOURCE(T, 1);                                        \
        uint32_t members = SOURCE(uint32_t, 2)[first_lane(warp->mask)] & warp->mask; \
        uint32_t same[LANES] __attribute__((aligned(64)));                \
        for (int i = 0; i < LANES; i++) {                                 \
            same[i] = 0;                                                  \
            for (uint32_t left = members; left; left &= left - 1)         \
                same[i] |= (uint32_t)(a[first_lane(left)] == a[i]) << first_lane(left); \
        }                                                                 \
        FILL(uint32_t, 0, EACH_LANE out[i] = same[i]);                    \
    }                                                                     \
    HANDLER_FOR(match_all_##suffix) {                                     \
        if (!meet(warp, insn, 2))                                         \
            return;                                                       \
        const T *a = SOURCE(T, 1);                                        \
        uint32_t members = SOURCE(uint32_t, 2)[first_lane(warp->mask)] & warp->mask; \
        bool equal = true;                                                \
        for (uint32_t left = members; left; left &= left - 1)             \
            equal &= a[first_lane(left)] == a[first_lane(members)];       \
        FILL(uint32_t, 0, EACH_LANE out[i] = equal ? members : 0);        \
        if (insn->flags & 1)                                              \
            sg_set_predicate(warp, insn, 3, equal ? ~0u : 0);             \
    }
MATCH(uint32_t, 32)
MATCH(uint64_t, 64)

/* redux: operands d, a, members; variant: sg_word of the operator, flags: 1 signed. */
static inline uint32_t reduce(uint8_t operation, bool is_signed, uint32_t x, uint32_t y) {
    switch (operation) {
    case W_add: return x + y;
    case W_and: return x & y;
    case W_or: return x | y;
    case W_xor: return x ^ y;
    case W_min: return is_signed ? ((int32_t)x < (int32_t)y ? x : y) : x < y ? x : y;
    default: return is_signed ? ((int32_t)x > (int32_t)y ? x : y) : x > y ? x : y;
    }
}

HANDLER_FOR(redux) {
    if (!meet(warp, insn, 2))
        return;
    const uint32_t *a = SOURCE(uint32_t, 1);
    uint32_t members = SOURCE(uint32_t, 2)[first_lane(warp->mask)] & warp->mask;
    uint32_t left = members ? members : warp->mask, value = a[first_lane(left)];
    for (left &= left - 1; left; left &= left - 1)
        value = reduce(insn->variant, insn->flags & 1, value, a[first_lane(left)]);
    FILL(uint32_t, 0, EACH_LANE out[i] = value);
}

HANDLER_FOR(activemask) {
    uint32_t mask = warp->mask;
    FILL(uint32_t, 0, EACH_LANE out[i] = mask);
}

/* elect: operands d, p, members: the lowest member leads. */
HANDLER_FOR(elect) {
    if (!meet(warp, insn, 2))
        return;
    uint32_t members = SOURCE(uint32_t, 2)[first_lane(warp->mask)] & warp->mask;
    uint32_t leader = (uint32_t)first_lane(members ? members : warp->mask);
    FILL(uint32_t, 0, EACH_LANE out[i] = leader);
    sg_set_predicate(warp, insn, 1, 1u << leader);
}

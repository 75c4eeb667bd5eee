/* Moves, selections, packing, comparisons, and what is done with predicates. */
#include "lanes.h"

UNARY(mov_32, uint32_t, uint32_t, a)
UNARY(mov_64, uint64_t, uint64_t, a)
HANDLER_FOR(mov_pred) { sg_set_predicate(warp, insn, 0, PREDICATE(1)); }

static inline const uint32_t *spread(sg_warp *warp, uint32_t bits) {
    static const uint32_t bit[LANES] __attribute__((aligned(64))) = {
        1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
        1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
        1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};
    uint32_t *lanes = warp->chosen;
    EACH_LANE lanes[i] = (bits & bit[i]) == bit[i] ? ~0u : 0;
    return lanes;
}

/* flags: 1 the predicate is negated. */
#define SELECT(name, T)                                                   \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        const uint32_t *chosen = spread(warp, insn->flags & 1 ? ~PREDICATE(3) : PREDICATE(3)); \
        FILL(T, 0, EACH_LANE out[i] = chosen[i] ? a[i] : b[i]);           \
    }
SELECT(selp_32, uint32_t)
SELECT(selp_64, uint64_t)

#define SELECT_BY(name, T, C, condition)                                  \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        const C *c_ = SOURCE(C, 3);                                       \
        FILL(T, 0, EACH_LANE {                                            \
            C c = c_[i];                                                  \
            out[i] = (condition) ? a[i] : b[i];                           \
        });                                                               \
    }
SELECT_BY(slct_32_s32, uint32_t, int32_t, c >= 0)
SELECT_BY(slct_64_s32, uint64_t, int32_t, c >= 0)
SELECT_BY(slct_32_f32, uint32_t, float, c >= 0)
SELECT_BY(slct_64_f32, uint64_t, float, c >= 0)

/* pack: a | b << immediate; unpack: `variant` bits of a from `immediate` on. */
HANDLER_FOR(pack_32) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2);
    uint32_t shift = (uint32_t)insn->immediate;
    FILL(uint32_t, 0, EACH_LANE out[i] = a[i] | b[i] << shift);
}
HANDLER_FOR(pack_64) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2);
    FILL(uint64_t, 0, EACH_LANE out[i] = a[i] | (uint64_t)b[i] << 32);
}
HANDLER_FOR(unpack_32) {
    const uint32_t *a = SOURCE(uint32_t, 1);
    uint32_t shift = (uint32_t)insn->immediate, kept = insn->variant == 32 ? ~0u : (1u << insn->variant) - 1;
    FILL(uint32_t, 0, EACH_LANE out[i] = a[i] >> shift & kept);
}
HANDLER_FOR(unpack_64) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint32_t shift = (uint32_t)insn->immediate, kept = insn->variant == 32 ? ~0u : (1u << insn->variant) - 1;
    FILL(uint32_t, 0, EACH_LANE out[i] = (uint32_t)(a[i] >> shift) & kept);
}

/* ---- comparisons: a predicate of a and b ---- */

#define COMPARE(name, T, expression)                                      \
    HANDLER_FOR(name) {                                                   \
        const T *a_ = SOURCE(T, 1), *b_ = SOURCE(T, 2);                   \
        uint32_t *result = warp->chosen;                                  \
        EACH_LANE {                                                       \
            T a = a_[i], b = b_[i];                                       \
            result[i] = (expression) ? ~0u : 0;                           \
        }                                                                 \
        sg_set_predicate(warp, insn, 0, sg_gather_bits(result));          \
    }
COMPARE(eq_32, uint32_t, a == b)
COMPARE(ne_32, uint32_t, a != b)
COMPARE(eq_64, uint64_t, a == b)
COMPARE(ne_64, uint64_t, a != b)
COMPARE(lt_u32, uint32_t, a < b)
COMPARE(le_u32, uint32_t, a <= b)
COMPARE(lt_s32, int32_t, a < b)
COMPARE(le_s32, int32_t, a <= b)
COMPARE(lt_u64, uint64_t, a < b)
COMPARE(le_u64, uint64_t, a <= b)
COMPARE(lt_s64, int64_t, a < b)
COMPARE(le_s64, int64_t, a <= b)

/* The unordered ones (ltu, ...) also hold where an operand is no number. */
#define UNORDERED (a != a || b != b)
#define COMPARE_REAL(T, suffix)                                           \
    COMPARE(eq_##suffix, T, a == b)                                       \
    COMPARE(ne_##suffix, T, a < b || a > b)                               \
    COMPARE(lt_##suffix, T, a < b)                                        \
    COMPARE(le_##suffix, T, a <= b)                                       \
    COMPARE(equ_##suffix, T, a == b || UNORDERED)                         \
    COMPARE(neu_##suffix, T, a != b)                                      \
    COMPARE(ltu_##suffix, T, a < b || UNORDERED)                          \
    COMPARE(leu_##suffix, T, a <= b || UNORDERED)                         \
    COMPARE(num_##suffix, T, !UNORDERED)                                  \
    COMPARE(nan_##suffix, T, UNORDERED)
COMPARE_REAL(float, f32)
COMPARE_REAL(double, f64)

/* setp.lt.and p|q, a, b, c: operand 2 holds the comparison; q, where wanted, its complement
 * combined the same way. variant: sg_word of the operator or 0; flags: 1 c negated, 2 with q. */
static uint32_t combine(uint8_t operation, uint32_t value, uint32_t other) {
    switch (operation) {
    case W_and: return value & other;
    case W_or: return value | other;
    case W_xor: return value ^ other;
    default: return value;
    }
}

HANDLER_FOR(combine_predicate) {
    uint32_t compared = PREDICATE(2);
    uint32_t other = insn->variant ? (insn->flags & 1 ? ~PREDICATE(3) : PREDICATE(3)) : 0;
    sg_set_predicate(warp, insn, 0, combine(insn->variant, compared, other));
    if (insn->flags & 2)
        sg_set_predicate(warp, insn, 1, combine(insn->variant, ~compared, other));
}

/* set: `immediate` where the comparison holds, else zero. */
HANDLER_FOR(predicate_to_word) {
    const uint32_t *chosen = spread(warp, PREDICATE(1));
    uint32_t word = (uint32_t)insn->immediate;
    FILL(uint32_t, 0, EACH_LANE out[i] = chosen[i] & word);
}

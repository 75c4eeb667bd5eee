/* Bitwise operations, shifts and bit fields. */
#include "lanes.h"

BINARY(and_32, uint32_t, uint32_t, a & b)
BINARY(and_64, uint64_t, uint64_t, a & b)
BINARY(or_32, uint32_t, uint32_t, a | b)
BINARY(or_64, uint64_t, uint64_t, a | b)
BINARY(xor_32, uint32_t, uint32_t, a ^ b)
BINARY(xor_64, uint64_t, uint64_t, a ^ b)
UNARY(not_16, uint32_t, uint32_t, (uint16_t)~a)
UNARY(not_32, uint32_t, uint32_t, ~a)
UNARY(not_64, uint64_t, uint64_t, ~a)
UNARY(cnot_32, uint32_t, uint32_t, a == 0)
UNARY(cnot_64, uint64_t, uint64_t, a == 0)

HANDLER_FOR(and_pred) { sg_set_predicate(warp, insn, 0, PREDICATE(1) & PREDICATE(2)); }
HANDLER_FOR(or_pred) { sg_set_predicate(warp, insn, 0, PREDICATE(1) | PREDICATE(2)); }
HANDLER_FOR(xor_pred) { sg_set_predicate(warp, insn, 0, PREDICATE(1) ^ PREDICATE(2)); }
HANDLER_FOR(not_pred) { sg_set_predicate(warp, insn, 0, ~PREDICATE(1)); }

/* Shift amounts are u32 and clamp: 32 and more shift everything out. */
#define SHIFT(name, S, T, bits, expression)                               \
    HANDLER_FOR(name) {                                                   \
        const T *a_ = SOURCE(T, 1);                                       \
        const uint32_t *n_ = SOURCE(uint32_t, 2);                         \
        FILL(S, 0, EACH_LANE {                                            \
            T a = a_[i];                                                  \
            uint32_t n = n_[i];                                           \
            out[i] = (S)(expression);                                     \
        });                                                               \
    }
SHIFT(shl_16, uint32_t, uint32_t, 16, n > 15 ? 0 : (uint16_t)(a << n))
SHIFT(shl_32, uint32_t, uint32_t, 32, n > 31 ? 0 : a << n)
SHIFT(shl_64, uint64_t, uint64_t, 64, n > 63 ? 0 : a << n)
SHIFT(shr_u16, uint32_t, uint32_t, 16, n > 15 ? 0 : a >> n)
SHIFT(shr_u32, uint32_t, uint32_t, 32, n > 31 ? 0 : a >> n)
SHIFT(shr_u64, uint64_t, uint64_t, 64, n > 63 ? 0 : a >> n)
SHIFT(shr_s16, uint32_t, uint32_t, 16, (uint16_t)((int16_t)a >> (n > 15 ? 15 : n)))
SHIFT(shr_s32, uint32_t, int32_t, 32, a >> (n > 31 ? 31 : n))
SHIFT(shr_s64, uint64_t, int64_t, 64, a >> (n > 63 ? 63 : n))

/* shf: the 64-bit value b:a, shifted, one half of it. */
#define CLAMP32(n) ((n) > 32 ? 32 : (n))
#define JOINED ((uint64_t)b << 32 | a)
TERNARY(shf_l_clamp, uint32_t, uint32_t, CLAMP32(c) == 32 ? a : (JOINED << CLAMP32(c)) >> 32)
TERNARY(shf_l_wrap, uint32_t, uint32_t, (JOINED << (c & 31)) >> 32)
TERNARY(shf_r_clamp, uint32_t, uint32_t, JOINED >> CLAMP32(c))
TERNARY(shf_r_wrap, uint32_t, uint32_t, JOINED >> (c & 31))

/* One 64-bit source, 32-bit result. */
#define COUNT64(name, expression)                                         \
    HANDLER_FOR(name) {                                                   \
        const uint64_t *a_ = SOURCE(uint64_t, 1);                         \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {               \
            uint64_t a = a_[i];                                           \
            out[i] = (uint32_t)(expression);                              \
        });                                                               \
    }
UNARY(popc_32, uint32_t, uint32_t, __builtin_popcount(a))
COUNT64(popc_64, __builtin_popcountll(a))
UNARY(clz_32, uint32_t, uint32_t, a ? __builtin_clz(a) : 32)
COUNT64(clz_64, a ? __builtin_clzll(a) : 64)

static inline uint32_t reverse(uint32_t a) {
    a = __builtin_bswap32(a);
    a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    return (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
}
UNARY(brev_32, uint32_t, uint32_t, reverse(a))
UNARY(brev_64, uint64_t, uint64_t, (uint64_t)reverse((uint32_t)a) << 32 | reverse((uint32_t)(a >> 32)))

/* bfind: the position of the highest bit that differs from the sign; ~0 where there is none. */
#define HIGHEST32(x) ((x) ? 31u - (uint32_t)__builtin_clz(x) : ~0u)
#define HIGHEST64(x) ((x) ? 63u - (uint32_t)__builtin_clzll(x) : ~0u)
#define FLIP32(a) ((uint32_t)(a) ^ (uint32_t)((int32_t)(a) >> 31))
#define FLIP64(a) ((uint64_t)(a) ^ (uint64_t)((int64_t)(a) >> 63))
#define SHIFTAMOUNT(found, top) ((found) == ~0u ? ~0u : (top) - (found))
UNARY(bfind_u32, uint32_t, uint32_t, HIGHEST32(a))
UNARY(bfind_s32, uint32_t, uint32_t, HIGHEST32(FLIP32(a)))
COUNT64(bfind_u64, HIGHEST64(a))
COUNT64(bfind_s64, HIGHEST64(FLIP64(a)))
UNARY(bfind_shift_u32, uint32_t, uint32_t, SHIFTAMOUNT(HIGHEST32(a), 31))
UNARY(bfind_shift_s32, uint32_t, uint32_t, SHIFTAMOUNT(HIGHEST32(FLIP32(a)), 31))
COUNT64(bfind_shift_u64, SHIFTAMOUNT(HIGHEST64(a), 63))
COUNT64(bfind_shift_s64, SHIFTAMOUNT(HIGHEST64(FLIP64(a)), 63))

/* Bit fields: position and length are the low bytes of b and c. */
static inline uint64_t extract(uint64_t a, unsigned position, unsigned length, unsigned bits, bool is_signed) {
    if (length == 0)
        return 0;
    uint64_t top = is_signed ? a >> (position + length - 1 < bits ? position + length - 1 : bits - 1) & 1 : 0;
    uint64_t field = position < bits ? a >> position : 0;
    unsigned kept = position >= bits ? 0 : bits - position;
    kept = length < kept ? length : kept;
    uint64_t mask = kept >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << kept) - 1;
    return (field & mask) | (top ? ~mask : 0);
}

#define EXTRACT(name, T, bits, is_signed)                                 \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1);                                        \
        const uint32_t *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3); \
        FILL(T, 0, for (int i = 0; i < LANES; i++) out[i] =               \
            (T)extract(a[i], b[i] & 255, c[i] & 255, bits, is_signed));   \
    }
EXTRACT(bfe_u32, uint32_t, 32, false)
EXTRACT(bfe_s32, uint32_t, 32, true)
EXTRACT(bfe_u64, uint64_t, 64, false)
EXTRACT(bfe_s64, uint64_t, 64, true)

static inline uint64_t insert(uint64_t a, uint64_t b, unsigned position, unsigned length, unsigned bits) {
    if (position >= bits || !length)
        return b;
    uint64_t mask = length >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << length) - 1;
    return (b & ~(mask << position)) | (a & mask) << position;
}

#define INSERT(name, T, bits)                                             \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        const uint32_t *c = SOURCE(uint32_t, 3), *d = SOURCE(uint32_t, 4); \
        FILL(T, 0, for (int i = 0; i < LANES; i++) out[i] =               \
            (T)insert(a[i], b[i], c[i] & 255, d[i] & 255, bits));         \
    }
INSERT(bfi_32, uint32_t, 32)
INSERT(bfi_64, uint64_t, 64)

/* fns: the n-th set bit of a, counted from position b, upwards (n > 0) or downwards. */
static inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset) {
    if (offset == 0)
        return base < 32 && (mask >> base & 1) ? base : ~0u;
    int step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? offset : -(int64_t)offset;
    for (int64_t at = base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return ~0u;
}

HANDLER_FOR(fns) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) out[i] = find_nth(a[i], b[i], (int32_t)c[i]));
}

static inline uint32_t mask_of(uint32_t a, uint32_t b) {
    uint64_t ones = b >= 32 ? ~(uint64_t)0 : ((uint64_t)1 << b) - 1;
    return a >= 32 ? 0 : (uint32_t)(ones << a);
}
BINARY(bmsk_clamp, uint32_t, uint32_t, mask_of(a, b))
BINARY(bmsk_wrap, uint32_t, uint32_t, mask_of(a & 31, b & 31))

/* szext: the low b bits of a, sign- or zero-extended. flags: 1 signed, 2 b wraps at 32, else clamps. */
static inline uint32_t extend(uint32_t a, uint32_t bits, bool is_signed) {
    if (bits == 0)
        return 0;
    uint32_t cut = bits > 31 ? 0 : 32 - bits;
    return is_signed ? (uint32_t)((int32_t)(a << cut) >> cut) : a << cut >> cut;
}
HANDLER_FOR(szext) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2);
    uint32_t kept = insn->flags & 2 ? 31 : ~0u;
    FILL(uint32_t, 0, EACH_LANE out[i] = extend(a[i], b[i] & kept, insn->flags & 1));
}

/* lop3: immediate is the truth table, bit 4a + 2b + c. */
HANDLER_FOR(lop3) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    uint32_t chosen[8];
    for (int bit = 0; bit < 8; bit++)
        chosen[bit] = insn->immediate >> bit & 1 ? ~0u : 0;
    FILL(uint32_t, 0, EACH_LANE {
        uint32_t x = a[i], y = b[i], z = c[i];
        out[i] = (chosen[0] & ~x & ~y & ~z) | (chosen[1] & ~x & ~y & z) | (chosen[2] & ~x & y & ~z) |
                 (chosen[3] & ~x & y & z) | (chosen[4] & x & ~y & ~z) | (chosen[5] & x & ~y & z) |
                 (chosen[6] & x & y & ~z) | (chosen[7] & x & y & z);
    });
}

/* prmt: four selectors of four bits; bit 3 of a selector replicates the byte's sign. */
static inline uint32_t selectors_of(uint32_t c, int mode) {
    static const uint16_t table[6][4] = {
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    return mode == 0 ? c : table[mode - 1][c & 3];
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selectors) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t selector = selectors >> (4 * k) & 15;
        uint8_t byte = (uint8_t)(bytes >> (8 * (selector & 7)));
        if (selector & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= (uint32_t)byte << (8 * k);
    }
    return result;
}

HANDLER_FOR(prmt) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) out[i] =
        permute(a[i], b[i], selectors_of(c[i], insn->variant)));
}

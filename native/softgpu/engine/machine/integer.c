/* Integer arithmetic. Columns hold 16-bit values zero-extended, so results are cut back. */
#include "lanes.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

#define LOW16(x) ((uint16_t)(x))
#define S16(x) ((int16_t)(x))
#define S32(x) ((int32_t)(x))
#define S64(x) ((int64_t)(x))

/* The six types of most families: expression in a, b (and c) of the type itself. */
#define NARROW_BINARY(name, T, expression)                \
    HANDLER_FOR(name) {                                   \
        const uint32_t *a_ = SOURCE(uint32_t, 1), *b_ = SOURCE(uint32_t, 2); \
        FILL(uint32_t, 0, EACH_LANE {                     \
            T a = (T)a_[i], b = (T)b_[i];                 \
            out[i] = (uint16_t)(expression);              \
        });                                               \
    }
#define NARROW_TERNARY(name, T, expression)               \
    HANDLER_FOR(name) {                                   \
        const uint32_t *a_ = SOURCE(uint32_t, 1), *b_ = SOURCE(uint32_t, 2), *c_ = SOURCE(uint32_t, 3); \
        FILL(uint32_t, 0, EACH_LANE {                     \
            T a = (T)a_[i], b = (T)b_[i], c = (T)c_[i];   \
            out[i] = (uint16_t)(expression);              \
        });                                               \
    }

BINARY(add_16, uint32_t, uint32_t, LOW16(a + b))
BINARY(add_32, uint32_t, uint32_t, a + b)
BINARY(add_64, uint64_t, uint64_t, a + b)
BINARY(sub_16, uint32_t, uint32_t, LOW16(a - b))
BINARY(sub_32, uint32_t, uint32_t, a - b)
BINARY(sub_64, uint64_t, uint64_t, a - b)
BINARY(mul_lo_16, uint32_t, uint32_t, LOW16(a * b))
BINARY(mul_lo_32, uint32_t, uint32_t, a * b)
BINARY(mul_lo_64, uint64_t, uint64_t, a * b)
TERNARY(mad_lo_16, uint32_t, uint32_t, LOW16(a * b + c))
TERNARY(mad_lo_32, uint32_t, uint32_t, a * b + c)
TERNARY(mad_lo_64, uint64_t, uint64_t, a * b + c)
UNARY(neg_16, uint32_t, uint32_t, LOW16(0u - a))
UNARY(neg_32, uint32_t, uint32_t, 0u - a)
UNARY(neg_64, uint64_t, uint64_t, 0u - a)

NARROW_BINARY(mul_hi_u16, uint16_t, ((uint32_t)a * b) >> 16)
NARROW_BINARY(mul_hi_s16, int16_t, ((int32_t)a * b) >> 16)
BINARY(mul_hi_u32, uint32_t, uint32_t, ((uint64_t)a * b) >> 32)
BINARY(mul_hi_s32, uint32_t, int32_t, ((int64_t)a * b) >> 32)
BINARY(mul_hi_u64, uint64_t, uint64_t, (u128)a * b >> 64)
BINARY(mul_hi_s64, uint64_t, int64_t, (s128)a * b >> 64)

NARROW_TERNARY(mad_hi_u16, uint16_t, (((uint32_t)a * b) >> 16) + c)
NARROW_TERNARY(mad_hi_s16, int16_t, (((int32_t)a * b) >> 16) + c)
TERNARY(mad_hi_u32, uint32_t, uint32_t, (uint32_t)(((uint64_t)a * b) >> 32) + c)
TERNARY(mad_hi_s32, uint32_t, int32_t, (uint32_t)(((int64_t)a * b) >> 32) + (uint32_t)c)
TERNARY(mad_hi_u64, uint64_t, uint64_t, (uint64_t)((u128)a * b >> 64) + c)
TERNARY(mad_hi_s64, uint64_t, int64_t, (uint64_t)((s128)a * b >> 64) + (uint64_t)c)

BINARY(mul_wide_u16, uint32_t, uint32_t, a * b)
BINARY(mul_wide_s16, uint32_t, uint32_t, S16(a) * S16(b))

/* The results are wider than the sources: columns of two widths. */
#define WIDE(name, T)                                                     \
    HANDLER_FOR(mul_wide_##name) {                                        \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        FILL(uint64_t, 0, EACH_LANE out[i] =                              \
            ~(T)0 < (T)1 ? (uint64_t)((int64_t)a[i] * b[i]) : (uint64_t)a[i] * (uint64_t)b[i]); \
    }                                                                     \
    HANDLER_FOR(mad_wide_##name) {                                        \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        const uint64_t *c = SOURCE(uint64_t, 3);                          \
        FILL(uint64_t, 0, EACH_LANE out[i] =                              \
            (~(T)0 < (T)1 ? (uint64_t)((int64_t)a[i] * b[i]) : (uint64_t)a[i] * (uint64_t)b[i]) + c[i]); \
    }
WIDE(u32, uint32_t)
WIDE(s32, int32_t)
TERNARY(mad_wide_u16, uint32_t, uint32_t, a * b + c)
TERNARY(mad_wide_s16, uint32_t, uint32_t, (uint32_t)(S16(a) * S16(b)) + c)

#define LOW24U(x) ((x)&0xffffffu)
#define LOW24S(x) ((int32_t)((uint32_t)(x) << 8) >> 8)
BINARY(mul24_lo_u32, uint32_t, uint32_t, LOW24U(a) * LOW24U(b))
BINARY(mul24_lo_s32, uint32_t, uint32_t, (uint64_t)((int64_t)LOW24S(a) * LOW24S(b)))
BINARY(mul24_hi_u32, uint32_t, uint32_t, ((uint64_t)LOW24U(a) * LOW24U(b)) >> 16)
BINARY(mul24_hi_s32, uint32_t, uint32_t, ((int64_t)LOW24S(a) * LOW24S(b)) >> 16)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
NARROW_BINARY(min_u16, uint16_t, MIN(a, b))
NARROW_BINARY(min_s16, int16_t, MIN(a, b))
BINARY(min_u32, uint32_t, uint32_t, MIN(a, b))
BINARY(min_s32, uint32_t, int32_t, MIN(a, b))
BINARY(min_u64, uint64_t, uint64_t, MIN(a, b))
BINARY(min_s64, uint64_t, int64_t, MIN(a, b))
NARROW_BINARY(max_u16, uint16_t, MAX(a, b))
NARROW_BINARY(max_s16, int16_t, MAX(a, b))
BINARY(max_u32, uint32_t, uint32_t, MAX(a, b))
BINARY(max_s32, uint32_t, int32_t, MAX(a, b))
BINARY(max_u64, uint64_t, uint64_t, MAX(a, b))
BINARY(max_s64, uint64_t, int64_t, MAX(a, b))

NARROW_TERNARY(sad_u16, uint16_t, c + (a < b ? b - a : a - b))
NARROW_TERNARY(sad_s16, int16_t, c + (a < b ? b - a : a - b))
TERNARY(sad_u32, uint32_t, uint32_t, c + (a < b ? b - a : a - b))
TERNARY(sad_s32, uint32_t, int32_t, (uint32_t)c + (a < b ? (uint32_t)b - (uint32_t)a : (uint32_t)a - (uint32_t)b))
TERNARY(sad_u64, uint64_t, uint64_t, c + (a < b ? b - a : a - b))
TERNARY(sad_s64, uint64_t, int64_t, (uint64_t)c + (a < b ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b))

/* Division by zero has no defined result in PTX and does not trap: all ones, and the dividend
 * as the remainder, as cards of this kind give. The smallest value over -1 wraps. */
#define DIVIDE_UNSIGNED(a, b) ((b) ? (a) / (b) : ~((a) ^ (a)))
#define REMAIN_UNSIGNED(a, b) ((b) ? (a) % (b) : (a))
#define DIVIDE_SIGNED(U, a, b) ((b) == 0 ? (U)-1 : (b) == -1 ? (U)0 - (U)(a) : (U)((a) / (b)))
#define REMAIN_SIGNED(U, a, b) ((b) == 0 ? (U)(a) : (b) == -1 ? (U)0 : (U)((a) % (b)))
NARROW_BINARY(div_u16, uint16_t, DIVIDE_UNSIGNED((uint32_t)a, (uint32_t)b))
NARROW_BINARY(div_s16, int16_t, DIVIDE_SIGNED(uint32_t, (int32_t)a, (int32_t)b))
BINARY(div_u32, uint32_t, uint32_t, DIVIDE_UNSIGNED(a, b))
BINARY(div_s32, uint32_t, int32_t, DIVIDE_SIGNED(uint32_t, a, b))
BINARY(div_u64, uint64_t, uint64_t, DIVIDE_UNSIGNED(a, b))
BINARY(div_s64, uint64_t, int64_t, DIVIDE_SIGNED(uint64_t, a, b))
NARROW_BINARY(rem_u16, uint16_t, REMAIN_UNSIGNED((uint32_t)a, (uint32_t)b))
NARROW_BINARY(rem_s16, int16_t, REMAIN_SIGNED(uint32_t, (int32_t)a, (int32_t)b))
BINARY(rem_u32, uint32_t, uint32_t, REMAIN_UNSIGNED(a, b))
BINARY(rem_s32, uint32_t, int32_t, REMAIN_SIGNED(uint32_t, a, b))
BINARY(rem_u64, uint64_t, uint64_t, REMAIN_UNSIGNED(a, b))
BINARY(rem_s64, uint64_t, int64_t, REMAIN_SIGNED(uint64_t, a, b))

UNARY(abs_s16, uint32_t, uint32_t, LOW16(S16(a) < 0 ? 0 - a : a))
UNARY(abs_s32, uint32_t, uint32_t, S32(a) < 0 ? 0 - a : a)
UNARY(abs_s64, uint64_t, uint64_t, S64(a) < 0 ? 0 - a : a)

/* Two of 16 bits. */
#define PAIR(name, T, expression)                                         \
    static inline uint32_t name##_of(uint32_t x, uint32_t y) {            \
        uint32_t both = 0;                                                \
        for (int h = 0; h < 32; h += 16) {                                \
            T a = (T)(x >> h), b = (T)(y >> h);                           \
            both |= (uint32_t)(uint16_t)(expression) << h;                \
        }                                                                 \
        return both;                                                      \
    }                                                                     \
    BINARY(name, uint32_t, uint32_t, name##_of(a, b))
PAIR(add_16x2, uint16_t, a + b)
PAIR(min_u16x2, uint16_t, MIN(a, b))
PAIR(max_u16x2, uint16_t, MAX(a, b))
PAIR(min_s16x2, int16_t, MIN(a, b))
PAIR(max_s16x2, int16_t, MAX(a, b))

#define CLAMP_S32(x) ((x) > INT32_MAX ? INT32_MAX : (x) < INT32_MIN ? INT32_MIN : (x))
BINARY(add_sat_s32, uint32_t, int32_t, CLAMP_S32((int64_t)a + b))
BINARY(sub_sat_s32, uint32_t, int32_t, CLAMP_S32((int64_t)a - b))
TERNARY(mad24_hi_sat_s32, uint32_t, int32_t, CLAMP_S32((((int64_t)LOW24S(a) * LOW24S(b)) >> 16) + c))
TERNARY(mad_hi_sat_s32, uint32_t, int32_t, CLAMP_S32((((int64_t)a * b) >> 32) + c))

/* Carry chains. flags: 1 takes the carry in, 2 sets it. For subtraction the carry is a
 * borrow, as sub.cc and subc define it. */
#define CARRY(name, T, W, sign)                                           \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1), *b = SOURCE(T, 2);                     \
        uint32_t in = insn->flags & 1 ? warp->carry : 0, carried = 0;     \
        FILL(T, 0, for (int i = 0; i < LANES; i++) {                      \
            W wide = (W)a[i] sign b[i] sign(in >> i & 1);                 \
            out[i] = (T)wide;                                             \
            carried |= (uint32_t)(wide >> (8 * sizeof(T)) & 1) << i;      \
        });                                                               \
        if (insn->flags & 2)                                              \
            warp->carry = (carried & warp->mask) | (warp->carry & ~warp->mask); \
    }
CARRY(carry_add_32, uint32_t, uint64_t, +)
CARRY(carry_add_64, uint64_t, u128, +)
CARRY(carry_sub_32, uint32_t, uint64_t, -)
CARRY(carry_sub_64, uint64_t, u128, -)

/* Dot products of bytes. flags: 1 a is signed, 2 b is signed, 4 the high half of b (dp2a). */
static inline int32_t part(uint32_t value, int index, int bits, bool is_signed) {
    uint32_t shifted = value >> (index * bits) << (32 - bits);
    return is_signed ? (int32_t)shifted >> (32 - bits) : (int32_t)(shifted >> (32 - bits));
}

HANDLER_FOR(dp4a) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {
        uint32_t sum = c[i];
        for (int k = 0; k < 4; k++)
            sum += (uint32_t)(part(a[i], k, 8, insn->flags & 1) * part(b[i], k, 8, insn->flags & 2));
        out[i] = sum;
    });
}

HANDLER_FOR(dp2a) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    int half = insn->flags & 4 ? 2 : 0;
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {
        uint32_t sum = c[i];
        for (int k = 0; k < 2; k++)
            sum += (uint32_t)part(a[i], k, 16, insn->flags & 1) * (uint32_t)part(b[i], k + half, 8, insn->flags & 2);
        out[i] = sum;
    });
}

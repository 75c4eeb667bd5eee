/* f16 and bf16 arithmetic: exact in double, or rounded to odd there, then rounded once. The
 * x2 forms work on two halves of a 32-bit lane. */
#include "halves.h"
#include "lanes.h"


static inline double wide_f16(uint32_t half) { return (double)sg_float_of_f16(half & 0xffff); }
static inline double wide_bf16(uint32_t half) { return (double)sg_float_of_bf16(half & 0xffff); }

/* Sums of bf16 may not be exact in double: 2^100 + 2^-100. */
static inline double add_exact(double a, double b) { return sg_sum_to_odd(a, b); }
static inline double fma_exact(double a, double b, double c) { return sg_sum_to_odd(a * b, c); }
static inline double min_exact(double a, double b) {
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
static inline double max_exact(double a, double b) {
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}

/* flags: 1 min and max give NaN when an operand is one. */
static inline double min_any(double a, double b, unsigned flags) {
    return (flags & 1) && (a != a || b != b) ? (double)NAN : min_exact(a, b);
}
static inline double max_any(double a, double b, unsigned flags) {
    return (flags & 1) && (a != a || b != b) ? (double)NAN : max_exact(a, b);
}

#define ONE_HALF(name, f, expression)                                     \
    HANDLER_FOR(name##_##f) {                                             \
        const uint32_t *a_ = SOURCE(uint32_t, 1), *b_ = SOURCE(uint32_t, 2), *c_ = SOURCE(uint32_t, 3); \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {               \
            double a = wide_##f(a_[i]), b = wide_##f(b_[i]), c = wide_##f(c_[i]); \
            (void)b, (void)c;                                             \
            out[i] = sg_##f##_of(expression, insn->round);                \
        });                                                               \
    }
#define TWO_HALVES(name, f, expression)                                   \
    HANDLER_FOR(name##_##f##x2) {                                         \
        const uint32_t *a_ = SOURCE(uint32_t, 1), *b_ = SOURCE(uint32_t, 2), *c_ = SOURCE(uint32_t, 3); \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {               \
            uint32_t both = 0;                                            \
            for (int h = 0; h < 32; h += 16) {                            \
                double a = wide_##f(a_[i] >> h), b = wide_##f(b_[i] >> h), c = wide_##f(c_[i] >> h); \
                (void)b, (void)c;                                         \
                both |= sg_##f##_of(expression, insn->round) << h;        \
            }                                                             \
            out[i] = both;                                                \
        });                                                               \
    }
#define HALVES(name, expression)                                          \
    ONE_HALF(name, f16, expression)                                       \
    ONE_HALF(name, bf16, expression)                                      \
    TWO_HALVES(name, f16, expression)                                     \
    TWO_HALVES(name, bf16, expression)

HALVES(add, add_exact(a, b))
HALVES(sub, add_exact(a, -b))
HALVES(mul, a *b)
HALVES(fma, fma_exact(a, b, c))
HALVES(min, min_any(a, b, insn->flags))
HALVES(max, max_any(a, b, insn->flags))
HALVES(ex2, exp2(a))
HALVES(tanh, tanh(a))

UNARY(neg_f16, uint32_t, uint32_t, a ^ 0x8000u)
UNARY(neg_bf16, uint32_t, uint32_t, a ^ 0x8000u)
UNARY(neg_f16x2, uint32_t, uint32_t, a ^ 0x80008000u)
UNARY(neg_bf16x2, uint32_t, uint32_t, a ^ 0x80008000u)
UNARY(abs_f16, uint32_t, uint32_t, a & 0x7fffu)
UNARY(abs_bf16, uint32_t, uint32_t, a & 0x7fffu)
UNARY(abs_f16x2, uint32_t, uint32_t, a & 0x7fff7fffu)
UNARY(abs_bf16x2, uint32_t, uint32_t, a & 0x7fff7fffu)

/* After an operation with .relu or .sat. variant: the type; flags: 1 two halves. */
static inline uint32_t clamp_half(uint32_t half, uint8_t type, bool saturate) {
    bool is_f16 = type == W_f16 || type == W_f16x2;
    double value = is_f16 ? wide_f16(half) : wide_bf16(half);
    if (value != value)
        return saturate ? 0 : 0x7fff;
    if (value <= 0)
        return 0;
    return saturate && value > 1 ? (is_f16 ? 0x3c00u : 0x3f80u) : half & 0xffff;
}

#define CLAMP_HALVES(name, saturate)                                      \
    HANDLER_FOR(name) {                                                   \
        const uint32_t *a = SOURCE(uint32_t, 1);                          \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {               \
            uint32_t both = clamp_half(a[i], insn->variant, saturate);    \
            if (insn->flags & 1)                                          \
                both |= clamp_half(a[i] >> 16, insn->variant, saturate) << 16; \
            out[i] = both;                                                \
        });                                                               \
    }
CLAMP_HALVES(half_relu, false)
CLAMP_HALVES(half_saturate, true)

/* .satfinite, of one half of type `variant`. */
HANDLER_FOR(half_finite) {
    const uint32_t *a = SOURCE(uint32_t, 1);
    uint32_t infinite = insn->variant == W_f16 ? 0x7c00u : 0x7f80u;
    FILL(uint32_t, 0, EACH_LANE out[i] = (a[i] & 0x7fff) == infinite ? a[i] - 1 : a[i]);
}

/* .xorsign.abs: operand 1, unless it is no number, with the sign of the product of 2 and 3. */
static inline uint32_t with_sign(uint32_t half, uint32_t signs, bool is_f16) {
    half &= 0xffff;
    return (half & 0x7fff) > (is_f16 ? 0x7c00u : 0x7f80u) ? half : (half & 0x7fff) | (signs & 0x8000u);
}
HANDLER_FOR(half_xorsign) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    bool is_f16 = insn->variant == W_f16 || insn->variant == W_f16x2;
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {
        uint32_t signs = b[i] ^ c[i];
        out[i] = with_sign(a[i], signs, is_f16);
        if (insn->flags & 1)
            out[i] |= with_sign(a[i] >> 16, signs >> 16, is_f16) << 16;
    });
}

/* flags: 1 two halves. */
static inline uint32_t flush_half(uint32_t a) { return a & 0x7c00 ? a & 0xffff : a & 0x8000; }
HANDLER_FOR(flush_f16) {
    const uint32_t *a = SOURCE(uint32_t, 1);
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++)
        out[i] = flush_half(a[i]) | (insn->flags & 1 ? flush_half(a[i] >> 16) << 16 : 0));
}

/* ---- conversions ---- */

#define CONVERT(name, S, A, expression)                                   \
    HANDLER_FOR(name) {                                                   \
        const A *a_ = SOURCE(A, 1);                                       \
        FILL(S, 0, for (int i = 0; i < LANES; i++) {                      \
            A a = a_[i];                                                  \
            out[i] = (S)(expression);                                     \
        });                                                               \
    }
CONVERT(cvt_f32_f16, float, uint32_t, sg_float_of_f16(a & 0xffff))
CONVERT(cvt_f32_bf16, float, uint32_t, sg_float_of_bf16(a & 0xffff))
CONVERT(cvt_f64_f16, double, uint32_t, wide_f16(a))
CONVERT(cvt_f64_bf16, double, uint32_t, wide_bf16(a))
CONVERT(cvt_f16_f32, uint32_t, float, sg_f16_of((double)a, insn->round))
CONVERT(cvt_bf16_f32, uint32_t, float, sg_bf16_of((double)a, insn->round))
CONVERT(cvt_f16_f64, uint32_t, double, sg_f16_of(a, insn->round))
CONVERT(cvt_bf16_f64, uint32_t, double, sg_bf16_of(a, insn->round))

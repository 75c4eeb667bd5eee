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
CONVERT(ex2_f16, uint32_t, uint32_t, sg_f16_of(exp2(wide_f16(a)), 0))
CONVERT(ex2_bf16, uint32_t, uint32_t, sg_bf16_of(exp2(wide_bf16(a)), 0))
CONVERT(tanh_f16, uint32_t, uint32_t, sg_f16_of(tanh(wide_f16(a)), 0))
CONVERT(tanh_bf16, uint32_t, uint32_t, sg_bf16_of(tanh(wide_bf16(a)), 0))

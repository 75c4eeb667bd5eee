/* f32 and f64, rounded to nearest even. Flushing (.ftz) and saturation (.sat) are handlers of
 * their own that lowering puts around these.
 *
 * An f32 operation that makes no number makes the one that cards make, 0x7fffffff; the
 * host's would have its sign bit set, which signbit() and printf() show. */
#include "lanes.h"
#include "exact.h"

#define CANONICAL(x) sg_canonical(x)
static inline float sg_canonical(float x) { return x != x ? sg_float_of(0x7fffffffu) : x; }

BINARY(add_f32, float, float, CANONICAL(a + b))
BINARY(sub_f32, float, float, CANONICAL(a - b))
BINARY(mul_f32, float, float, CANONICAL(a * b))
BINARY(div_f32, float, float, CANONICAL(a / b))
TERNARY(fma_f32, float, float, CANONICAL(sg_fma_f32(a, b, c)))
UNARY(rcp_f32, float, float, CANONICAL(1.0f / a))
UNARY(sqrt_f32, float, float, CANONICAL(__builtin_sqrtf(a)))
UNARY(rsqrt_f32, float, float, CANONICAL((float)(1.0 / __builtin_sqrt((double)a))))

BINARY(add_f64, double, double, a + b)
BINARY(sub_f64, double, double, a - b)
BINARY(mul_f64, double, double, a * b)
BINARY(div_f64, double, double, a / b)
TERNARY(fma_f64, double, double, fma(a, b, c))
UNARY(rcp_f64, double, double, 1.0 / a)
UNARY(sqrt_f64, double, double, __builtin_sqrt(a))
UNARY(rsqrt_f64, double, double, 1.0 / __builtin_sqrt(a))

UNARY(neg_f32, uint32_t, uint32_t, a ^ 0x80000000u)
UNARY(neg_f64, uint64_t, uint64_t, a ^ (uint64_t)1 << 63)
UNARY(abs_f32, uint32_t, uint32_t, a & 0x7fffffffu)
UNARY(abs_f64, uint64_t, uint64_t, a & ~((uint64_t)1 << 63))
BINARY(copysign_f32, uint32_t, uint32_t, (a & 0x80000000u) | (b & 0x7fffffffu))
BINARY(copysign_f64, uint64_t, uint64_t, (a & (uint64_t)1 << 63) | (b & ~((uint64_t)1 << 63)))

/* The number where one operand is none; -0 is less than +0. */
static inline float min_f(float a, float b) {
    float least = a < b || (a == b && signbit(a)) ? a : b;
    return a != a ? CANONICAL(b) : b != b ? a : least;
}
static inline float max_f(float a, float b) {
    float most = a > b || (a == b && !signbit(a)) ? a : b;
    return a != a ? CANONICAL(b) : b != b ? a : most;
}
static inline double min_d(double a, double b) {
    double least = a < b || (a == b && signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : least;
}
static inline double max_d(double a, double b) {
    double most = a > b || (a == b && !signbit(a)) ? a : b;
    return a != a ? b : b != b ? a : most;
}
BINARY(min_f32, float, float, min_f(a, b))
BINARY(max_f32, float, float, max_f(a, b))
BINARY(min_f64, double, double, min_d(a, b))
BINARY(max_f64, double, double, max_d(a, b))
BINARY(min_nan_f32, float, float, a != a || b != b ? sg_float_of(0x7fffffffu) : min_f(a, b))
BINARY(max_nan_f32, float, float, a != a || b != b ? sg_float_of(0x7fffffffu) : max_f(a, b))
BINARY(min_nan_f64, double, double, a != a ? a : b != b ? b : min_d(a, b))
BINARY(max_nan_f64, double, double, a != a ? a : b != b ? b : max_d(a, b))

/* testp: variant is the sg_word of the property. */
#define TEST(name, T, U, sign, infinite, smallest)                        \
    HANDLER_FOR(name) {                                                   \
        const U *bits = SOURCE(U, 1);                                     \
        uint32_t result = 0;                                              \
        for (int i = 0; i < LANES; i++) {                                 \
            U a = bits[i] & ~(sign);                                      \
            bool holds = false;                                           \
            switch (insn->variant) {                                      \
            case W_finite: holds = a < (infinite); break;                 \
            case W_infinite: holds = a == (infinite); break;              \
            case W_number: holds = a <= (infinite); break;                \
            case W_notanumber: holds = a > (infinite); break;             \
            case W_normal: holds = a >= (smallest) && a < (infinite); break; \
            case W_subnormal: holds = a && a < (smallest); break;         \
            }                                                             \
            result |= (uint32_t)holds << i;                               \
        }                                                                 \
        sg_set_predicate(warp, insn, 0, result);                          \
    }
TEST(testp_f32, float, uint32_t, 0x80000000u, 0x7f800000u, 0x00800000u)
TEST(testp_f64, double, uint64_t, (uint64_t)1 << 63, (uint64_t)0x7ff << 52, (uint64_t)1 << 52)

/* The approximations of a card, here within an ulp of the true value. */

/* 2^a in double, rounded once: vector code, where the C library takes lane by lane. a is its nearest integer n,
 * which the sum with 1.5 * 2^52 leaves in the lowest bits, and a rest r of at most a half, of which eight terms
 * of the series are as good as exact. Beyond +-200 there are infinity and zero, in float. */
static inline float power_of_two(float a) {
    const double integers = 0x1.8p52;
    double x = a > 200.0f ? 200.0 : a < -200.0f ? -200.0 : (double)a, shifted = x + integers;
    double r = x - (shifted - integers), p = 1.3215486790144309e-06;
    p = p * r + 1.5252733804059841e-05;
    p = p * r + 1.5403530393381608e-04;
    p = p * r + 1.3333558146428443e-03;
    p = p * r + 9.6181291076284769e-03;
    p = p * r + 5.5504108664821580e-02;
    p = p * r + 2.4022650695910072e-01;
    p = p * r + 6.9314718055994531e-01;
    p = p * r + 1.0;
    return (float)(p * sg_double_of((sg_bits_of_double(shifted) + 1023) << 52));
}
UNARY(ex2_f32, float, float, CANONICAL(a != a ? a : power_of_two(a)))

#define BY_LIBRARY(name, expression)                                      \
    HANDLER_FOR(name) {                                                   \
        const float *a_ = SOURCE(float, 1);                               \
        FILL(float, 0, for (int i = 0; i < LANES; i++) {                  \
            float a = a_[i];                                              \
            out[i] = CANONICAL(expression);                               \
        });                                                               \
    }
BY_LIBRARY(lg2_f32, log2f(a))
BY_LIBRARY(sin_f32, sinf(a))
BY_LIBRARY(cos_f32, cosf(a))
BY_LIBRARY(tanh_f32, tanhf(a))

/* rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: subnormals count as zero, the low half of the
 * result is zero. */
static inline double flushed(double a) {
    return (sg_bits_of_double(a) & (uint64_t)0x7ff << 52) ? a : copysign(0.0, a);
}
static inline double gross(double a) {
    return a != a ? sg_double_of((uint64_t)0x7fffffff << 32) : sg_double_of(sg_bits_of_double(flushed(a)) & ~(uint64_t)0xffffffff);
}
UNARY(rcp_gross_f64, double, double, gross(1.0 / flushed(a)))
UNARY(rsqrt_gross_f64, double, double, gross(1.0 / __builtin_sqrt(flushed(a))))

/* A result, unless it is no number, with the sign of the product of b and c. */
TERNARY(xorsign_f32, uint32_t, uint32_t, (a & 0x7fffffffu) > 0x7f800000u ? a : (a & 0x7fffffffu) | ((b ^ c) & 0x80000000u))

UNARY(flush_f32, uint32_t, uint32_t, a & 0x7f800000u ? a : a & 0x80000000u)
UNARY(saturate_f32, float, float, a != a ? 0.0f : a <= 0.0f ? 0.0f : a > 1.0f ? 1.0f : a)
UNARY(saturate_f64, double, double, a != a ? 0.0 : a <= 0.0 ? 0.0 : a > 1.0 ? 1.0 : a)

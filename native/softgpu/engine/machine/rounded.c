/* Directed rounding: the host's rounding mode is changed around the loop. Compiled with
 * -frounding-math, so that nothing moves over the change. */
#include "exact.h"
#include "lanes.h"

#include <fenv.h>

static int host_mode(uint8_t round) {
    switch (round) {
    case W_rz: return FE_TOWARDZERO;
    case W_rm: return FE_DOWNWARD;
    case W_rp: return FE_UPWARD;
    default: return FE_TONEAREST;
    }
}

/* Without the instruction the library's fma does directed modes right; slow, but rare. */
#define ROUNDED(name, S, A, B, C, expression)                             \
    HANDLER_FOR(name) {                                                   \
        int before = fegetround();                                        \
        fesetround(host_mode(insn->round));                               \
        const A *a_ = SOURCE(A, 1);                                       \
        const B *b_ = SOURCE(B, 2);                                       \
        const C *c_ = SOURCE(C, 3);                                       \
        FILL(S, 0, for (int i = 0; i < LANES; i++) {                      \
            A a = a_[i];                                                  \
            B b = b_[i];                                                  \
            C c = c_[i];                                                  \
            (void)b, (void)c;                                             \
            S value = (S)(expression);                                    \
            out[i] = value != value && sizeof(S) == 4 ? (S)sg_float_of(0x7fffffffu) : value; \
        });                                                               \
        fesetround(before);                                               \
    }
#define ROUNDED_REAL(T, suffix, fused, root)                              \
    ROUNDED(add_r_##suffix, T, T, T, T, a + b)                            \
    ROUNDED(sub_r_##suffix, T, T, T, T, a - b)                            \
    ROUNDED(mul_r_##suffix, T, T, T, T, a *b)                             \
    ROUNDED(div_r_##suffix, T, T, T, T, a / b)                            \
    ROUNDED(fma_r_##suffix, T, T, T, T, fused(a, b, c))                   \
    ROUNDED(rcp_r_##suffix, T, T, T, T, 1 / a)                            \
    ROUNDED(sqrt_r_##suffix, T, T, T, T, root(a))
ROUNDED_REAL(float, f32, fmaf, sqrtf)
ROUNDED_REAL(double, f64, fma, sqrt)

#define CONVERTED(name, S, A)                                             \
    HANDLER_FOR(name) {                                                   \
        int before = fegetround();                                        \
        fesetround(host_mode(insn->round));                               \
        const A *a = SOURCE(A, 1);                                        \
        FILL(S, 0, for (int i = 0; i < LANES; i++) out[i] = (S)a[i]);     \
        fesetround(before);                                               \
    }
ROUNDED(cvt_f32_f64_r, float, double, double, double, a)
CONVERTED(cvt_f32_r_u32, float, uint32_t)
CONVERTED(cvt_f32_r_s32, float, int32_t)
CONVERTED(cvt_f32_r_u64, float, uint64_t)
CONVERTED(cvt_f32_r_s64, float, int64_t)
CONVERTED(cvt_f64_r_u32, double, uint32_t)
CONVERTED(cvt_f64_r_s32, double, int32_t)
CONVERTED(cvt_f64_r_u64, double, uint64_t)
CONVERTED(cvt_f64_r_s64, double, int64_t)

/* Conversions. Lowering composes them: a value is brought to 32 or 64 bits, converted, and
 * cut to the width of its register. */
#include "lanes.h"

UNARY(zext8_32, uint32_t, uint32_t, (uint8_t)a)
UNARY(zext16_32, uint32_t, uint32_t, (uint16_t)a)
UNARY(sext8_32, uint32_t, uint32_t, (int32_t)(int8_t)a)
UNARY(sext16_32, uint32_t, uint32_t, (int32_t)(int16_t)a)

#define ACROSS(name, S, A)                                                \
    HANDLER_FOR(name) {                                                   \
        const A *a = SOURCE(A, 1);                                        \
        FILL(S, 0, EACH_LANE out[i] = (S)a[i]);                           \
    }
ACROSS(zext32_64, uint64_t, uint32_t)
ACROSS(sext32_64, int64_t, int32_t)
ACROSS(trunc_32, uint32_t, uint64_t)
ACROSS(cvt_f32_u32, float, uint32_t)
ACROSS(cvt_f32_s32, float, int32_t)
ACROSS(cvt_f32_u64, float, uint64_t)
ACROSS(cvt_f32_s64, float, int64_t)
ACROSS(cvt_f64_u32, double, uint32_t)
ACROSS(cvt_f64_s32, double, int32_t)
ACROSS(cvt_f64_u64, double, uint64_t)
ACROSS(cvt_f64_s64, double, int64_t)
ACROSS(cvt_f64_f32, double, float)
HANDLER_FOR(cvt_f32_f64) {
    const double *a = SOURCE(double, 1);
    FILL(float, 0, EACH_LANE {
        float value = (float)a[i];
        out[i] = value != value ? __builtin_nanf("0x3fffff") : value;
    });
}

/* Saturation to the integer type `variant`, from the signed or the unsigned 64-bit value. */
static inline int64_t lowest_of(uint8_t type) {
    return sg_words[type].kind == KIND_SIGNED ? (int64_t)((uint64_t)-1 << (sg_words[type].bits - 1)) : 0;
}
static inline uint64_t highest_of(uint8_t type) {
    unsigned bits = sg_words[type].bits - (sg_words[type].kind == KIND_SIGNED);
    return bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
}

HANDLER_FOR(clamp_signed) {
    const int64_t *a = SOURCE(int64_t, 1);
    int64_t low = lowest_of(insn->variant);
    uint64_t high = highest_of(insn->variant);
    FILL(int64_t, 0, EACH_LANE out[i] = a[i] < low ? low : a[i] > 0 && (uint64_t)a[i] > high ? (int64_t)high : a[i]);
}
HANDLER_FOR(clamp_unsigned) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint64_t high = highest_of(insn->variant);
    FILL(uint64_t, 0, EACH_LANE out[i] = a[i] > high ? high : a[i]);
}

/* ---- to integers ---- */

/* To an integral value, in the mode that the word names. */
static inline double integral(double value, uint8_t round) {
    switch (round) {
    case W_rzi: case W_rz: return trunc(value);
    case W_rmi: case W_rm: return floor(value);
    case W_rpi: case W_rp: return ceil(value);
    default: return rint(value); /* threads of the machine run in the nearest-even mode */
    }
}

/* What no number becomes: zero, except from f64 or to 64 bits (PTX ISA, cvt). */
static inline uint64_t absent(uint8_t type, bool from_double) {
    return from_double || sg_words[type].bits == 64 ? (uint64_t)1 << (sg_words[type].bits - 1) : 0;
}

static inline uint64_t to_integer(double value, const sg_insn *insn, bool from_double) {
    uint8_t type = insn->variant;
    double whole = integral(value, insn->round);
    if (whole != whole)
        return absent(type, from_double);
    if (sg_words[type].kind == KIND_SIGNED) {
        int64_t low = lowest_of(type), high = (int64_t)highest_of(type);
        if (whole <= (double)low)
            return (uint64_t)low;
        return whole >= (double)high ? (uint64_t)high : (uint64_t)(int64_t)whole;
    }
    uint64_t high = highest_of(type);
    if (whole <= 0)
        return 0;
    return whole >= (double)high ? high : (uint64_t)whole;
}

#define TO_INTEGER(name, S, A, from_double)                               \
    HANDLER_FOR(name) {                                                   \
        const A *a = SOURCE(A, 1);                                        \
        FILL(S, 0, for (int i = 0; i < LANES; i++)                        \
            out[i] = (S)to_integer((double)a[i], insn, from_double));     \
    }
TO_INTEGER(cvt_32_f32, uint32_t, float, false)
TO_INTEGER(cvt_32_f64, uint32_t, double, true)
TO_INTEGER(cvt_64_f32, uint64_t, float, false)
TO_INTEGER(cvt_64_f64, uint64_t, double, true)

/* The common case, int(x): in double every bound of s32 is exact and the loop has no calls. */
static inline int32_t truncated(double value, int32_t none) {
    double bounded = value < -2147483648.0 ? -2147483648.0 : value > 2147483647.0 ? 2147483647.0 : value;
    return value != value ? none : (int32_t)bounded;
}
HANDLER_FOR(cvt_s32_f32_rz) {
    const float *a = SOURCE(float, 1);
    FILL(int32_t, 0, EACH_LANE out[i] = truncated((double)a[i], 0));
}
HANDLER_FOR(cvt_s32_f64_rz) {
    const double *a = SOURCE(double, 1);
    FILL(int32_t, 0, EACH_LANE out[i] = truncated(a[i], INT32_MIN));
}

#define INTEGRAL(name, T)                                                 \
    HANDLER_FOR(name) {                                                   \
        const T *a = SOURCE(T, 1);                                        \
        FILL(T, 0, for (int i = 0; i < LANES; i++) out[i] = (T)integral((double)a[i], insn->round)); \
    }
INTEGRAL(integral_f32, float)
INTEGRAL(integral_f64, double)

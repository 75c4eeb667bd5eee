/* tf32, e4m3 and e5m2, and integers of 16 and 8 bits packed: formats that only conversions know. */
#include "halves.h"
#include "lanes.h"

/* tf32 is an f32 whose last 13 bits are zero. flags: 1 relu, 2 satfinite. */
static inline uint32_t tf32_of(uint32_t a, unsigned round, unsigned flags) {
    uint32_t magnitude = a & 0x7fffffff, sign = a & 0x80000000;
    if (magnitude > 0x7f800000)
        return 0x7fffffff & ~(uint32_t)0x1fff;
    if (flags & 1 && sign)
        return 0;
    uint32_t rest = magnitude & 0x1fff, kept = magnitude & ~(uint32_t)0x1fff;
    bool up = round == W_rna ? rest >= 0x1000 : round == W_rz ? false : rest > 0x1000 || (rest == 0x1000 && kept & 0x2000);
    kept += up ? 0x2000 : 0;
    if (flags & 2 && kept >= 0x7f800000)
        kept = 0x7f7fe000;
    return sign | kept;
}
HANDLER_FOR(cvt_tf32) {
    const uint32_t *a = SOURCE(uint32_t, 1);
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) out[i] = tf32_of(a[i], insn->round, insn->flags));
}

/* An eighth: f is e4m3 (bias 7, no infinity, one NaN) or e5m2 (bias 15). Always to nearest
 * even and .satfinite. */
static inline uint32_t eighth_of(float value, bool e4m3, bool relu) {
    if (value != value)
        return 0x7f;
    uint32_t sign = signbit(value) ? 0x80 : 0, most = e4m3 ? 0x7e : 0x7b;
    if (relu && sign)
        return 0;
    int fraction = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, exponent;
    double magnitude = fabs((double)value);
    if (magnitude == 0)
        return sign;
    if (magnitude > 1e6)
        return sign | most;
    frexp(magnitude, &exponent); /* in [0.5, 1) times 2^exponent */
    int unit = (exponent - 1 < 1 - bias ? 1 - bias : exponent - 1) - fraction; /* of the last place */
    uint32_t places = (uint32_t)rint(ldexp(magnitude, -unit)); /* in the nearest-even mode */
    uint32_t field = (uint32_t)(unit + fraction + bias - 1) << fraction;
    uint32_t bits = field + places; /* a normal number's leading one raises the exponent by one */
    return sign | (bits > most ? most : bits);
}

/* Operands: 1 goes to the high byte, 2 to the low one; flags: 1 relu, 2 both are halves of operand 1. */
#define TO_EIGHTHS(name, e4m3)                                            \
    HANDLER_FOR(name) {                                                   \
        const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2); \
        bool relu = insn->flags & 1, halves = insn->flags & 2;            \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {               \
            float high = halves ? sg_float_of_f16(a[i] >> 16) : sg_float_of(a[i]); \
            float low = halves ? sg_float_of_f16(a[i] & 0xffff) : sg_float_of(b[i]); \
            out[i] = eighth_of(high, e4m3, relu) << 8 | eighth_of(low, e4m3, relu); \
        });                                                               \
    }
TO_EIGHTHS(cvt_e4m3, true)
TO_EIGHTHS(cvt_e5m2, false)

/* Exact: f16 holds them all. */
static inline uint32_t f16_of_e5m2(uint32_t a) { return (a & 0x7f) > 0x7c ? 0x7fff : a << 8; }
static inline uint32_t f16_of_e4m3(uint32_t a) {
    if ((a & 0x7f) == 0x7f)
        return 0x7fff;
    uint32_t sign = (a & 0x80) << 8, exponent = a >> 3 & 15, fraction = a & 7;
    double value = exponent ? ldexp(8 + fraction, (int)exponent - 10) : ldexp(fraction, -9);
    return sign | sg_f16_of(value, 0);
}
#define FROM_EIGHTHS(name, convert)                                       \
    HANDLER_FOR(name) {                                                   \
        const uint32_t *a = SOURCE(uint32_t, 1);                          \
        FILL(uint32_t, 0, for (int i = 0; i < LANES; i++)                 \
            out[i] = convert(a[i] >> 8 & 0xff) << 16 | convert(a[i] & 0xff)); \
    }
FROM_EIGHTHS(cvt_f16x2_e4m3x2, f16_of_e4m3)
FROM_EIGHTHS(cvt_f16x2_e5m2x2, f16_of_e5m2)

/* cvt.pack.sat: a and b as integers of type `variant`, c moved above them. */
static inline uint32_t clamp_to(int32_t value, uint8_t type) {
    bool is_signed = sg_words[type].kind == KIND_SIGNED;
    int32_t bits = sg_words[type].bits, high = (1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    return (uint32_t)(value < low ? low : value > high ? high : value) & ((1u << bits) - 1);
}
HANDLER_FOR(cvt_pack) {
    const int32_t *a = SOURCE(int32_t, 1), *b = SOURCE(int32_t, 2);
    const uint32_t *c = SOURCE(uint32_t, 3);
    unsigned bits = sg_words[insn->variant].bits;
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {
        uint32_t pair = clamp_to(a[i], (uint8_t)insn->variant) << bits | clamp_to(b[i], (uint8_t)insn->variant);
        out[i] = bits == 16 ? pair : pair | c[i] << 2 * bits;
    });
}

/* 64-bit integers to f64, rounded to odd: what is rounded once more is then right. */
static inline double odd_of(uint64_t magnitude, bool negative) {
    int length = magnitude ? 64 - __builtin_clzll(magnitude) : 0, cut = length > 53 ? length - 53 : 0;
    uint64_t rest = magnitude & (((uint64_t)1 << cut) - 1);
    double value = (double)((magnitude >> cut) | (rest != 0)) * (double)((uint64_t)1 << cut);
    return negative ? -value : value;
}
HANDLER_FOR(cvt_f64_odd_u64) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    FILL(double, 0, for (int i = 0; i < LANES; i++) out[i] = odd_of(a[i], false));
}
HANDLER_FOR(cvt_f64_odd_s64) {
    const int64_t *a = SOURCE(int64_t, 1);
    FILL(double, 0, for (int i = 0; i < LANES; i++)
        out[i] = odd_of(a[i] < 0 ? 0 - (uint64_t)a[i] : (uint64_t)a[i], a[i] < 0));
}

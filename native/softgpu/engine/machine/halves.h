/* f16 and bf16 as bits, to and from float and double. */
#ifndef SG_MACHINE_HALVES_H
#define SG_MACHINE_HALVES_H

#include "../ptx/words.h"
#include "exact.h"

static inline float sg_float_of_f16(uint32_t half) {
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ffu;
    if (exponent == 31)
        return sg_float_of(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) {
        float value = (float)fraction * 0x1p-24f;
        return sg_float_of(sign | sg_bits_of_float(value));
    }
    return sg_float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline float sg_float_of_bf16(uint32_t half) { return sg_float_of(half << 16); }

/* Whether a magnitude whose kept part ends at `unit` is raised: `rest` is what is cut. */
static inline int sg_raises(uint64_t kept, uint64_t rest, uint64_t half, int negative, unsigned round) {
    switch (round) {
    case W_rz: return 0;
    case W_rm: return negative && rest;
    case W_rp: return !negative && rest;
    default: return rest > half || (rest == half && (kept & 1));
    }
}

/* A double to a format of `fraction` bits and the given bias, in any rounding mode. Doubles
 * hold every float and every exact half product, so one routine does for all. */
static inline uint32_t sg_narrow(double value, unsigned fraction, int bias, unsigned round) {
    uint64_t bits = sg_bits_of_double(value);
    int negative = (int)(bits >> 63);
    unsigned exponent_bits = 15 - fraction;
    uint32_t infinite = ((1u << exponent_bits) - 1) << fraction;
    if (value != value)
        return 0x7fff;
    uint64_t magnitude = bits & ~((uint64_t)1 << 63);
    if (magnitude == (uint64_t)0x7ff << 52)
        return (uint32_t)negative << 15 | infinite;
    int exponent = (int)(magnitude >> 52) - 1023 + bias;
    uint64_t significand = (magnitude & (((uint64_t)1 << 52) - 1)) | (magnitude >> 52 ? (uint64_t)1 << 52 : 0);
    unsigned cut = 52 - fraction;
    if (exponent <= 0) { /* subnormal there: cut more, the exponent field is zero */
        cut += (unsigned)(1 - exponent) < 64 ? (unsigned)(1 - exponent) : 64;
        exponent = 0;
    }
    uint64_t kept = cut > 63 ? 0 : significand >> cut;
    uint64_t rest = cut > 63 ? significand != 0 : significand & (((uint64_t)1 << cut) - 1);
    uint64_t half = cut > 63 ? 2 : (uint64_t)1 << (cut - 1);
    kept += (uint64_t)sg_raises(kept, rest, half, negative, round);
    uint64_t result = exponent > 0 ? ((uint64_t)(exponent - 1) << fraction) + kept : kept;
    if (result >= infinite) {
        int to_largest = round == W_rz || (round == W_rm && !negative) || (round == W_rp && negative);
        result = to_largest ? infinite - 1 : infinite;
    }
    return (uint32_t)negative << 15 | (uint32_t)result;
}

static inline uint32_t sg_f16_of(double value, unsigned round) { return sg_narrow(value, 10, 15, round); }
static inline uint32_t sg_bf16_of(double value, unsigned round) { return sg_narrow(value, 7, 127, round); }

#endif

/* Arithmetic that must be exact where the host gives it only sometimes. */
#ifndef SG_MACHINE_EXACT_H
#define SG_MACHINE_EXACT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float sg_float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline double sg_double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint32_t sg_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline uint64_t sg_bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* p + c rounded to odd: the nearest double below or above that has its last bit set, where
 * the sum is not exact. Rounding that once more, to a format of at most 51 bits, gives what
 * rounding the exact sum would (Boldo and Melquiond, 2008). */
static inline double sg_sum_to_odd(double p, double c) {
    double sum = p + c;
    double t = sum - p;
    double error = (p - (sum - t)) + (c - t); /* Knuth's two-sum: exact */
    uint64_t bits = sg_bits_of_double(sum);
    /* An infinite or absent sum has no error to speak of: NaN compares false. */
    int inexact = error != 0.0 && sum - sum == 0.0;
    uint64_t toward = (error > 0.0) == (sum > 0.0) ? 1 : (uint64_t)-1;
    bits += inexact && !(bits & 1) ? toward : 0;
    return sg_double_of(bits);
}

/* A true fused multiply-add. Without the instruction, the C library's fmaf works bit by bit
 * and takes some 50 ns; the product of two floats is exact in double, so an odd sum does. */
static inline float sg_fma_f32(float a, float b, float c) {
#if defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    return (float)sg_sum_to_odd((double)a * (double)b, (double)c);
#endif
}

#endif

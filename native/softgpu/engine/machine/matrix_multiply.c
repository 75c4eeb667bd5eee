/* The product of two matrices, and mma.sync and wmma.mma, which take it from registers.
 *
 * Products of f16, bf16, tf32 and 8-bit floats are exact in double. They are added there one after the other
 * from c on, in the order of k, and the sum is rounded once, to the nearest even of d's type. A tensor core
 * adds the products of a step (4 to 32 of them, by generation) aligned to the largest exponent with a few
 * bits more than f32, and truncates: PTX leaves order and precision open, and so results here differ from
 * a card's, and cards' from one another's, in the last bits. Here is the more precise one. What has no
 * choice is as on a card: the low 13 bits of tf32 operands are ignored, subnormals count, a NaN is canonical,
 * f64 is a chain of fused multiply-adds, integers wrap or are clamped once at the end. */
#include "halves.h"
#include "matrix.h"

typedef struct {
    union {
        float real[LARGEST_A];
        int32_t integer[LARGEST_A];
        double wide[LARGEST_A / 4];
    } a __attribute__((aligned(64)));
    union {
        float real[LARGEST_B];
        int32_t integer[LARGEST_B];
    } b __attribute__((aligned(64)));
    double sum[LARGEST_SUM] __attribute__((aligned(64)));
} numbers;

/* ---- from bytes to numbers ---- */

/* f16 by a product that scales its exponent: no branches. Infinities and NaN get theirs by hand. */
static inline float widen_f16(uint32_t half) {
    float magnitude = sg_float_of((half & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits = sg_bits_of_float(magnitude) | (half & 0x8000) << 16;
    return sg_float_of((half & 0x7c00) == 0x7c00 ? bits | 0x7f800000 : bits);
}

/* Four bits of exponent, bias 7, no infinity; all ones is NaN. */
static inline float widen_e4m3(uint32_t byte) {
    float magnitude = sg_float_of((byte & 0x7f) << 20) * 0x1p120f;
    uint32_t bits = sg_bits_of_float(magnitude) | (byte & 0x80) << 24;
    return sg_float_of((byte & 0x7f) == 0x7f ? 0x7fffffff : bits);
}

static inline void widen(sg_word type, const unsigned char *restrict bytes, unsigned count, float *restrict out) {
    const uint16_t *halves = (const uint16_t *)bytes;
    const uint32_t *words = (const uint32_t *)bytes;
    switch (type) {
    case W_f16:
        for (unsigned i = 0; i < count; i++)
            out[i] = widen_f16(halves[i]);
        return;
    case W_bf16:
        for (unsigned i = 0; i < count; i++)
            out[i] = sg_float_of((uint32_t)halves[i] << 16);
        return;
    case W_tf32:
        for (unsigned i = 0; i < count; i++)
            out[i] = sg_float_of(words[i] & ~(uint32_t)0x1fff);
        return;
    case W_e4m3:
        for (unsigned i = 0; i < count; i++)
            out[i] = widen_e4m3(bytes[i]);
        return;
    default: /* e5m2 is the upper half of f16 */
        for (unsigned i = 0; i < count; i++)
            out[i] = widen_f16((uint32_t)bytes[i] << 8);
        return;
    }
}

static inline void widen_integers(sg_word type, const unsigned char *restrict bytes, unsigned count,
                                  int32_t *restrict out) {
    for (unsigned i = 0; i < count; i++)
        switch (type) {
        case W_s8: out[i] = (int8_t)bytes[i]; break;
        case W_u8: out[i] = bytes[i]; break;
        case W_s4: out[i] = (int8_t)(bytes[i / 2] >> i % 2 * 4 << 4) >> 4; break;
        default: out[i] = bytes[i / 2] >> i % 2 * 4 & 15; break;
        }
}

/* Columns of k to rows of n, so that sums of a row are neighbours. */
#define TURN(name, T)                                                                        \
    static inline void name(const T *restrict in, unsigned n, unsigned k, T *restrict out) { \
        for (unsigned i = 0; i < n; i++)                                                     \
            for (unsigned j = 0; j < k; j++)                                                 \
                out[j * n + i] = in[i * k + j];                                              \
    }
TURN(turn_8, uint8_t)
TURN(turn_16, uint16_t)
TURN(turn_32, uint32_t)
TURN(turn_64, uint64_t)

static void turn(const unsigned char *in, unsigned bits, unsigned n, unsigned k, unsigned char *out) {
    if (bits == 8)
        turn_8(in, n, k, out);
    else if (bits == 16)
        turn_16((const uint16_t *)in, n, k, (uint16_t *)out);
    else if (bits == 32)
        turn_32((const uint32_t *)in, n, k, (uint32_t *)out);
    else
        turn_64((const uint64_t *)in, n, k, (uint64_t *)out);
}

/* ---- floating point ---- */

/* Four rows by eight columns at a time stay in registers. Vectors are written out: of the same loops GCC makes
 * pairs of doubles, four times as slow. Products are exact, so that it is the same whether they are fused. */
enum { PANEL_ROWS = 4, PANEL = 8 };
typedef float eight_floats __attribute__((vector_size(PANEL * sizeof(float))));
typedef double eight_doubles __attribute__((vector_size(PANEL * sizeof(double))));

static inline void multiply_panel(const float *restrict a, const float *restrict b, unsigned n, unsigned k,
                                  double *restrict sum) {
    eight_doubles panel[PANEL_ROWS];
    for (int r = 0; r < PANEL_ROWS; r++)
        memcpy(&panel[r], sum + r * n, sizeof panel[r]);
    for (unsigned j = 0; j < k; j++, b += n) {
        eight_floats row;
        memcpy(&row, b, sizeof row);
        eight_doubles wide = __builtin_convertvector(row, eight_doubles);
        for (int r = 0; r < PANEL_ROWS; r++)
            panel[r] += (double)a[r * k + j] * wide;
    }
    for (int r = 0; r < PANEL_ROWS; r++)
        memcpy(sum + r * n, &panel[r], sizeof panel[r]);
}

static void load_sums(sg_word type, const unsigned char *restrict bytes, unsigned count, double *restrict sum) {
    const uint16_t *halves = (const uint16_t *)bytes;
    const float *singles = (const float *)bytes;
    if (type == W_f16)
        for (unsigned i = 0; i < count; i++)
            sum[i] = widen_f16(halves[i]);
    else
        for (unsigned i = 0; i < count; i++)
            sum[i] = singles[i];
}

static void store_sums(sg_word type, const double *restrict sum, unsigned count, unsigned char *restrict bytes) {
    uint16_t *halves = (uint16_t *)bytes;
    uint32_t *singles = (uint32_t *)bytes;
    if (type == W_f16)
        for (unsigned i = 0; i < count; i++)
            halves[i] = (uint16_t)sg_f16_of(sum[i], W_rn);
    else
        for (unsigned i = 0; i < count; i++) {
            float single = (float)sum[i];
            singles[i] = single == single ? sg_bits_of_float(single) : 0x7fffffff;
        }
}

static void multiply_floats(const sg_product *p, sg_operands *operands, numbers *work) {
    unsigned m = p->m, n = p->n, k = p->k;
    widen(p->a.type, operands->a, m * k, work->a.real);
    for (unsigned i = 0; p->negate && i < m * k; i++)
        work->a.real[i] = -work->a.real[i];
    turn(operands->b, sg_words[p->b.type].bits, n, k, (unsigned char *)work->sum);
    widen(p->b.type, (const unsigned char *)work->sum, n * k, work->b.real);
    load_sums(p->c.type, operands->sum, m * n, work->sum);
    for (unsigned row = 0; row < m; row += PANEL_ROWS)
        for (unsigned column = 0; column < n; column += PANEL)
            multiply_panel(work->a.real + row * k, work->b.real + column, n, k, work->sum + row * n + column);
    store_sums(p->d.type, work->sum, m * n, operands->sum);
}

static void multiply_doubles(const sg_product *p, sg_operands *operands) {
    const double *a = (const double *)operands->a, *b = (const double *)operands->b;
    double *sum = (double *)operands->sum;
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++)
            for (unsigned x = 0; x < p->k; x++)
                sum[i * p->n + j] = fma(a[i * p->k + x], b[j * p->k + x], sum[i * p->n + j]);
}

/* ---- integers ---- */

/* No sum of one step overflows: 64 products of at most 2^16. Only c can make it. */
static inline int32_t add_sum(const sg_product *p, int32_t c, int32_t products) {
    int64_t sum = (int64_t)c + products;
    if (!p->saturate)
        return (int32_t)(uint32_t)(uint64_t)sum;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

static void multiply_integers(const sg_product *p, sg_operands *operands, numbers *work) {
    unsigned m = p->m, n = p->n, k = p->k;
    int32_t *columns = (int32_t *)work->sum, *d = (int32_t *)operands->sum;
    widen_integers(p->a.type, operands->a, m * k, work->a.integer);
    widen_integers(p->b.type, operands->b, n * k, columns);
    turn((const unsigned char *)columns, 32, n, k, (unsigned char *)work->b.integer);
    for (unsigned i = 0; i < m; i++) {
        int32_t products[256] __attribute__((aligned(64))) = {0};
        for (unsigned x = 0; x < k; x++) {
            int32_t factor = work->a.integer[i * k + x];
            const int32_t *row = work->b.integer + x * n;
            for (unsigned j = 0; j < n; j++)
                products[j] += factor * row[j];
        }
        for (unsigned j = 0; j < n; j++)
            d[i * n + j] = add_sum(p, d[i * n + j], products[j]);
    }
}

static void multiply_bits(const sg_product *p, sg_operands *operands) {
    const uint64_t *a = (const uint64_t *)operands->a, *b = (const uint64_t *)operands->b;
    int32_t *d = (int32_t *)operands->sum;
    unsigned words = p->k / 64;
    for (unsigned i = 0; i < p->m; i++)
        for (unsigned j = 0; j < p->n; j++) {
            int32_t count = 0;
            for (unsigned x = 0; x < words; x++) {
                uint64_t y = a[i * words + x], z = b[j * words + x];
                count += __builtin_popcountll(p->exclusive ? y ^ z : y & z);
            }
            d[i * p->n + j] = add_sum(p, d[i * p->n + j], count);
        }
}

/* ---- both ---- */

void SG_NAME(multiply)(const sg_product *product, sg_operands *operands) {
    numbers work;
    switch (product->a.type) {
    case W_f64: multiply_doubles(product, operands); return;
    case W_b1: multiply_bits(product, operands); return;
    case W_s8: case W_u8: case W_s4: case W_u4: multiply_integers(product, operands, &work); return;
    default: multiply_floats(product, operands, &work); return;
    }
}

HANDLER_FOR(mma) {
    if (!sg_whole_warp(warp, insn))
        return;
    const sg_product *product = sg_product_of(warp, insn);
    sg_operands operands;
    SG_NAME(take_tiles)(warp, &product->a, operands.a);
    SG_NAME(take_tiles)(warp, &product->b, operands.b);
    SG_NAME(take_tiles)(warp, &product->c, operands.sum);
    SG_NAME(multiply)(product, &operands);
    SG_NAME(put_tiles)(warp, &product->d, operands.sum);
}

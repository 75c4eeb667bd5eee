/* Two or four lanes in a word: vadd2 to vset4. Compilers use vabsdiff4 for byte arithmetic; a card
 * takes several instructions for each, so speed is of no concern here. */
#include "lanes.h"

enum { VADD, VSUB, VAVRG, VABSDIFF, VMIN, VMAX, VSET };
enum { SIGNED_D = 1, SIGNED_A = 2, SIGNED_B = 4, SATURATE = 8, SUM = 16 };

static inline int32_t lane_of(uint32_t word, int index, int bits, bool is_signed) {
    uint32_t top = word << (32 - bits - index * bits);
    return is_signed ? (int32_t)top >> (32 - bits) : (int32_t)(top >> (32 - bits));
}

static inline bool holds(uint8_t comparison, int32_t a, int32_t b) {
    switch (comparison) {
    case W_eq: return a == b;
    case W_ne: return a != b;
    case W_lt: return a < b;
    case W_le: return a <= b;
    case W_gt: return a > b;
    default: return a >= b;
    }
}

static inline int32_t operate(const sg_insn *insn, int32_t a, int32_t b) {
    switch (insn->variant) {
    case VADD: return a + b;
    case VSUB: return a - b;
    case VAVRG: return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case VABSDIFF: return a > b ? a - b : b - a;
    case VMIN: return a < b ? a : b;
    case VMAX: return a > b ? a : b;
    default: return holds(insn->round, a, b);
    }
}

static inline int32_t clamp_lane(int32_t value, int bits, bool is_signed) {
    int32_t high = (1 << (bits - is_signed)) - 1, low = is_signed ? -high - 1 : 0;
    return value < low ? low : value > high ? high : value;
}

/* With .add, the lanes' results are added to c; else they are the lanes of the result. */
HANDLER_FOR(video) {
    const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
    int bits = 32 / insn->count;
    FILL(uint32_t, 0, for (int i = 0; i < LANES; i++) {
        uint32_t sum = c[i], lanes = 0;
        for (int k = 0; k < insn->count; k++) {
            int32_t value = operate(insn, lane_of(a[i], k, bits, insn->flags & SIGNED_A), lane_of(b[i], k, bits, insn->flags & SIGNED_B));
            if (insn->flags & SATURATE)
                value = clamp_lane(value, bits, insn->flags & SIGNED_D);
            sum += (uint32_t)value;
            lanes |= ((uint32_t)value & ((1u << bits) - 1)) << (k * bits);
        }
        out[i] = insn->flags & SUM ? sum : lanes;
    });
}

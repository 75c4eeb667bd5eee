/* Atomics. On device memory they are the host's: other workers and other processes share it.
 * A block runs on one thread, so its shared memory needs no more than a read and a write. */
#include "halves.h"
#include "lanes.h"

/* variant: sg_word of the operator; flags: 1 signed, 2 a result is wanted, 4 bf16x2. */
#define OPERATE(T, S)                                                     \
    static inline T operate_##T(const sg_insn *insn, T old, T b, T c) {   \
        bool is_signed = insn->flags & 1;                                 \
        switch (insn->variant) {                                          \
        case W_add: return (T)(old + b);                                  \
        case W_and: return old & b;                                       \
        case W_or: return old | b;                                        \
        case W_xor: return old ^ b;                                       \
        case W_exch: return b;                                            \
        case W_cas: return old == b ? c : old;                            \
        case W_min: return is_signed ? ((S)old < (S)b ? old : b) : old < b ? old : b; \
        case W_max: return is_signed ? ((S)old > (S)b ? old : b) : old > b ? old : b; \
        case W_inc: return old >= b ? 0 : (T)(old + 1);                   \
        default: return old == 0 || old > b ? b : (T)(old - 1); /* dec */ \
        }                                                                 \
    }
OPERATE(uint16_t, int16_t)
OPERATE(uint32_t, int32_t)
OPERATE(uint64_t, int64_t)

#define EXCHANGE(T)                                                       \
    static inline T exchange_##T(T *place, const sg_insn *insn, T b, T c) { \
        if (insn->space == SPACE_SHARED) {                                \
            T old = *place;                                               \
            *place = operate_##T(insn, old, b, c);                        \
            return old;                                                   \
        }                                                                 \
        if (insn->variant == W_add)                                       \
            return __atomic_fetch_add(place, b, __ATOMIC_SEQ_CST);        \
        T old = __atomic_load_n(place, __ATOMIC_RELAXED);                 \
        while (!__atomic_compare_exchange_n(place, &old, operate_##T(insn, old, b, c), false, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_RELAXED)) {          \
        }                                                                 \
        return old;                                                       \
    }
EXCHANGE(uint16_t)
EXCHANGE(uint32_t)
EXCHANGE(uint64_t)

static inline uint64_t lane_address(const sg_warp *warp, const sg_insn *insn, int i) {
    uint64_t offset = (uint64_t)insn->immediate;
    switch (insn->mode) {
    case ADDRESS_WIDE: return SOURCE(uint64_t, 4)[i] + offset;
    case ADDRESS_NARROW: return (uint32_t)(SOURCE(uint32_t, 4)[i] + (uint32_t)offset);
    case ADDRESS_FRAME: return warp->frame->local_base + offset;
    default: return offset;
    }
}

/* In the order of the lanes; a fault ends the instruction where it happens. `change` makes
 * `old` of `place` and the lane's operands. */
#define ATOM(name, T, C, change)                                          \
    HANDLER_FOR(name) {                                                   \
        const C *b_ = SOURCE(C, 1), *c_ = SOURCE(C, 2);                   \
        for (uint32_t left = warp->mask; left; left &= left - 1) {        \
            int i = __builtin_ctz(left);                                  \
            uint64_t address = lane_address(warp, insn, i);               \
            T *place = (T *)sg_reach_lane(warp, insn, (unsigned)i, insn->space, address, sizeof(T), true); \
            if (!place)                                                   \
                return;                                                   \
            T b = (T)b_[i], c = (T)c_[i], old;                            \
            (void)c;                                                      \
            change;                                                       \
            if (insn->flags & 2)                                          \
                DESTINATION(C, 0)[i] = old;                               \
        }                                                                 \
    }
ATOM(atom_16, uint16_t, uint32_t, old = exchange_uint16_t(place, insn, b, c))
ATOM(atom_32, uint32_t, uint32_t, old = exchange_uint32_t(place, insn, b, c))
ATOM(atom_64, uint64_t, uint64_t, old = exchange_uint64_t(place, insn, b, c))

/* Floating-point additions: a compare-and-swap of the bits. */
#define ADD_BITS(T, sum)                                                  \
    old = __atomic_load_n(place, __ATOMIC_RELAXED);                       \
    while (!__atomic_compare_exchange_n(place, &old, (T)(sum), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) { \
    }

static inline uint32_t add_single(uint32_t a, uint32_t b) {
    float sum = sg_float_of(a) + sg_float_of(b);
    return sum != sum ? 0x7fffffffu : sg_bits_of_float(sum);
}
static inline uint64_t add_double(uint64_t a, uint64_t b) {
    return sg_bits_of_double(sg_double_of(a) + sg_double_of(b));
}
static inline uint32_t add_halves(uint32_t a, uint32_t b, const sg_insn *insn) {
    uint32_t both = 0;
    for (int h = 0; h < 32; h += 16) {
        uint32_t x = a >> h & 0xffff, y = b >> h & 0xffff;
        both |= (insn->flags & 4 ? sg_bf16_of(sg_sum_to_odd(sg_float_of_bf16(x), sg_float_of_bf16(y)), 0)
                                 : sg_f16_of((double)sg_float_of_f16(x) + (double)sg_float_of_f16(y), 0))
                << h;
    }
    return both;
}
ATOM(atom_f32, uint32_t, uint32_t, ADD_BITS(uint32_t, add_single(old, b)))
ATOM(atom_f64, uint64_t, uint64_t, ADD_BITS(uint64_t, add_double(old, b)))
ATOM(atom_f16x2, uint32_t, uint32_t, ADD_BITS(uint32_t, add_halves(old, b, insn)))

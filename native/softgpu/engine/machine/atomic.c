/* Atomics. On device memory they are the host's: other workers and other processes share it.
 * A block runs on one thread, so its shared memory needs no more than a read and a write. */
#include "addresses.h"
#include "halves.h"

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

/* The host's addresses of all active lanes, where one look shows that they are good. */
static inline bool reach_all(sg_warp *warp, const sg_insn *insn, const uint64_t *ea, unsigned size, uintptr_t *origin) {
    if (insn->space == SPACE_GLOBAL || insn->space == SPACE_GENERIC) {
        const sg_cached_range *cached = cached_range(warp, insn);
        *origin = (uintptr_t)cached->range.host - cached->range.first;
        return all_within(warp, cached, ea, size, true);
    }
    uint64_t bound = warp->block->grid->shared_bytes, last = bound - size, bad = bound < size;
    *origin = (uintptr_t)warp->block->shared;
    EACH_LANE bad |= (uint64_t)((ea[i] > last) | ((ea[i] & (size - 1)) != 0)) & warp->lanes[i];
    return insn->space == SPACE_SHARED && !bad;
}

/* In the order of the lanes; a fault ends the instruction where it happens. `change` makes
 * `old` of `place` and the lane's operands. The first of a vector's components checks the whole. */
#define ATOM(name, T, C, change)                                          \
    HANDLER_FOR(name) {                                                   \
        const C *b_ = SOURCE(C, 1), *c_ = SOURCE(C, 2);                   \
        uint64_t ea[LANES] __attribute__((aligned(64)));                  \
        uintptr_t origin;                                                 \
        all_addresses(warp, insn, ea);                                    \
        unsigned size = (unsigned)sizeof(T) * insn->count;                \
        bool reached = reach_all(warp, insn, ea, size, &origin);          \
        for (uint32_t left = warp->mask; left; left &= left - 1) {        \
            int i = first_lane(left);                                     \
            uint64_t address = ea[i];                                     \
            T *place = (T *)(origin + address);                           \
            if (!reached)                                                 \
                place = (T *)(void *)sg_reach_lane(warp, insn, (unsigned)i, insn->space, address, size, true); \
            if (!place)                                                   \
                return;                                                   \
            T b = (T)b_[i], c = (T)c_[i], old;                            \
            (void)c, (void)address;                                       \
            change;                                                       \
            if (insn->flags & 2)                                          \
                DESTINATION(C, 0)[i] = old;                               \
        }                                                                 \
    }
ATOM(atom_16, uint16_t, uint32_t, old = exchange_uint16_t(place, insn, b, c))
ATOM(atom_32, uint32_t, uint32_t, old = exchange_uint32_t(place, insn, b, c))
ATOM(atom_64, uint64_t, uint64_t, old = exchange_uint64_t(place, insn, b, c))

/* Additions to device memory whose result nobody reads: a result's store would have to be done before the
 * next lane's addition, which is a barrier to the host. */
#define COUNT(name, general, T)                                           \
    HANDLER_FOR(name) {                                                   \
        uint64_t ea[LANES] __attribute__((aligned(64)));                  \
        uintptr_t origin;                                                 \
        all_addresses(warp, insn, ea);                                    \
        if (warp->mask != (uint32_t)FULL_MASK || !reach_all(warp, insn, ea, sizeof(T), &origin)) { \
            SG_NAME(general)(warp, insn);                                 \
            return;                                                       \
        }                                                                 \
        const T *b = SOURCE(T, 1);                                        \
        for (int i = 0; i < LANES; i++)                                   \
            __atomic_fetch_add((T *)(origin + ea[i]), b[i], __ATOMIC_SEQ_CST); \
    }
COUNT(count_32, atom_32, uint32_t)
COUNT(count_64, atom_64, uint64_t)

/* Floating-point additions: a compare-and-swap of the bits. */
#define ADD_BITS(T, sum)                                                  \
    old = __atomic_load_n(place, __ATOMIC_RELAXED);                       \
    while (!__atomic_compare_exchange_n(place, &old, (T)(sum), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) { \
    }

/* To global memory, subnormals count as zero; in shared memory they do not (PTX ISA, atom). */
static inline uint32_t flush(uint32_t a) { return a & 0x7f800000u ? a : a & 0x80000000u; }
static inline bool in_shared(const sg_insn *insn, uint64_t address) {
    return insn->space == SPACE_SHARED || (insn->space == SPACE_GENERIC && address - SG_SHARED_WINDOW < SG_WINDOW_BYTES);
}

static inline uint32_t add_single(uint32_t a, uint32_t b, bool keep) {
    a = keep ? a : flush(a), b = keep ? b : flush(b);
    float sum = sg_float_of(a) + sg_float_of(b);
    uint32_t bits = sum != sum ? 0x7fffffffu : sg_bits_of_float(sum);
    return keep ? bits : flush(bits);
}
static inline uint64_t add_double(uint64_t a, uint64_t b) {
    return sg_bits_of_double(sg_double_of(a) + sg_double_of(b));
}
/* flags: 4 bf16. min and max prefer the number and order the zeros. */
static inline uint32_t operate_half(uint32_t a, uint32_t b, const sg_insn *insn) {
    bool bf16 = insn->flags & 4;
    double x = (double)(bf16 ? sg_float_of_bf16(a) : sg_float_of_f16(a));
    double y = (double)(bf16 ? sg_float_of_bf16(b) : sg_float_of_f16(b));
    bool first = x < y || (x == y && a >> 15);
    double result = insn->variant == W_add ? sg_sum_to_odd(x, y) : x != x ? y : y != y ? x
                    : (insn->variant == W_min) == first ? x : y;
    return bf16 ? sg_bf16_of(result, 0) : sg_f16_of(result, 0);
}
static inline uint32_t operate_halves(uint32_t a, uint32_t b, const sg_insn *insn) {
    return operate_half(a & 0xffff, b & 0xffff, insn) | operate_half(a >> 16, b >> 16, insn) << 16;
}
ATOM(atom_f32, uint32_t, uint32_t, ADD_BITS(uint32_t, add_single(old, b, in_shared(insn, address))))
ATOM(atom_f64, uint64_t, uint64_t, ADD_BITS(uint64_t, add_double(old, b)))
ATOM(atom_half, uint16_t, uint32_t, ADD_BITS(uint16_t, operate_half(old, b, insn)))
ATOM(atom_f16x2, uint32_t, uint32_t, ADD_BITS(uint32_t, operate_halves(old, b, insn)))

/* ---- 128 bits: exch and cas ----
 *
 * cmpxchg16b by hand: the compiler would call libatomic, one more library in the tenant's
 * process, and a lock of ours would not hold between processes nor over a fork. Every 64-bit
 * processor that this runs on has the instruction, though the baseline does not promise it. */
typedef struct {
    uint64_t low, high;
} pair128;

static inline bool swap_128(pair128 *place, pair128 *old, pair128 stored) {
#if defined(__x86_64__)
    bool swapped;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(swapped), "+m"(*place), "+a"(old->low), "+d"(old->high)
                     : "b"(stored.low), "c"(stored.high)
                     : "memory");
    return swapped;
#else
    unsigned __int128 before = (unsigned __int128)old->high << 64 | old->low;
    unsigned __int128 after = (unsigned __int128)stored.high << 64 | stored.low;
    unsigned __int128 found = __sync_val_compare_and_swap((unsigned __int128 *)place, before, after);
    *old = (pair128){(uint64_t)found, (uint64_t)(found >> 64)};
    return found == before;
#endif
}

/* Operands: 0 and 7 the result's halves, 1 and 5 what is compared or exchanged, 2 and 6 what cas stores. */
HANDLER_FOR(atom_128) {
    for (uint32_t left = warp->mask; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        uint64_t address = sg_lane_address(warp, insn, i);
        pair128 *place = (pair128 *)(void *)sg_reach_lane(warp, insn, (unsigned)i, insn->space, address, 16, true);
        if (!place)
            return;
        pair128 compared = {SOURCE(uint64_t, 1)[i], SOURCE(uint64_t, 5)[i]};
        pair128 stored = {SOURCE(uint64_t, 2)[i], SOURCE(uint64_t, 6)[i]}, old = compared;
        while (!swap_128(place, &old, stored) && insn->variant == W_exch) {
        }
        if (insn->flags & 2 && insn->operand[0])
            DESTINATION(uint64_t, 0)[i] = old.low;
        if (insn->flags & 2 && insn->operand[7])
            DESTINATION(uint64_t, 7)[i] = old.high;
    }
}

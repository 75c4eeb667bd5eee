/* The shape of a handler that computes: a loop over 32 lanes, written so that the compiler
 * makes vector code of it, straight into the destination when every living lane runs, else
 * into the warp's scratch column, which is then blended by the mask.
 *
 * Files that include this are compiled once for each instruction set in ISA of
 * CMakeLists.txt; SG_ISA is the set's name. */
#ifndef SG_MACHINE_LANES_H
#define SG_MACHINE_LANES_H

#include "machine.h"

#include <math.h>

#define SG_PASTE3(a, b, c) a##b##c
#define SG_NAME2(isa, name) SG_PASTE3(isa, _, name)
#define SG_NAME(name) SG_NAME2(SG_ISA, name)
/* One handler; its name is in handlers.def. */
#define HANDLER_FOR(name) \
    void SG_NAME(name)(sg_warp * warp, const sg_insn *insn); \
    void SG_NAME(name)(sg_warp * warp, const sg_insn *insn)

#define SOURCE(T, n) \
    ((const T *)__builtin_assume_aligned(warp->base[insn->operand[n] & 1] + insn->operand[n], 64))
#define PREDICATE(n) (*(const uint32_t *)(warp->base[insn->operand[n] & 1] + insn->operand[n]))
#define DESTINATION(T, n) ((T *)__builtin_assume_aligned((unsigned char *)warp->base[0] + insn->operand[n], 64))

/* A destination may be a source too, in the same lane: no dependence between lanes. */
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)

static inline void sg_blend_32(const sg_warp *warp, void *destination, const void *values) {
    uint32_t *d = __builtin_assume_aligned(destination, 64);
    const uint32_t *v = __builtin_assume_aligned(values, 64);
    const uint32_t *m = warp->lanes;
    EACH_LANE d[i] = (v[i] & m[i]) | (d[i] & ~m[i]);
}

static inline void sg_blend_64(const sg_warp *warp, void *destination, const void *values) {
    uint64_t *d = __builtin_assume_aligned(destination, 64);
    const uint64_t *v = __builtin_assume_aligned(values, 64);
    const uint32_t *m = warp->lanes;
    EACH_LANE {
        uint64_t mask = (uint64_t)(int64_t)(int32_t)m[i];
        d[i] = (v[i] & mask) | (d[i] & ~mask);
    }
}

/* Runs a loop with `out` as the column to fill, of type T, 4 or 8 bytes wide. The scratch column is the
 * warp's: one on the stack would have every handler align its frame first. */
#define FILL(T, n, ...)                                                    \
    do {                                                                   \
        T *target_ = DESTINATION(T, n);                                    \
        T *out = __builtin_assume_aligned(warp->full ? (void *)target_ : (void *)warp->scratch, 64); \
        __VA_ARGS__;                                                       \
        if (__builtin_expect(!warp->full, 0)) {                            \
            if (sizeof(T) == 4)                                            \
                sg_blend_32(warp, target_, warp->scratch);                 \
            else                                                           \
                sg_blend_64(warp, target_, warp->scratch);                 \
        }                                                                  \
    } while (0)

/* d = f(a), f(a, b), f(a, b, c): T is the type in the column, S what is stored. */
#define UNARY(name, S, T, expression)                     \
    HANDLER_FOR(name) {                                   \
        const T *a_ = SOURCE(T, 1);                       \
        FILL(S, 0, EACH_LANE {                            \
            T a = a_[i];                                  \
            out[i] = (S)(expression);                     \
        });                                               \
    }
#define BINARY(name, S, T, expression)                    \
    HANDLER_FOR(name) {                                   \
        const T *a_ = SOURCE(T, 1), *b_ = SOURCE(T, 2);   \
        FILL(S, 0, EACH_LANE {                            \
            T a = a_[i], b = b_[i];                       \
            out[i] = (S)(expression);                     \
        });                                               \
    }
#define TERNARY(name, S, T, expression)                                         \
    HANDLER_FOR(name) {                                                         \
        const T *a_ = SOURCE(T, 1), *b_ = SOURCE(T, 2), *c_ = SOURCE(T, 3);     \
        FILL(S, 0, EACH_LANE {                                                  \
            T a = a_[i], b = b_[i], c = c_[i];                                  \
            out[i] = (S)(expression);                                           \
        });                                                                     \
    }

static inline void sg_set_predicate(sg_warp *warp, const sg_insn *insn, int n, uint32_t value) {
    uint32_t *d = (uint32_t *)((unsigned char *)warp->base[0] + insn->operand[n]);
    *d = (value & warp->mask) | (*d & ~warp->mask);
}

/* 32 lanes of 0 or ~0 as one mask. */
static inline uint32_t sg_gather_bits(const uint32_t *lanes);

#if defined(__SSE2__)
#include <immintrin.h>
static inline uint32_t sg_gather_bits(const uint32_t *lanes) {
    uint32_t bits = 0;
#if defined(__AVX512DQ__)
    for (int i = 0; i < 2; i++)
        bits |= (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(lanes + 16 * i)) << (16 * i);
#elif defined(__AVX__)
    for (int i = 0; i < 4; i++)
        bits |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)lanes + 8 * i)) << (8 * i);
#else
    for (int i = 0; i < 8; i++)
        bits |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)lanes + 4 * i)) << (4 * i);
#endif
    return bits;
}
#else
static inline uint32_t sg_gather_bits(const uint32_t *lanes) {
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++)
        bits |= (lanes[i] & 1) << i;
    return bits;
}
#endif

#endif

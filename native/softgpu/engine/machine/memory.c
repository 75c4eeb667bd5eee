/* Loads and stores. The quick ways (rows.h) are tried first: lowering chose which, from how the address is
 * made. What is no row goes by shapes.h. */
#include "shapes.h"

/* A call, so that the quick way in front of it has no frame to make. */
#define SLOWLY static __attribute__((noinline))

/* ---- loads ---- */

/* 16 lanes in a row. Unrolled before it is made vector code, it would stay sixteen moves, and whoever reads
 * the whole column next would wait for all of them. */
#define EACH_OF_ROW _Pragma("GCC ivdep") _Pragma("GCC unroll 1") for (int i = 0; i < HALF; i++)

/* The value at `at` in every lane's access: M in memory, S in the column, through E, which
 * extends the sign. */
#define LOAD(name, M, E, S)                                               \
    static inline void take_rows_##name(const rows *from, S *d) {         \
        const M *low = (const M *)from->base[0], *high = (const M *)from->base[1]; \
        if (from->step) {                                                 \
            EACH_OF_ROW d[i] = (S)(E)low[i];                              \
            EACH_OF_ROW d[HALF + i] = (S)(E)high[i];                      \
        } else {                                                          \
            S first = (S)(E)*low, second = (S)(E)*high;                   \
            EACH_OF_ROW d[i] = first;                                     \
            EACH_OF_ROW d[HALF + i] = second;                             \
        }                                                                 \
    }                                                                     \
    static inline void take_##name(const sg_warp *warp, const shape *from, unsigned at, S *d) { \
        if (!from->run) {                                                 \
            for (uint32_t left = warp->mask; left; left &= left - 1) {    \
                int i = first_lane(left);                                 \
                M value;                                                  \
                memcpy(&value, from->lane[i] + at, sizeof value);         \
                d[i] = (S)(E)value;                                       \
            }                                                             \
        } else if (from->at.step == sizeof(M)) {                          \
            take_rows_##name(&from->at, d);                               \
        } else if (from->at.step) {                                       \
            for (int i = 0; i < LANES; i++) {                             \
                M value;                                                  \
                memcpy(&value, from->at.base[i / HALF] + from->at.step * (unsigned)(i % HALF) + at, sizeof value); \
                d[i] = (S)(E)value;                                       \
            }                                                             \
        } else {                                                          \
            M low, high;                                                  \
            memcpy(&low, from->at.base[0] + at, sizeof low);              \
            memcpy(&high, from->at.base[1] + at, sizeof high);            \
            const uint32_t *m = warp->lanes;                              \
            if (warp->full) {                                             \
                EACH_OF_ROW d[i] = (S)(E)low;                             \
                EACH_OF_ROW d[HALF + i] = (S)(E)high;                     \
            } else {                                                      \
                EACH_LANE d[i] = m[i] ? (S)(E)low : d[i];                 \
            }                                                             \
        }                                                                 \
    }                                                                     \
    SLOWLY void name##_slowly(sg_warp *warp, const sg_insn *insn) {       \
        shape from;                                                       \
        if (!reach(warp, insn, (unsigned)sizeof(M) * insn->count, false, &from)) \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            take_##name(warp, &from, k * (unsigned)sizeof(M), DESTINATION(S, k)); \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        rows from;                                                        \
        if (insn->count == 1 && reach_rows(warp, insn, (unsigned)sizeof(M), false, &from)) \
            take_rows_##name(&from, DESTINATION(S, 0));                   \
        else                                                              \
            name##_slowly(warp, insn);                                    \
    }                                                                     \
    HANDLER_FOR(name##_row) {                                             \
        const M *row = (const M *)reach_row(warp, insn, (unsigned)sizeof(M), false); \
        if (!row) {                                                       \
            SG_NAME(name)(warp, insn);                                    \
            return;                                                       \
        }                                                                 \
        S *d = DESTINATION(S, 0);                                         \
        EACH_LANE d[i] = (S)(E)row[i];                                    \
    }                                                                     \
    HANDLER_FOR(name##_shared) {                                          \
        rows from;                                                        \
        if (reach_shared(warp, insn, (unsigned)sizeof(M), &from))         \
            take_rows_##name(&from, DESTINATION(S, 0));                   \
        else                                                              \
            name##_slowly(warp, insn);                                    \
    }
LOAD(ld_u8, uint8_t, uint32_t, uint32_t)
LOAD(ld_s8, int8_t, int32_t, uint32_t)
LOAD(ld_u16, uint16_t, uint32_t, uint32_t)
LOAD(ld_s16, int16_t, int32_t, uint32_t)
LOAD(ld_32, uint32_t, uint32_t, uint32_t)
LOAD(ld_u8_64, uint8_t, uint64_t, uint64_t)
LOAD(ld_s8_64, int8_t, int64_t, uint64_t)
LOAD(ld_u16_64, uint16_t, uint64_t, uint64_t)
LOAD(ld_s16_64, int16_t, int64_t, uint64_t)
LOAD(ld_u32_64, uint32_t, uint64_t, uint64_t)
LOAD(ld_s32_64, int32_t, int64_t, uint64_t)
LOAD(ld_64, uint64_t, uint64_t, uint64_t)

/* ---- stores ---- */

#define STORE(name, M, S)                                                 \
    static inline void put_rows_##name(const rows *to, const S *s) {      \
        M *low = (M *)to->base[0], *high = (M *)to->base[1];              \
        if (to->step) {                                                   \
            EACH_OF_ROW low[i] = (M)s[i];                                 \
            EACH_OF_ROW high[i] = (M)s[HALF + i];                         \
        } else { /* the last lane's value stays */                        \
            *low = (M)s[HALF - 1];                                        \
            *high = (M)s[LANES - 1];                                      \
        }                                                                 \
    }                                                                     \
    static inline void put_##name(const sg_warp *warp, const shape *to, unsigned at, const S *s) { \
        if (!to->run) {                                                   \
            for (uint32_t left = warp->mask; left; left &= left - 1) {    \
                int i = first_lane(left);                                 \
                M value = (M)s[i];                                        \
                memcpy(to->lane[i] + at, &value, sizeof value);           \
            }                                                             \
        } else if (to->at.step == sizeof(M)) {                            \
            put_rows_##name(&to->at, s);                                  \
        } else if (to->at.step) {                                         \
            for (int i = 0; i < LANES; i++) {                             \
                M value = (M)s[i];                                        \
                memcpy(to->at.base[i / HALF] + to->at.step * (unsigned)(i % HALF) + at, &value, sizeof value); \
            }                                                             \
        } else { /* all to one place, or each half: the last lane's value stays */ \
            M low = (M)s[warp->mask & 0xffff ? 31 - __builtin_clz(warp->mask & 0xffff) : 31 - __builtin_clz(warp->mask)]; \
            M high = (M)s[31 - __builtin_clz(warp->mask)];                \
            memcpy(to->at.base[0] + at, &low, sizeof low);                   \
            memcpy(to->at.base[1] + at, &high, sizeof high);                 \
        }                                                                 \
    }                                                                     \
    SLOWLY void name##_slowly(sg_warp *warp, const sg_insn *insn) {       \
        shape to;                                                         \
        if (!reach(warp, insn, (unsigned)sizeof(M) * insn->count, true, &to)) \
            return;                                                       \
        for (unsigned k = 0; k < insn->count; k++)                        \
            put_##name(warp, &to, k * (unsigned)sizeof(M), SOURCE(S, k)); \
    }                                                                     \
    HANDLER_FOR(name) {                                                   \
        rows to;                                                          \
        if (insn->count == 1 && reach_rows(warp, insn, (unsigned)sizeof(M), true, &to)) \
            put_rows_##name(&to, SOURCE(S, 0));                           \
        else                                                              \
            name##_slowly(warp, insn);                                    \
    }                                                                     \
    HANDLER_FOR(name##_row) {                                             \
        M *row = (M *)reach_row(warp, insn, (unsigned)sizeof(M), true);   \
        if (!row) {                                                       \
            SG_NAME(name)(warp, insn);                                    \
            return;                                                       \
        }                                                                 \
        const S *s = SOURCE(S, 0);                                        \
        EACH_LANE row[i] = (M)s[i];                                       \
    }                                                                     \
    HANDLER_FOR(name##_shared) {                                          \
        rows to;                                                          \
        if (reach_shared(warp, insn, (unsigned)sizeof(M), &to))           \
            put_rows_##name(&to, SOURCE(S, 0));                           \
        else                                                              \
            name##_slowly(warp, insn);                                    \
    }
STORE(st_8, uint8_t, uint32_t)
STORE(st_16, uint16_t, uint32_t)
STORE(st_32, uint32_t, uint32_t)
STORE(st_64, uint64_t, uint64_t)

/* ---- addresses as values ---- */

/* cvta: to and from a window; a null pointer has no special value there. */
HANDLER_FOR(offset_address) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint64_t offset = (uint64_t)insn->immediate;
    FILL(uint64_t, 0, EACH_LANE out[i] = a[i] + offset);
}

static inline bool lies_in(uint64_t address, unsigned space) {
    switch (space) {
    case SPACE_SHARED: return address - SG_SHARED_WINDOW < SG_WINDOW_BYTES;
    case SPACE_LOCAL: return address - SG_LOCAL_WINDOW < SG_WINDOW_BYTES;
    case SPACE_PARAM: return address - SG_PARAM_WINDOW < SG_WINDOW_BYTES;
    default: return address >= SG_CODE_WINDOW + SG_WINDOW_BYTES || address - SG_GRID_WINDOW < SG_WINDOW_BYTES;
    }
}

HANDLER_FOR(isspacep) {
    const uint64_t *a = SOURCE(uint64_t, 1);
    uint32_t result = 0;
    for (int i = 0; i < LANES; i++)
        result |= (uint32_t)lies_in(a[i], insn->space) << i;
    sg_set_predicate(warp, insn, 0, result);
}

HANDLER_FOR(fence) {
    (void)warp, (void)insn;
    atomic_thread_fence(memory_order_seq_cst);
}

/* The functions that this library stands in front of, and where each really is.
 *
 * Compiled once into each of the two governors: SURFACE_SYMBOLS names the list that
 * native/cuda/symbols.cmake wrote from cuda.tsv or nvml.tsv.
 */
#ifndef GOVERNOR_SURFACE_H
#define GOVERNOR_SURFACE_H

#include <stdbool.h>
#include <stdint.h>

/* One index a symbol: SYMBOL_cuInit. */
enum {
#define X(index, symbol, base, version, per_thread, class) SYMBOL_##symbol = index,
#include SURFACE_SYMBOLS
#undef X
    SURFACE_COUNT
};

enum surface_class { class_pass, class_account, class_limit, class_virtualise, class_refuse };
enum surface_stream { stream_none, stream_ptsz, stream_ptds };

struct surface_symbol {
    const char *name;
    const char *base;
    int version;
    uint8_t per_thread; /* enum surface_stream */
    uint8_t class;      /* enum surface_class */
    void *own;          /* what we export under that name */
};

extern const struct surface_symbol surface_symbols[SURFACE_COUNT];

/* Where each function goes: the driver's own, or one of the answers below where the driver lacks
 * it, the share refuses it, or nothing may run. Pass-through stubs jump through it. */
extern void *surface_real[SURFACE_COUNT];

/* Whether `symbol` has a C function here that must be called instead of the driver's. */
bool surface_wrapped(unsigned symbol);

/* Point every entry into `driver`, a handle of dlopen; what it lacks answers for itself. */
void surface_fill(void *driver);
/* Point every entry to the answer of a share that cannot start. */
void surface_close(void);

/* The real function, with its type: REAL(cuInit, int (*)(unsigned))(0). Only after
 * governor_start() said true. */
#define REAL(symbol, type) ((type)__atomic_load_n(&surface_real[SYMBOL_##symbol], __ATOMIC_RELAXED))

#define EXPORTED __attribute__((visibility("default")))

#endif

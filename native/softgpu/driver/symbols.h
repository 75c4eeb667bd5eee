/* Every function of the driver API, generated at build time from native/cuda/cuda.tsv. */
#ifndef SG_SYMBOLS_H
#define SG_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "late_symbol.h"

typedef struct {
    const char *base;
    int version;
    bool per_thread;
    int (*address)(void);
} sg_symbol;

extern const sg_symbol sg_symbols[];
extern const size_t sg_symbol_count;

/* What a function without an implementation does: name itself in the log, once, and answer. */
int sg_call_unsupported(unsigned index, const char *name);

#endif

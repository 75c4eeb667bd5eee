/* Functions that a driver of an older branch does not have: generate_stubs.py. */
#ifndef SG_LATE_SYMBOL_H
#define SG_LATE_SYMBOL_H

#include <stdbool.h>

typedef struct {
    const char *name;
    int version;        /* of CUDA, in which it appeared */
    _Atomic bool named; /* in the log */
} sg_late_symbol;

extern sg_late_symbol sg_late_symbols[];

/* For the generated gates: what the library answers instead of the function, 0 where it is there. */
int sg_withdrawn(unsigned late);

#endif

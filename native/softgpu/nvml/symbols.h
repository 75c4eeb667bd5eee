/* For the generated stubs. */
#ifndef SG_SYMBOLS_H
#define SG_SYMBOLS_H

#include "late_symbol.h"

int sg_call_unsupported(unsigned index, const char *name);

#endif

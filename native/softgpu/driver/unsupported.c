#include <stdatomic.h>

#include "driver.h"
#include "symbols.h"

enum { SYMBOL_LIMIT = 2048 };

int sg_call_unsupported(unsigned index, const char *name) {
    static _Atomic bool said[SYMBOL_LIMIT];
    CUresult ready = sg_ready();
    if (ready != CUDA_SUCCESS)
        return ready;
    if (index < SYMBOL_LIMIT && !atomic_exchange(&said[index], true))
        sg_log_unsupported("call", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

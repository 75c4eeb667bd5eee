/* What a share looks like from inside: the one answer that CUDA and NVML both give. */
#ifndef GOVERNOR_WINDOW_H
#define GOVERNOR_WINDOW_H

#include <stdint.h>

#include "ledger.h"
#include "share.h"

struct window {
    uint64_t total, used, free;
};

/* `device_free` and `device_total` are the card's own. Used may be more than total after a limit
 * was lowered: free is then 0, never less, and never an error. */
static inline struct window window_of(unsigned device, uint64_t device_free, uint64_t device_total)
{
    uint64_t limit = share_memory_limit(device);
    struct window seen = {.total = limit < device_total ? limit : device_total, .used = ledger_used(device)};
    seen.free = seen.used < seen.total ? seen.total - seen.used : 0;
    if (seen.free > device_free)
        seen.free = device_free;
    return seen;
}

#endif

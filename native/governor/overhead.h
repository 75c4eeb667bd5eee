/* What a driver takes by itself during a call, and says in no other way than that less is free.
 *
 * Free memory is the whole card's, so it is measured only where nobody else moved: the same figure twice before
 * and twice after, and the share's own allocations meanwhile taken off. Where it was not quiet, nothing is
 * charged: a neighbour's gigabyte must not become ours. Who in another share allocates between the second look
 * before and the first after, in the time of one load, is mistaken for it, up to MOST.
 */
#ifndef GOVERNOR_OVERHEAD_H
#define GOVERNOR_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct overhead {
    uint64_t free, charged;
    uint64_t context;
    unsigned device;
    bool quiet;
};

/* Where the thread stands; not quiet where it has no context. */
void overhead_begin(struct overhead *before);
/* Bytes taken since, less than 0 where some were given back; `ahead` are charged for it since. False: it was not quiet. */
bool overhead_moved(const struct overhead *before, uint64_t ahead, int64_t *taken);
/* Bytes taken since; 0 where it was not quiet. */
uint64_t overhead_end(const struct overhead *before);

#endif

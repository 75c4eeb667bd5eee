/* What a driver takes for a context as it goes along: local memory of threads and code at a kernel's first launch,
 * heap, stacks and the buffer of printf when their limits are set or first used. Charged to the context, by what is
 * less free (overhead.h). */
#ifndef GOVERNOR_CONTEXT_MEMORY_H
#define GOVERNOR_CONTEXT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "overhead.h"

/* Whether this is the first launch seen of `function`; NULL never is. A graph's memory is its nodes' (cuda_graphs.c). */
bool context_memory_is_first(const void *function);
/* Functions are gone: the same handles may be others. */
void context_memory_forget(void);

/* A launch was made: what was taken for it is charged, past the limit too, for it is taken already. */
void context_memory_launched(const struct overhead *before);

/* Of `more` bytes of stacks, what launches have not taken already for their own. */
uint64_t context_memory_beyond_launches(uint64_t context, uint64_t more);
/* A limit was set: `ahead` bytes were charged for it, `less` are allowed less. */
void context_memory_limited(const struct overhead *before, uint64_t ahead, uint64_t less);

/* The context begins anew: all but what it takes itself is given back. */
void context_memory_reset(uint64_t context);

/* A module was unloaded, and credited: code that came with launches goes with it. */
void context_memory_unloaded(const struct overhead *before);

#endif

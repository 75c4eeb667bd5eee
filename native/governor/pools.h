/* Memory pools: charged by what they reserve, not by what is asked of them.
 *
 * A pool keeps freed memory for reuse as long as its owner's threshold says, and grows in steps of
 * its own. So each pool is charged the larger of what lives in it and what the driver says it has
 * reserved, looked up after every change, before a query, and when room is short.
 */
#ifndef GOVERNOR_POOLS_H
#define GOVERNOR_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "book.h"
#include "cuda_api.h"

/* Memory of `pool` worth `bytes` was freed. */
void pools_freed(uint64_t pool, uint64_t bytes);
/* `bytes` that are charged already are the pool's from now on, as far as it has reserved that much more. */
void pools_absorb(uint64_t pool, uint64_t bytes);
/* Bring every charge to what the driver has reserved now. */
void pools_settle(void);
/* Hand the driver back what our pools on `device` keep idle. True where that freed something. */
bool pools_trim(unsigned device);

/* The pool of the memory that graphs on `device` allocate. */
uint64_t pools_of_graphs(CUdevice device);
/* The device of the share that `pool` takes from. False: a pool that we do not know. */
bool pools_device(uint64_t pool, unsigned *device);

/* Remember which device `pool` takes from. */
CUresult pools_remember(uint64_t pool, CUdevice device);
void pools_destroyed(uint64_t pool);

/* Room in `pool` for `bytes` more: what it keeps idle first, then of the share. Undone by
 * pools_freed where the driver then fails. CUDA_ERROR_NOT_SUPPORTED for a pool we do not know: it
 * is of another process, or of host memory. */
CUresult pools_make_room(uint64_t pool, uint64_t bytes, unsigned *device);

typedef CUresult free_in_order(CUdeviceptr, CUstream);

/* Write the allocation down, into reserved room; or free it again with `give`, and say out of
 * memory, where the pool grew past the limit. */
CUresult pools_keep(struct entry *entry, CUstream stream, free_in_order *give);

#endif

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

/* Memory of `pool` worth `bytes` was freed. */
void pools_freed(uint64_t pool, uint64_t bytes);
/* Bring every charge to what the driver has reserved now. */
void pools_settle(void);
/* Hand the driver back what our pools on `device` keep idle. True where that freed something. */
bool pools_trim(unsigned device);

#endif

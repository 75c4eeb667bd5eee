/* Memory that graphs allocate.
 *
 * A node that allocates has an address at once, and its bytes when the driver likes: when the node is made, when
 * the graph is made executable, or at its first launch. They then stay in the driver's pool of graph memory. So an
 * executable graph is charged, until it is destroyed, what its nodes may take, and all of them together at least
 * what the driver says it has reserved for graphs. No launch takes a byte that is not charged before.
 */
#ifndef GOVERNOR_GRAPH_MEMORY_H
#define GOVERNOR_GRAPH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_api.h"

/* Around the driver call that makes a node of `bytes` on `device`, by name or by capture. */
CUresult graph_memory_node_begins(CUdevice device, uint64_t bytes);
void graph_memory_node_ended(CUdevice device, uint64_t bytes);

#endif

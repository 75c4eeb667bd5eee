#ifndef SG_LAUNCH_H
#define SG_LAUNCH_H

#include "operation.h"

/* How many blocks of this shape one multiprocessor holds at once. */
unsigned sg_resident_blocks(const sg_facts *facts, const sg_kernel_info *info, unsigned threads, size_t dynamic_shared);

/* CPUs that a kernel may use: those this process may run on, within its control group's quota. */
unsigned sg_worker_count(void);

#endif

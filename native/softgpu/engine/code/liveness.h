/* Where registers are alive: the textbook backward data flow over basic blocks. */
#ifndef SG_CODE_LIVENESS_H
#define SG_CODE_LIVENESS_H

#include "lower.h"

typedef struct {
    sg_register *reg;
    size_t first, last; /* positions of instructions */
} sg_interval;

/* Widens each interval to where its register is alive between mentions. A register's `slot`
 * is one more than the index of its interval. */
void sg_extend_live(sg_lowering *lowering, sg_interval *intervals, size_t count);

#endif

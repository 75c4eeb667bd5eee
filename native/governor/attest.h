/* What this process says of itself in its slot: which governor it runs, and what that holds it to.
 *
 * It is the process's own word. It shows who runs an old governor or has not seen a change yet, and
 * that a process which uses the GPU and says nothing here has gone round the governor.
 */
#ifndef GOVERNOR_ATTEST_H
#define GOVERNOR_ATTEST_H

#include <stdint.h>

#include "aliquot_abi.h"

void attest(aliquot_slot *slot, uint32_t limits_seen);
void attest_clear(aliquot_slot *slot);

#endif

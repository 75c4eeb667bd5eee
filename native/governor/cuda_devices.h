/* From the driver's device numbers to the share's. */
#ifndef GOVERNOR_CUDA_DEVICES_H
#define GOVERNOR_CUDA_DEVICES_H

#include <stdbool.h>

#include "cuda_api.h"

/* The device of the share that `device` is; -1 where the driver has not started, or shows none
 * such. By UUID, never by position: the driver's order is its own. */
int devices_share_index(CUdevice device);
/* And the other way; -1 where the driver shows no such device of the share. */
CUdevice devices_of_share(unsigned index);

/* Ask the driver which devices it shows. False, and the share closed, where one is not ours. */
bool devices_learn(void);

#endif

#ifndef SG_FAILING_H
#define SG_FAILING_H

#include "driver.h"
#include "failures.h"
#include "model.h"

/* Before a context is made: whether it can be; *seen is the last event that is before its time. */
CUresult sg_failing_make(sg_gpu *gpu, uint64_t *seen);
/* Ends the context where its device was told something that ends contexts. */
void sg_failing_check(CUcontext context);
/* Every call that gives a program device memory asks this once, after its arguments are found right: out of memory
 * where it was told to be. */
CUresult sg_failing_allocation(sg_gpu *gpu);
/* What a kernel of `ns` takes now. */
uint64_t sg_failing_duration(sg_device *device, uint64_t ns);
/* After a kernel, in its turn. */
void sg_failing_linger(sg_device *device);
bool sg_device_lost(const sg_failures *failures);
/* What cuDriverGetVersion says, and which functions there are: of the oldest branch that a device was told
 * (sg_oldest_branch). */
int sg_driver_cuda_version(bool cheap);
/* UNSUPPORTED_PTX_VERSION, and a line in both logs, where a device was told to have a driver that is older than the
 * text. Without that any version is taken: what does not run is named by itself. */
CUresult sg_failing_ptx(const char *text, size_t length, const sg_jit_options *options);

#endif

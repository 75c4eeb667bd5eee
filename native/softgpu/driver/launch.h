#ifndef SG_LAUNCH_H
#define SG_LAUNCH_H

#include "operation.h"

/* The values that `pointers` or `extra` name, one behind the other as the kernel takes them. */
CUresult sg_kernel_pack(CUfunction function, void **pointers, void **extra, unsigned char *packed);
/* Attributes that only tune are taken and ignored; one that changes what a kernel computes is not. */
CUresult sg_launch_attribute(const CUlaunchAttribute *attribute, sg_geometry *geometry);

/* How many blocks of this shape one multiprocessor holds at once. */
unsigned sg_resident_blocks(const sg_facts *facts, const sg_kernel_info *info, unsigned threads, size_t dynamic_shared);

/* CPUs that a kernel may use: those this process may run on, within its control group's quota. */
unsigned sg_worker_count(void);

#endif

#ifndef SG_FAULT_LOG_H
#define SG_FAULT_LOG_H

#include "memory.h"

/* Say in the log of the context's device what ended a kernel. */
void sg_fault_log(CUcontext context, CUfunction function, const sg_result *result);
/* An allocation is no more. Under the space's lock. */
void sg_fault_note_freed(const sg_allocation *gone);

#endif

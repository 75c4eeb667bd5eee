/* Events that several processes record and wait for (CU_EVENT_INTERPROCESS, and what is opened by a handle).
 * Each record of one has a number that all processes know (device/shared_events.h), which an operation carries
 * from when it is submitted; the fences of queues.h and the moments of timeline.h are for a process's own. */
#ifndef SG_IPC_EVENTS_H
#define SG_IPC_EVENTS_H

#include "operation.h"
#include "shared_events.h"

enum { SG_EVENT_DISABLE_TIMING = 2, SG_EVENT_INTERPROCESS = 4 };

/* Makes `event`, which is new, one of several processes. */
CUresult sg_interprocess_make(CUevent event);
/* The event is freed. Nothing where it is of this process alone. */
void sg_interprocess_release(CUevent event);

/* What is submitted now records the event from now on, or waits for what it means now. Other operations are left
 * as they are. Waits where the event has too many records that are not over. */
CUresult sg_interprocess_submit(CUcontext context, sg_operation *operation);
/* Its record is done, at the end of the operation with this sequence number; 0: at once. */
void sg_interprocess_finish(CUevent event, uint64_t record, uint64_t sequence);
/* It was performed, and its end in model time is told later, where there is one. */
void sg_interprocess_recorded(CUevent event, uint64_t record);

/* True of an event of this process alone. */
bool sg_interprocess_passed(CUevent event, uint64_t record);
/* A context that closes or has failed does not wait: nothing behind the wait is done there. */
CUresult sg_interprocess_await(CUcontext context, CUevent event, uint64_t record);
/* Of a record that has passed, as far as `gpu` has to follow it. */
sg_shared_end sg_interprocess_end(CUevent event, const sg_gpu *gpu, uint64_t record);

/* What it means now. */
bool sg_interprocess_complete(CUevent event);
CUresult sg_interprocess_synchronize(CUevent event);

/* In a forked child. */
void sg_interprocess_forget(void);

#endif

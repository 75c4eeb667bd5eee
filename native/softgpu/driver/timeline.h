/* Where a stream stands in model time (device/model.h). In real mode nothing here does anything. */
#ifndef SG_TIMELINE_H
#define SG_TIMELINE_H

#include "queues.h"

/* Perform it, and put what it cost onto the queue's timeline. A function of the program runs when, in model
 * time, what is before it in the queue has ended. */
CUresult sg_timeline_perform(sg_queue *queue, const sg_operation *operation);

/* What the operation being performed costs, said by who performs it, on its own thread. */
void sg_timeline_cost(sg_engine engine, uint64_t duration_ns, uint64_t bytes);
/* An event that the operation being performed records: its moment is the operation's end. */
void sg_timeline_recorded(CUevent event, uint64_t record);
/* A copy between these two kinds of memory. */
void sg_timeline_copy(const sg_facts *facts, bool from_device, bool to_device, uint64_t bytes);

/* Wait until all that was performed in the queue has ended; `queue` NULL: in the context. */
CUresult sg_timeline_wait(CUcontext context, sg_queue *queue);
bool sg_timeline_ended(sg_queue *queue);
/* The stream of this queue is destroyed; its work is not. */
void sg_timeline_leave_behind(sg_queue *queue);

#endif

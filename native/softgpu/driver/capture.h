/* Stream capture: work that is submitted to a capturing stream becomes nodes of a graph instead. */
#ifndef SG_CAPTURE_H
#define SG_CAPTURE_H

#include "graphs.h"

typedef struct {
    CUgraphNode *nodes;
    CUgraphEdgeData *data;
    size_t count;
} sg_frontier; /* the nodes that the next one depends on */

/* *taken: it is no more to be performed; the result says whether it became a node. */
CUresult sg_capture_submit(CUcontext context, sg_queue *queue, sg_operation *operation, bool *taken);

/* What a program may not do while streams capture, each with the error that says why; most of them end
 * the capture. SUCCESS: nothing of that kind captures. */
CUresult sg_capture_forbids_wait(sg_queue *queue);
CUresult sg_capture_forbids_context_wait(CUcontext context);
CUresult sg_capture_forbids_event(CUevent event);
/* Calls that cannot be captured and may wait for streams behind the program's back: allocations, mostly.
 * Which captures forbid them is what the modes are about. */
CUresult sg_capture_forbids_unsafe(void);

/* The stream is destroyed. */
void sg_capture_leave(sg_queue *queue);
void sg_capture_drop_event(CUevent event);
void sg_capture_forget(void);

#endif

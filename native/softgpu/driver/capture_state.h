/* What capture.c and capture_calls.c share. All of it under `sg_capture_lock`, but for what is atomic or of
 * the thread. */
#ifndef SG_CAPTURE_STATE_H
#define SG_CAPTURE_STATE_H

#include "capture.h"

typedef struct sg_capture_member {
    sg_queue *queue; /* NULL: a stream that was destroyed; what it did still has to be joined */
    sg_frontier frontier;
    struct sg_capture_member *next;
} sg_capture_member;

typedef struct sg_capture {
    unsigned long long id;
    int mode;
    const void *thread;
    CUgraph graph;
    bool own_graph; /* made for this capture */
    sg_queue *origin;
    sg_capture_member *members; /* the origin, and the streams that joined through events */
    bool invalid;
    struct sg_capture *next;
} sg_capture;

extern pthread_mutex_t sg_capture_lock;
extern sg_capture *sg_captures;
extern _Atomic unsigned sg_captures_running;
extern _Thread_local int sg_capture_mode_of_thread; /* its address stands for the thread */

void sg_frontier_clear(sg_frontier *frontier);
/* Add what is not in it yet. */
CUresult sg_frontier_extend(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                            size_t count);
CUresult sg_frontier_replace(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                             size_t count);
sg_capture_member *sg_capture_member_of(const sg_capture *capture, const sg_queue *queue);
sg_capture *sg_capture_of(const sg_queue *queue, sg_capture_member **found);
/* Make it invalid, and say why. */
CUresult sg_capture_end_with(sg_capture *capture, CUresult error);
/* Is this the legacy stream, while a stream that it would wait for captures? */
CUresult sg_capture_implicit(CUcontext context, const sg_queue *queue);
CUresult sg_capture_join(sg_capture *capture, sg_queue *queue, const sg_frontier *frontier);
void sg_capture_discard(sg_capture *capture);

#endif

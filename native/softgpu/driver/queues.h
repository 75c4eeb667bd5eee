/* The order of streams. Each stream has a queue: what is in it is performed one after the other. Work
 * is numbered as it comes, and a fence names a queue and a number: all work of that queue up to there is
 * done. Fences are all that streams and events know of each other.
 *
 * Work that finds its queue empty and its fences passed is done by the thread that submits it: waking
 * another thread would cost more than most operations do. Other work is left to a thread of the queue,
 * which is started when it is needed and leaves when it has been idle for a while. */
#ifndef SG_QUEUES_H
#define SG_QUEUES_H

#include "model.h"
#include "operation.h"

/* `apart`: a non-blocking stream, without order between it and the legacy default stream. */
sg_queue *sg_queue_make(CUcontext context, bool apart);
void sg_queue_release(sg_queue *queue);
/* The default streams of a context, made when first asked for; NULL without memory. */
sg_queue *sg_queue_legacy(CUcontext context);
sg_queue *sg_queue_of_thread(CUcontext context);
CUcontext sg_queue_context(const sg_queue *queue);
bool sg_queue_apart(const sg_queue *queue);

/* Perform it now or queue a copy of it, behind what the stream and `operation` have to wait for. */
CUresult sg_queue_submit(sg_queue *queue, const sg_operation *operation);

/* All that was submitted before to this queue (the legacy one: to all it is ordered with). */
bool sg_queue_idle(sg_queue *queue);
void sg_queue_drain(sg_queue *queue);

bool sg_fence_passed(const sg_fence *fence);
void sg_fence_await(const sg_fence *fence);
/* An event's fence: passed from now on. */
void sg_fence_clear(sg_fence *fence);

/* ---- for timeline.c: when what was performed ends in model time ---- */

/* Of this queue and those it is ordered with; `queue` NULL: of all of the context. What has ended is left
 * out. The array and the references in it are the caller's; NULL where there is none (or no memory). */
sg_moment **sg_queue_moments(CUcontext context, const sg_queue *queue, size_t *count);
/* Takes the reference. */
void sg_queue_set_moment(sg_queue *queue, sg_moment *end);
void sg_event_set_moment(CUevent event, sg_moment *moment);
/* CUctx_st.rest: gives the old one and takes the new one. */
sg_moment *sg_queue_swap_rest(CUcontext context, sg_moment *rest);
/* A reference of the caller's. */
sg_moment *sg_event_moment(CUevent event);

void sg_queues_forget(void);

#endif

/* The order of streams, said to the model: which operation follows which.
 *
 * A queue performs one operation after another and puts each onto the timeline when it has: after the last
 * one of its own, after the last ones of the queues that it is ordered with, and after an event that it waits
 * for. The functional order is kept by queues.c; by then all of these are on the timeline already. */
#include <stdlib.h>

#include "ipc_events.h"
#include "timeline.h"

/* What the operation being performed cost, by engine: a graph has several. Its nodes follow each other on
 * the timeline, the copies behind the kernels. */
enum { MOST_EVENTS = 64 };
struct noted {
    sg_task tasks[SG_ENGINES];
    uint64_t began_ns; /* in scaled mode; else 0 */
    struct {
        CUevent event;
        uint64_t record;
    } recorded[MOST_EVENTS];
    int recorded_count;
};
static _Thread_local struct noted *noted; /* on the stack of sg_timeline_perform(); NULL: nothing is performed */

void sg_timeline_cost(sg_engine engine, uint64_t duration_ns, uint64_t bytes) {
    if (noted == NULL)
        return;
    sg_task *task = &noted->tasks[engine];
    task->engine = engine;
    task->duration_ns = duration_ns > SG_FOREVER - task->duration_ns ? SG_FOREVER : task->duration_ns + duration_ns;
    task->bytes += bytes;
}

void sg_timeline_recorded(CUevent event, uint64_t record) {
    if (noted == NULL || noted->recorded_count == MOST_EVENTS)
        return;
    noted->recorded[noted->recorded_count].event = event;
    noted->recorded[noted->recorded_count++].record = record;
}

void sg_timeline_copy(const sg_facts *facts, bool from_device, bool to_device, uint64_t bytes) {
    if (from_device == to_device)
        sg_timeline_cost(SG_ENGINE_COMPUTE, sg_cost_of_bytes(facts, 2 * bytes), 2 * bytes);
    else
        sg_timeline_cost(to_device ? SG_ENGINE_COPY_IN : SG_ENGINE_COPY_OUT, sg_cost_of_transfer(facts, bytes), bytes);
}

/* *end becomes the moment at which it and `other` have ended. Takes both references. */
static CUresult join(sg_device *device, sg_moment **end, sg_moment *other) {
    sg_moment *both = NULL;
    int error = 0;
    if (*end == NULL || other == NULL || *end == other) {
        sg_moment *kept = *end != NULL ? *end : other;
        if (*end != NULL)
            sg_moment_drop(other);
        *end = kept;
        return CUDA_SUCCESS;
    }
    error = sg_model_submit(device, &(sg_task){.engine = SG_ENGINE_NONE, .after = {*end, other}}, &both);
    sg_moment_drop(*end);
    sg_moment_drop(other);
    *end = both;
    return sg_result_of_errno(error);
}

/* The moment at which all has ended that a new operation of the queue (of the context) has to follow. */
static CUresult gather(CUcontext context, const sg_queue *queue, sg_moment **end) {
    size_t count;
    CUresult result = CUDA_SUCCESS;
    sg_moment **moments = sg_queue_moments(context, queue, &count);
    *end = NULL;
    for (size_t i = 0; i < count; i++)
        if (result == CUDA_SUCCESS)
            result = join(context->gpu->device, end, moments[i]);
        else
            sg_moment_drop(moments[i]);
    free(moments);
    return result;
}

/* *end becomes the moment at which the task, which follows it, has ended. */
static CUresult follow(sg_device *device, sg_moment **end, sg_task task) {
    sg_moment *before = *end;
    task.after[0] = before;
    int error = sg_model_submit(device, &task, end);
    if (error != 0)
        *end = before;
    else
        sg_moment_drop(before);
    return sg_result_of_errno(error);
}

/* What the operation recorded is recorded at `end`; NULL: it failed, and who waits waits no longer. */
static void mark_recorded(sg_moment *end) {
    for (int i = 0; i < noted->recorded_count; i++) {
        CUevent event = noted->recorded[i].event;
        if (event->interprocess != NULL)
            sg_interprocess_finish(event, noted->recorded[i].record, end != NULL ? sg_moment_sequence(end) : 0);
        else if (end != NULL)
            sg_event_set_moment(event, sg_moment_keep(end));
    }
}

/* Of what it waits for: a moment of this process, or the end of another's operation. An event of another
 * device's context counts as recorded: every device has its own clock. */
static sg_moment *awaited_moment(CUcontext context, const sg_operation *operation, sg_shared_end *beyond) {
    if (operation->kind != SG_OPERATION_EVENT_WAIT)
        return NULL;
    if (operation->event->interprocess != NULL)
        *beyond = sg_interprocess_end(operation->event, context->gpu, operation->record);
    else if (operation->event->context->gpu == context->gpu)
        return sg_event_moment(operation->event);
    return NULL;
}

static CUresult place(sg_queue *queue, const sg_operation *operation) {
    CUcontext context = sg_queue_context(queue);
    sg_device *device = context->gpu->device;
    sg_moment *end;
    sg_task join_event = {.engine = SG_ENGINE_NONE};
    CUresult result = gather(context, queue, &end);
    sg_moment *event = awaited_moment(context, operation, &join_event.beyond);
    join_event.after[1] = event;
    bool nothing = true;
    for (int e = SG_ENGINE_COMPUTE; e < SG_ENGINES && result == CUDA_SUCCESS; e++)
        if (noted->tasks[e].duration_ns != 0) {
            noted->tasks[e].since_ns = nothing ? noted->began_ns : 0;
            result = follow(device, &end, noted->tasks[e]);
            nothing = false;
        }
    if (nothing && result == CUDA_SUCCESS)
        result = follow(device, &end, join_event);
    sg_moment_drop(event);
    mark_recorded(result == CUDA_SUCCESS ? end : NULL);
    if (result == CUDA_SUCCESS)
        sg_queue_set_moment(queue, end);
    else
        sg_moment_drop(end);
    return result;
}

CUresult sg_timeline_perform(sg_queue *queue, const sg_operation *operation) {
    CUcontext context = sg_queue_context(queue);
    if (!sg_model_used(context->gpu->device))
        return sg_operation_perform(context, operation);
    if (operation->kind == SG_OPERATION_HOST)
        (void)sg_timeline_wait(context, queue);
    struct noted here = {.recorded_count = 0}, *outer = noted;
    noted = &here;
    here.began_ns = context->gpu->device->facts.time == SG_TIME_SCALED ? sg_monotonic_ns() : 0;
    CUresult result = sg_operation_perform(context, operation);
    if (result == CUDA_SUCCESS)
        result = place(queue, operation);
    noted = outer;
    return result;
}

CUresult sg_timeline_wait(CUcontext context, sg_queue *queue) {
    sg_moment *end;
    if (!sg_model_used(context->gpu->device))
        return CUDA_SUCCESS;
    CUresult result = gather(context, queue, &end);
    if (result == CUDA_SUCCESS)
        result = sg_result_of_errno(sg_model_wait(context->gpu->device, end));
    sg_moment_drop(end);
    return result;
}

bool sg_timeline_ended(sg_queue *queue) {
    CUcontext context = sg_queue_context(queue);
    sg_moment *end;
    if (!sg_model_used(context->gpu->device) || gather(context, queue, &end) != CUDA_SUCCESS)
        return true;
    bool ended = sg_model_ended(context->gpu->device, end);
    sg_moment_drop(end);
    return ended;
}

void sg_timeline_leave_behind(sg_queue *queue) {
    CUcontext context = sg_queue_context(queue);
    sg_moment *end;
    if (!sg_model_used(context->gpu->device) || gather(context, queue, &end) != CUDA_SUCCESS)
        return;
    if (join(context->gpu->device, &end, sg_queue_swap_rest(context, NULL)) == CUDA_SUCCESS)
        sg_moment_drop(sg_queue_swap_rest(context, end));
}

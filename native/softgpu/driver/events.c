/* Events: the time at which all work before them was done. */
#include <stdlib.h>

#include "capture.h"
#include "ipc_events.h"
#include "timeline.h"

enum { ALL_FLAGS = 7 };

CUresult sg_event_make(CUcontext context, unsigned flags, CUevent *event) {
    CUevent made = calloc(1, sizeof *made);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->flags = flags;
    atomic_store(&made->references, 1);
    *event = made;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CUcontext context;
    CUevent made;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (event == NULL || (flags & ~(unsigned)ALL_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & SG_EVENT_INTERPROCESS) != 0 && (flags & SG_EVENT_DISABLE_TIMING) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_event_make(context, flags, &made)) != CUDA_SUCCESS)
        return result;
    if ((flags & SG_EVENT_INTERPROCESS) != 0)
        result = sg_interprocess_make(made);
    if (result == CUDA_SUCCESS && !sg_object_add(made, SG_EVENT))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        sg_event_release(made);
    else
        *event = made;
    return result;
}

CUresult sg_event_record(CUevent event, uint64_t record) {
    atomic_store(&event->at_ns, sg_monotonic_ns());
    sg_timeline_recorded(event, record);
    if (event->interprocess != NULL)
        sg_interprocess_recorded(event, record);
    return CUDA_SUCCESS;
}

CUresult sg_event_wait(CUcontext context, CUevent event, uint64_t record) {
    return event->interprocess != NULL ? sg_interprocess_await(context, event, record) : CUDA_SUCCESS;
}

/* An event is recorded by streams of its own context; streams of any context may wait for it. */
CUresult sg_event_check(CUcontext context, CUevent event, bool record) {
    if (!sg_object_is(event, SG_EVENT) || (record && event->context != context))
        return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    if (flags > 1)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_EVENT_RECORD, .external = flags == 1, .event = event});
}

SG_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    return cuEventRecordWithFlags(event, stream, 0);
}

void sg_event_release(CUevent event) {
    if (atomic_fetch_sub(&event->references, 1) > 1)
        return;
    sg_fence_clear(&event->fence);
    if (event->captured != NULL)
        sg_capture_drop_event(event);
    sg_event_set_moment(event, NULL);
    sg_interprocess_release(event);
    free(event);
}

static CUresult state_of(CUevent event) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    result = sg_capture_forbids_event(event);
    return result == CUDA_SUCCESS ? (CUresult)atomic_load(&event->context->sticky) : result;
}

static bool is_complete(CUevent event) {
    if (event->interprocess != NULL)
        return sg_interprocess_complete(event);
    if (!sg_fence_passed(&event->fence))
        return false;
    sg_moment *moment = sg_event_moment(event);
    bool ended = sg_model_ended(event->context->gpu->device, moment);
    sg_moment_drop(moment);
    return ended;
}

/* An event that was never recorded is complete. */
SG_EXPORT CUresult cuEventQuery(CUevent event) {
    CUresult result = state_of(event);
    return result == CUDA_SUCCESS && !is_complete(event) ? CUDA_ERROR_NOT_READY : result;
}

SG_EXPORT CUresult cuEventSynchronize(CUevent event) {
    CUresult result = state_of(event);
    if (result != CUDA_SUCCESS)
        return result;
    if (event->interprocess != NULL) {
        result = sg_interprocess_synchronize(event);
    } else {
        sg_fence_await(&event->fence);
        sg_moment *moment = sg_event_moment(event);
        result = sg_result_of_errno(sg_model_wait(event->context->gpu->device, moment));
        sg_moment_drop(moment);
    }
    if (result != CUDA_SUCCESS)
        return result;
    return (CUresult)atomic_load(&event->context->sticky);
}

SG_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_object_remove(event);
    sg_event_release(event);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuEventDestroy, cuEventDestroy_v2);

/* 0: never recorded. */
static uint64_t time_of(CUevent event) {
    sg_moment *moment = sg_event_moment(event);
    uint64_t ns = moment != NULL ? sg_moment_ns(event->context->gpu->device, moment) : atomic_load(&event->at_ns);
    sg_moment_drop(moment);
    return ns;
}

SG_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_object_is(begin, SG_EVENT) || !sg_object_is(end, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (((begin->flags | end->flags) & SG_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sg_fence_passed(&begin->fence) || !sg_fence_passed(&end->fence))
        return CUDA_ERROR_NOT_READY;
    uint64_t from = time_of(begin), to = time_of(end);
    if (from == SG_FOREVER || to == SG_FOREVER)
        return CUDA_ERROR_NOT_READY;
    if (from == 0 || to == 0) /* never recorded */
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(to - from) / 1e6);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2);

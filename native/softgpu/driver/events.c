/* Events: the time at which all work before them was done. */
#include <stdlib.h>

#include "operation.h"

enum { DISABLE_TIMING = 2, INTERPROCESS = 4, ALL_FLAGS = 7 };

SG_EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (event == NULL || (flags & ~(unsigned)ALL_FLAGS) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & INTERPROCESS)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUevent made = calloc(1, sizeof *made);
    if (made == NULL || !sg_object_add(made, SG_EVENT)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->flags = flags;
    *event = made;
    return CUDA_SUCCESS;
}

CUresult sg_event_record(CUevent event) {
    event->at_ns = sg_monotonic_ns();
    event->recorded = true;
    return CUDA_SUCCESS;
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
    return sg_submit(stream, &(sg_operation){SG_OPERATION_EVENT_RECORD, .event = event});
}
SG_PTSZ(cuEventRecordWithFlags);

SG_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    return cuEventRecordWithFlags(event, stream, 0);
}
SG_PTSZ(cuEventRecord);

SG_EXPORT CUresult cuEventQuery(CUevent event) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(event, SG_EVENT) ? (CUresult)atomic_load(&event->context->sticky) : CUDA_ERROR_INVALID_HANDLE;
}

SG_EXPORT CUresult cuEventSynchronize(CUevent event) {
    return cuEventQuery(event);
}

SG_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_object_remove(event);
    free(event);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuEventDestroy, cuEventDestroy_v2);

SG_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_object_is(begin, SG_EVENT) || !sg_object_is(end, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!begin->recorded || !end->recorded || ((begin->flags | end->flags) & DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->at_ns - begin->at_ns) / 1e6);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2);

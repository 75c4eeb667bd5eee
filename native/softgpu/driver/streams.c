/* Streams as handles; queues.c keeps their order. */
#include <stdlib.h>

#include "capture.h"
#include "failing.h"
#include "timeline.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned long long next_id = 16; /* the default streams have 1 and 2 */

CUresult sg_stream_resolve(CUstream given, CUcontext *context, CUstream *stream) {
    *stream = NULL;
    if (given == NULL || given == CU_STREAM_LEGACY || given == CU_STREAM_PER_THREAD)
        return sg_current(context);
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(given, SG_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    *context = given->context;
    *stream = given;
    sg_failing_check(*context);
    return (CUresult)atomic_load(&given->context->sticky);
}

CUresult sg_stream_queue(CUstream given, CUcontext *context, sg_queue **queue) {
    CUstream stream;
    CUresult result = sg_stream_resolve(given, context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream != NULL)
        *queue = stream->queue;
    else
        *queue = given == CU_STREAM_PER_THREAD ? sg_queue_of_thread(*context) : sg_queue_legacy(*context);
    return *queue != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sg_stream_priority(int wanted) {
    return wanted > 0 ? 0 : wanted < -5 ? -5 : wanted;
}

SG_EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream == NULL || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream made = calloc(1, sizeof *made);
    if (made == NULL || (made->queue = sg_queue_make(context, (flags & 1) != 0)) == NULL ||
        !sg_object_add(made, SG_STREAM)) {
        if (made != NULL)
            sg_queue_release(made->queue);
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->context = context;
    made->flags = flags;
    made->priority = sg_stream_priority(priority);
    made->attributes[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].number = 1; /* automatic */
    made->id = atomic_fetch_add(&next_id, 1);
    pthread_mutex_lock(&lock);
    made->next = context->streams;
    context->streams = made;
    pthread_mutex_unlock(&lock);
    *stream = made;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

static void unlink_stream(CUstream stream) {
    pthread_mutex_lock(&lock);
    for (CUstream *at = &stream->context->streams; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

static void discard(CUstream stream) {
    sg_capture_leave(stream->queue);
    sg_timeline_leave_behind(stream->queue);
    unlink_stream(stream);
    sg_queue_release(stream->queue);
    free(stream);
}

/* What is in the stream is still done, as on a card: the queue stays as long as somebody serves it. */
SG_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(stream, SG_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    sg_object_remove(stream);
    discard(stream);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuStreamDestroy, cuStreamDestroy_v2);

void sg_context_close_streams(CUcontext context) {
    while (context->streams != NULL) {
        CUstream stream = context->streams;
        sg_object_remove(stream);
        discard(stream);
    }
}

/* The queue of a stream whose end may be asked for. */
static CUresult awaitable(CUstream given, CUcontext *context, sg_queue **queue) {
    CUresult result = sg_stream_queue(given, context, queue);
    return result == CUDA_SUCCESS ? sg_capture_forbids_wait(*queue) : result;
}

SG_EXPORT CUresult cuStreamQuery(CUstream given) {
    CUcontext context;
    sg_queue *queue;
    CUresult result = awaitable(given, &context, &queue);
    if (result != CUDA_SUCCESS)
        return result;
    return sg_queue_idle(queue) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SG_EXPORT CUresult cuStreamSynchronize(CUstream given) {
    CUcontext context;
    sg_queue *queue;
    CUresult result = awaitable(given, &context, &queue);
    if (result != CUDA_SUCCESS)
        return result;
    sg_queue_drain(queue);
    return (CUresult)atomic_load(&context->sticky);
}

SG_EXPORT CUresult cuStreamWaitEvent(CUstream given, CUevent event, unsigned flags) {
    if (flags > 1)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return sg_submit(given, &(sg_operation){SG_OPERATION_EVENT_WAIT, .external = flags == 1, .event = event});
}

SG_EXPORT CUresult cuStreamGetPriority(CUstream given, int *priority) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (priority == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = stream != NULL ? stream->priority : 0;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamGetFlags(CUstream given, unsigned *flags) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = stream != NULL ? stream->flags : 0;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamGetId(CUstream given, unsigned long long *id) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = stream != NULL ? stream->id : given == CU_STREAM_PER_THREAD ? 2 : 1;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamGetCtx(CUstream given, CUcontext *out) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = context;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamGetCtx_v2(CUstream given, CUcontext *out, void **green) {
    CUresult result = cuStreamGetCtx(given, out);
    if (result == CUDA_SUCCESS && green != NULL)
        *green = NULL;
    return result;
}

SG_EXPORT CUresult cuStreamGetDevice(CUstream given, CUdevice *device) {
    CUcontext context;
    CUstream stream;
    CUresult result = sg_stream_resolve(given, &context, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->gpu->ordinal;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamAttachMemAsync(CUstream given, CUdeviceptr address, size_t size, unsigned flags) {
    sg_allocation found;
    (void)size;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == 0 || !sg_memory_lookup(address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_submit(given, &(sg_operation){SG_OPERATION_NOTHING});
}

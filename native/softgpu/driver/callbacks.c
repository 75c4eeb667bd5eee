/* Host functions. One thread of the driver runs them in the order in which they were queued: not the
 * thread that queues them, which may hold a lock that the function needs.
 *
 * Kernels and copies are done when their call returns, so a queued host function is the only thing a
 * stream ever waits for. */
#include <signal.h>
#include <stdlib.h>

#include "operation.h"

typedef struct work {
    CUcontext context;
    CUstream stream; /* what is counted; NULL for a default stream */
    sg_host_operation wanted;
    struct work *next;
} work;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static work *first, **last = &first;
static bool started;
static _Thread_local bool inside;

bool sg_in_host_function(void) {
    return inside;
}

static void perform(work *item) {
    inside = true;
    const sg_host_operation *wanted = &item->wanted;
    if (wanted->callback != NULL)
        wanted->callback(wanted->handle, (CUresult)atomic_load(&item->context->sticky), wanted->data);
    else if (atomic_load(&item->context->sticky) == CUDA_SUCCESS)
        wanted->function(wanted->data); /* a host function does not run on a failed context */
    inside = false;
}

static void *serve(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (first == NULL)
            pthread_cond_wait(&queued, &lock);
        work *item = first;
        first = item->next;
        if (first == NULL)
            last = &first;
        pthread_mutex_unlock(&lock);
        perform(item);
        pthread_mutex_lock(&lock);
        if (item->stream != NULL)
            atomic_fetch_sub(&item->stream->pending, 1);
        atomic_fetch_sub(&item->context->pending, 1);
        pthread_cond_broadcast(&finished);
        pthread_mutex_unlock(&lock);
        free(item);
    }
    return NULL;
}

/* Under `lock`. The thread takes no signals: they are the program's. */
static bool start(void) {
    sigset_t all, before;
    pthread_t thread;
    if (started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&thread, NULL, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

CUresult sg_host_check(const sg_host_operation *host) {
    return host->function == NULL && host->callback == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sg_host_submit(CUcontext context, CUstream stream, const sg_host_operation *host) {
    work *item = malloc(sizeof *item);
    if (item == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *item = (work){.context = context, .stream = stream, .wanted = *host};
    pthread_mutex_lock(&lock);
    if (!start()) {
        pthread_mutex_unlock(&lock);
        free(item);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    atomic_fetch_add(&item->context->pending, 1);
    if (item->stream != NULL)
        atomic_fetch_add(&item->stream->pending, 1);
    *last = item;
    last = &item->next;
    pthread_cond_signal(&queued);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    return sg_submit(stream, &(sg_operation){SG_OPERATION_HOST, .host = {.function = function, .data = data}});
}
SG_PTSZ(cuLaunchHostFunc);

SG_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags) {
    if (flags != 0)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    sg_host_operation host = {.callback = callback, .handle = stream, .data = data};
    return sg_submit(stream, &(sg_operation){SG_OPERATION_HOST, .host = host});
}
SG_PTSZ(cuStreamAddCallback);

/* A stream made to block (the default) also waits for the default stream's work, which is counted in
 * the context only. Waiting for all of the context orders more than needed, never less. */
bool sg_stream_idle(CUcontext context, CUstream stream) {
    bool apart = stream != NULL && (stream->flags & 1) != 0;
    return atomic_load(apart ? &stream->pending : &context->pending) == 0;
}

void sg_stream_settle(CUcontext context, CUstream stream) {
    if (inside || sg_stream_idle(context, stream))
        return; /* a host function that waited for itself would wait forever */
    pthread_mutex_lock(&lock);
    while (!sg_stream_idle(context, stream))
        pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
}

void sg_callbacks_forget(void) {
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&queued, NULL);
    pthread_cond_init(&finished, NULL);
    first = NULL;
    last = &first;
    started = false;
}

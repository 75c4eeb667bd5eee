/* Events of several processes: their handles, and what records and waits do. See ipc_events.h. */
#include "ipc_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define HANDLE_MAGIC UINT64_C(0x3154564543504951) /* "QIPCEVT1" */

typedef struct {
    uint64_t magic;
    unsigned char uuid[16];
    uint64_t index, secret;
} handle_content;

_Static_assert(sizeof(handle_content) <= sizeof(CUipcEventHandle), "the handle is too small for what it says");

typedef struct sg_interprocess sg_interprocess;

struct sg_interprocess {
    sg_gpu *home; /* whose device has it; this process has entered that */
    CUcontext context;
    unsigned index;
    uint64_t secret;
    bool opened;         /* made by another process */
    _Atomic bool closed; /* its context is gone: nothing is held any more, and every record has passed */
    sg_interprocess *next; /* of the context */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */

static void link_to(sg_interprocess *it) {
    pthread_mutex_lock(&lock);
    it->next = it->context->interprocess;
    it->context->interprocess = it;
    pthread_mutex_unlock(&lock);
}

/* Under `lock`, and no more in its list. */
static void close_it(sg_interprocess *it) {
    atomic_store(&it->closed, true);
    sg_shared_event_leave(it->home->device, it->index);
    sg_gpu_leave(it->home);
}

CUresult sg_interprocess_make(CUevent event) {
    sg_interprocess *it = calloc(1, sizeof *it);
    sg_gpu *home = event->context->gpu;
    CUresult result = it != NULL ? sg_gpu_enter(home) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        result = sg_result_of_errno(sg_shared_event_make(home->device, &it->index, &it->secret));
        if (result != CUDA_SUCCESS)
            sg_gpu_leave(home);
    }
    if (result != CUDA_SUCCESS) {
        free(it);
        return result;
    }
    it->home = home;
    it->context = event->context;
    link_to(it);
    event->interprocess = it;
    return CUDA_SUCCESS;
}

void sg_interprocess_release(CUevent event) {
    sg_interprocess *it = event->interprocess;
    if (it == NULL)
        return;
    pthread_mutex_lock(&lock);
    for (sg_interprocess **at = &it->context->interprocess; *at != NULL; at = &(*at)->next)
        if (*at == it) {
            *at = it->next;
            close_it(it);
            break;
        }
    pthread_mutex_unlock(&lock);
    free(it);
}

void sg_context_close_events(CUcontext context) {
    pthread_mutex_lock(&lock);
    while (context->interprocess != NULL) {
        sg_interprocess *it = context->interprocess;
        context->interprocess = it->next;
        close_it(it);
    }
    pthread_mutex_unlock(&lock);
}

void sg_interprocess_forget(void) {
    pthread_mutex_init(&lock, NULL);
}

/* ---- handles ---- */

/* An opened event behaves like one that was created without CU_EVENT_INTERPROCESS: it is not handed on. */
SG_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_object_is(event, SG_EVENT) || event->interprocess == NULL || event->interprocess->opened ||
        atomic_load(&event->interprocess->closed))
        return CUDA_ERROR_INVALID_HANDLE;
    const sg_interprocess *it = event->interprocess;
    handle_content content = {HANDLE_MAGIC, {0}, it->index, it->secret};
    memcpy(content.uuid, it->home->device->facts.uuid_bytes, sizeof content.uuid);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &content, sizeof content);
    return CUDA_SUCCESS;
}

static CUresult result_of_join(int error) {
    switch (error) {
    case -ENOENT: return CUDA_ERROR_INVALID_HANDLE;
    case -EALREADY: return CUDA_ERROR_INVALID_CONTEXT; /* who exported it cannot import it */
    default: return sg_result_of_errno(error);
    }
}

/* Takes over that the process has entered the device and holds the event. */
static CUresult open_event(CUcontext context, sg_gpu *home, const handle_content *content, CUevent *event) {
    CUevent made = NULL;
    sg_interprocess *it = calloc(1, sizeof *it);
    CUresult result = it != NULL ? sg_event_make(context, SG_EVENT_DISABLE_TIMING, &made) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        sg_shared_event_leave(home->device, (unsigned)content->index);
        sg_gpu_leave(home);
        free(it);
        return result;
    }
    it->home = home;
    it->context = context;
    it->index = (unsigned)content->index;
    it->opened = true;
    made->interprocess = it;
    link_to(it);
    if (sg_object_add(made, SG_EVENT)) {
        *event = made;
        return CUDA_SUCCESS;
    }
    sg_event_release(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

SG_EXPORT CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    handle_content content;
    CUcontext context;
    sg_gpu *home;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(&content, &handle, sizeof content);
    if (event == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (content.magic != HANDLE_MAGIC || content.index >= SG_MAXIMUM_EVENTS || !sg_gpu_by_uuid(content.uuid, &home))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sg_peers_possible(context->gpu, home))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if ((result = sg_gpu_enter(home)) != CUDA_SUCCESS)
        return result;
    result = result_of_join(sg_shared_event_join(home->device, (unsigned)content.index, content.secret));
    if (result == CUDA_SUCCESS)
        return open_event(context, home, &content, event);
    sg_gpu_leave(home);
    return result;
}

/* ---- records and waits ---- */

static bool has_ended(const void *of) {
    const struct CUctx_st *context = of;
    return atomic_load(&context->closing) || atomic_load(&context->sticky) != CUDA_SUCCESS;
}

static sg_given_up end_of(CUcontext context) {
    return (sg_given_up){has_ended, context};
}

CUresult sg_interprocess_submit(CUcontext context, sg_operation *operation) {
    bool record = operation->kind == SG_OPERATION_EVENT_RECORD;
    if (!record && operation->kind != SG_OPERATION_EVENT_WAIT)
        return CUDA_SUCCESS;
    const sg_interprocess *it = operation->event->interprocess;
    if (it == NULL || atomic_load(&it->closed))
        return CUDA_SUCCESS;
    if (record) {
        int error = sg_shared_event_begin(it->home->device, it->index, end_of(context), &operation->record);
        return error == -ECANCELED ? CUDA_ERROR_CONTEXT_IS_DESTROYED : sg_result_of_errno(error);
    }
    operation->record = sg_shared_event_newest(it->home->device, it->index);
    return CUDA_SUCCESS;
}

void sg_interprocess_finish(CUevent event, uint64_t record, uint64_t sequence) {
    const sg_interprocess *it = event->interprocess;
    if (it != NULL && !atomic_load(&it->closed))
        sg_shared_event_finish(it->home->device, it->index, record, sequence);
}

void sg_interprocess_recorded(CUevent event, uint64_t record) {
    const sg_gpu *home = event->interprocess->home;
    if (!sg_model_used(home->device) || event->context->gpu != home)
        sg_interprocess_finish(event, record, 0);
}

bool sg_interprocess_passed(CUevent event, uint64_t record) {
    const sg_interprocess *it = event->interprocess;
    return it == NULL || atomic_load(&it->closed) || sg_shared_event_passed(it->home->device, it->index, record);
}

CUresult sg_interprocess_await(CUcontext context, CUevent event, uint64_t record) {
    const sg_interprocess *it = event->interprocess;
    if (!sg_interprocess_passed(event, record))
        sg_shared_event_await(it->home->device, it->index, record, end_of(context));
    return has_ended(context) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

sg_shared_end sg_interprocess_end(CUevent event, const sg_gpu *gpu, uint64_t record) {
    const sg_interprocess *it = event->interprocess;
    if (gpu != it->home || atomic_load(&it->closed) || !sg_model_used(gpu->device))
        return (sg_shared_end){0, 0, 0};
    return sg_shared_event_end(it->home->device, it->index, record);
}

bool sg_interprocess_complete(CUevent event) {
    const sg_interprocess *it = event->interprocess;
    if (atomic_load(&it->closed))
        return true;
    uint64_t record = sg_shared_event_newest(it->home->device, it->index);
    if (!sg_shared_event_passed(it->home->device, it->index, record)) {
        sg_model_not_yet(it->home->device);
        return sg_shared_event_passed(it->home->device, it->index, record) && sg_interprocess_complete(event);
    }
    sg_shared_end end = sg_interprocess_end(event, it->home, record);
    return sg_model_ended_shared(it->home->device, &end);
}

CUresult sg_interprocess_synchronize(CUevent event) {
    const sg_interprocess *it = event->interprocess;
    if (atomic_load(&it->closed))
        return CUDA_SUCCESS;
    uint64_t record = sg_shared_event_newest(it->home->device, it->index);
    sg_shared_event_await(it->home->device, it->index, record, end_of(event->context));
    sg_shared_end end = sg_interprocess_end(event, it->home, record);
    return sg_result_of_errno(sg_model_wait_shared(it->home->device, &end));
}

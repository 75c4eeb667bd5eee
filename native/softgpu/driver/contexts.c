/* Contexts: made, furnished with their memory, taken apart. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "driver.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* making and taking apart */
static _Atomic unsigned long long next_id = 1;

CUresult sg_result_of_errno(int error) {
    switch (error) {
    case 0: return CUDA_SUCCESS;
    case -ENOMEM:
    case -ENOSPC:
    case -EDQUOT: return CUDA_ERROR_OUT_OF_MEMORY;
    case -EPROTO: return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    default: return CUDA_ERROR_OPERATING_SYSTEM;
    }
}

static int take_memory(CUcontext context) {
    sg_device *device = context->gpu->device;
    context->chunk_count = (size_t)((device->facts.context_bytes + SG_CHUNK_BYTES - 1) / SG_CHUNK_BYTES);
    context->chunks = calloc(context->chunk_count + 1, sizeof *context->chunks);
    if (context->chunks == NULL)
        return -ENOMEM;
    int error = sg_chunks_take(device, context->chunks, context->chunk_count);
    if (error != 0) {
        free(context->chunks);
        context->chunks = NULL;
    }
    return error;
}

static void set_default_limits(CUcontext context) {
    context->limits[CU_LIMIT_STACK_SIZE] = SG_CONTEXT_STACK_BYTES;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = SG_CONTEXT_PRINT_BYTES;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
}

/* Under `lock`, as the two below. */
static int enter(sg_gpu *gpu) {
    int error = sg_state_open(gpu->device, SG_TENANT_PATIENCE_NS);
    if (error == 0)
        error = sg_process_enter(gpu->device);
    if (error == 0)
        gpu->users++;
    return error;
}

static void leave(sg_gpu *gpu) {
    if (--gpu->users == 0)
        sg_process_leave(gpu->device);
}

CUresult sg_gpu_enter(sg_gpu *gpu) {
    pthread_mutex_lock(&lock);
    int error = enter(gpu);
    pthread_mutex_unlock(&lock);
    return sg_result_of_errno(error);
}

void sg_gpu_leave(sg_gpu *gpu) {
    pthread_mutex_lock(&lock);
    leave(gpu);
    pthread_mutex_unlock(&lock);
}

CUresult sg_context_furnish(CUcontext context) {
    CUresult possible = sg_failing_make(context->gpu, &context->failures_seen);
    if (possible != CUDA_SUCCESS)
        return possible;
    pthread_mutex_lock(&lock);
    int error = enter(context->gpu);
    if (error == 0 && (error = take_memory(context)) != 0)
        leave(context->gpu);
    pthread_mutex_unlock(&lock);
    if (error != 0)
        return sg_result_of_errno(error);
    set_default_limits(context);
    for (int i = 0; i < SG_PEERS; i++)
        atomic_store(&context->peers[i], NULL);
    atomic_store(&context->sticky, CUDA_SUCCESS);
    atomic_store(&context->closing, false);
    atomic_store(&context->destroyed, false);
    return CUDA_SUCCESS;
}

CUresult sg_context_make(sg_gpu *gpu, unsigned flags, CUcontext *made) {
    CUcontext context = calloc(1, sizeof *context);
    if (context == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->gpu = gpu;
    context->flags = flags;
    context->api_version = 3020;
    context->id = atomic_fetch_add(&next_id, 1);
    CUresult result = sg_context_furnish(context);
    if (result == CUDA_SUCCESS && !sg_object_add(context, SG_CONTEXT)) {
        sg_context_dismantle(context);
        return CUDA_ERROR_OUT_OF_MEMORY; /* the struct is kept, see sg_context_dismantle */
    }
    if (result != CUDA_SUCCESS)
        free(context);
    else
        *made = context;
    return result;
}

void sg_context_dismantle(CUcontext context) {
    sg_device *device = context->gpu->device;
    atomic_store(&context->closing, true);
    sg_context_drain(context);
    atomic_store(&context->destroyed, true);
    while (context->modules != NULL)
        sg_module_unload(context->modules);
    sg_context_close_streams(context);
    sg_context_close_events(context);
    sg_arrays_release_all(context);
    sg_memory_release_all(context);
    sg_heap_close(context);
    sg_own_release(context);
    pthread_mutex_lock(&lock);
    if (context->chunks != NULL)
        sg_chunks_give(device, context->chunks, context->chunk_count);
    free(context->chunks);
    context->chunks = NULL;
    leave(context->gpu);
    pthread_mutex_unlock(&lock);
}

/* The fault stays: every later call on this context returns it, as on a card. */
void sg_context_poison(CUcontext context, CUresult error) {
    int none = CUDA_SUCCESS;
    atomic_compare_exchange_strong(&context->sticky, &none, (int)error);
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device) {
    sg_gpu *gpu;
    CUcontext made;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL || (flags & ~0xFFu) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_context_make(gpu, flags, &made);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_current_push(made);
    if (result != CUDA_SUCCESS)
        sg_context_dismantle(made);
    else
        *context = made;
    return result;
}

SG_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    return create(context, flags, device);
}
SG_ALIAS(cuCtxCreate, cuCtxCreate_v2);

SG_EXPORT CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned flags, CUdevice device) {
    if (affinity != NULL || count != 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device);
}

SG_EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device) {
    if (parameters != NULL && (parameters->numExecAffinityParams != 0 || parameters->cigParams != NULL))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device);
}

SG_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(context, SG_CONTEXT) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&context->destroyed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sg_context_dismantle(context);
    sg_current_drop(context);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuCtxDestroy, cuCtxDestroy_v2);
SG_ALIAS(cuCtxDetach, cuCtxDestroy_v2);

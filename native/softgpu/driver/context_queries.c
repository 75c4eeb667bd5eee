/* What a context says about itself. */
#include "capture.h"

SG_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext given) {
    CUcontext context;
    CUresult result = sg_context_or_current(given, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->gpu->ordinal;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetDevice(CUdevice *device) {
    return cuCtxGetDevice_v2(device, NULL);
}

SG_EXPORT CUresult cuCtxGetFlags(unsigned *flags) {
    CUcontext context;
    CUresult result = sg_current_alive(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxSetFlags(unsigned flags) {
    CUcontext context;
    CUresult result = sg_current_alive(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & ~0xFFu) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    context->flags = flags;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetId(CUcontext given, unsigned long long *id) {
    CUcontext context;
    CUresult result = sg_context_or_current(given, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxSynchronize_v2(CUcontext given) {
    CUcontext context;
    CUresult result = sg_context_or_current(given, &context);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_capture_forbids_context_wait(context);
    if (result != CUDA_SUCCESS)
        return result;
    sg_context_drain(context);
    return (CUresult)atomic_load(&context->sticky);
}

SG_EXPORT CUresult cuCtxSynchronize(void) {
    return cuCtxSynchronize_v2(NULL);
}

SG_EXPORT CUresult cuCtxSetLimit(int limit, size_t value) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= SG_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && sg_heap_in_use(context))
        return CUDA_ERROR_INVALID_VALUE; /* "before launching any kernel that uses malloc()" */
    result = sg_own_limit(context, limit, value);
    if (result == CUDA_SUCCESS)
        context->limits[limit] = value;
    return result;
}

SG_EXPORT CUresult cuCtxGetLimit(size_t *value, int limit) {
    CUcontext context;
    CUresult result = sg_current_alive(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || limit < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= SG_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetCacheConfig(int *config) {
    CUcontext context;
    CUresult result = sg_current_alive(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context->cache_config;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxSetCacheConfig(int config) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    context->cache_config = config;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetSharedMemConfig(int *config) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *config = 1; /* four-byte banks, the only kind since compute capability 5 */
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxSetSharedMemConfig(int config) {
    CUcontext context;
    CUresult result = sg_current(&context);
    return result == CUDA_SUCCESS && (config < 0 || config > 2) ? CUDA_ERROR_INVALID_VALUE : result;
}

SG_EXPORT CUresult cuCtxGetApiVersion(CUcontext given, unsigned *version) {
    CUcontext context;
    CUresult result = sg_context_or_current(given, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CUcontext context;
    CUresult result = sg_current_alive(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxResetPersistingL2Cache(void) {
    CUcontext context;
    return sg_current(&context);
}

/* No profiler listens; starting and stopping it is no error on a card either. */
SG_EXPORT CUresult cuProfilerStart(void) {
    CUcontext context;
    return sg_current(&context);
}
SG_ALIAS(cuProfilerStop, cuProfilerStart);

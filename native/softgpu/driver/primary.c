/* The primary context of each device: shared by everyone in the process, counted. */
#include "driver.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under `lock`. The handle stays the same for the life of the process. */
static CUresult activate(sg_gpu *gpu) {
    if (gpu->primary != NULL)
        return sg_context_furnish(gpu->primary);
    CUcontext made;
    CUresult result = sg_context_make(gpu, gpu->primary_flags, &made);
    if (result == CUDA_SUCCESS) {
        made->primary = true;
        gpu->primary = made;
    }
    return result;
}

SG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (gpu->primary_count == 0)
        result = activate(gpu);
    if (result == CUDA_SUCCESS) {
        gpu->primary_count++;
        gpu->primary->flags = gpu->primary_flags;
        *context = gpu->primary;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (gpu->primary_count == 0)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (--gpu->primary_count == 0 && !atomic_load(&gpu->primary->destroyed))
        sg_context_dismantle(gpu->primary);
    pthread_mutex_unlock(&lock);
    return result;
}
SG_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);

/* Everything in the context goes; who retained it still holds it, empty and healthy. */
SG_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (gpu->primary != NULL && !atomic_load(&gpu->primary->destroyed))
        sg_context_dismantle(gpu->primary);
    if (gpu->primary_count > 0)
        result = activate(gpu);
    pthread_mutex_unlock(&lock);
    return result;
}
SG_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2);

SG_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if ((flags & ~0xFFu) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    gpu->primary_flags = flags;
    if (gpu->primary != NULL)
        gpu->primary->flags = flags;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
SG_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2);

SG_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || active == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *flags = gpu->primary_flags;
    *active = gpu->primary_count > 0;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

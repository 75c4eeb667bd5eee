/* Straight copies. Each is complete when its call returns; the asynchronous forms only wait first for
 * what is queued on their stream. */
#include <string.h>

#include "driver.h"

/* memmove: a copy within one allocation may overlap. */
static CUresult device_to_device(CUcontext to_context, CUdeviceptr to, CUcontext from_context, CUdeviceptr from,
                                 size_t size) {
    unsigned char *target, *source;
    if (size == 0)
        return CUDA_SUCCESS;
    CUresult result = sg_memory_access(from_context, from, size, false, &source);
    if (result == CUDA_SUCCESS)
        result = sg_memory_access(to_context, to, size, true, &target);
    if (result == CUDA_SUCCESS)
        memmove(target, source, size);
    return result;
}

static CUresult host_to_device(CUcontext context, CUdeviceptr to, const void *from, size_t size) {
    unsigned char *target;
    if (size == 0)
        return CUDA_SUCCESS;
    if (from == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_memory_access(context, to, size, true, &target);
    if (result == CUDA_SUCCESS)
        memcpy(target, from, size);
    return result;
}

static CUresult device_to_host(CUcontext context, void *to, CUdeviceptr from, size_t size) {
    unsigned char *source;
    if (size == 0)
        return CUDA_SUCCESS;
    if (to == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_memory_access(context, from, size, false, &source);
    if (result == CUDA_SUCCESS)
        memcpy(to, source, size);
    return result;
}

/* An address of either side, as unified addressing allows: what we did not allocate is host memory. */
static CUresult either(CUcontext context, CUdeviceptr to, CUdeviceptr from, size_t size) {
    sg_allocation found;
    bool to_known = sg_memory_lookup(to, &found), from_known = sg_memory_lookup(from, &found);
    if (size == 0)
        return CUDA_SUCCESS;
    if (to_known && from_known)
        return device_to_device(NULL, to, NULL, from, size);
    if (to_known)
        return host_to_device(context, to, (const void *)(uintptr_t)from, size);
    if (from_known)
        return device_to_host(context, (void *)(uintptr_t)to, from, size);
    if (to == 0 || from == 0)
        return CUDA_ERROR_INVALID_VALUE;
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    return result == CUDA_SUCCESS ? host_to_device(context, to, from, size) : result;
}
SG_PTSZ(cuMemcpyHtoDAsync_v2);

SG_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    return result == CUDA_SUCCESS ? device_to_host(context, to, from, size) : result;
}
SG_PTSZ(cuMemcpyDtoHAsync_v2);

SG_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    return result == CUDA_SUCCESS ? device_to_device(context, to, context, from, size) : result;
}
SG_PTSZ(cuMemcpyDtoDAsync_v2);

SG_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    return result == CUDA_SUCCESS ? either(context, to, from, size) : result;
}
SG_PTSZ(cuMemcpyAsync);

SG_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                     size_t size, CUstream stream) {
    CUcontext context;
    CUresult result = sg_stream_begin(stream, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(to_context, SG_CONTEXT) || !sg_object_is(from_context, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return device_to_device(to_context, to, from_context, from, size);
}
SG_PTSZ(cuMemcpyPeerAsync);

SG_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    return cuMemcpyHtoDAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyHtoD_v2);

SG_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoHAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyDtoH_v2);

SG_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyDtoDAsync_v2(to, from, size, NULL);
}
SG_PTDS(cuMemcpyDtoD_v2);

SG_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    return cuMemcpyAsync(to, from, size, NULL);
}
SG_PTDS(cuMemcpy);

SG_EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                                size_t size) {
    return cuMemcpyPeerAsync(to, to_context, from, from_context, size, NULL);
}
SG_PTDS(cuMemcpyPeer);

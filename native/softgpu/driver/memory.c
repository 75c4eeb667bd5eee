/* Allocation calls. */
#include "capture.h"
#include "failing.h"

enum { PITCH_ALIGNMENT = 512 };

SG_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    sg_device *device = context->gpu->device;
    uint64_t capacity = sg_capacity_bytes(&device->facts), used = sg_used_bytes(device);
    if (free_bytes != NULL)
        *free_bytes = used < capacity ? capacity - used : 0;
    if (total != NULL)
        *total = capacity;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t size, sg_memory_kind kind) {
    CUcontext context;
    sg_allocation made;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (address == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_capture_forbids_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_failing_allocation(context->gpu);
    if (result == CUDA_SUCCESS)
        result = sg_memory_allocate(context, size, kind, &made);
    if (result == CUDA_SUCCESS)
        *address = made.address;
    return result;
}

SG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
    return allocate(address, size, SG_MEMORY_DEVICE);
}

SG_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                      unsigned element_bytes) {
    size_t size, rounded = (width + PITCH_ALIGNMENT - 1) & ~(size_t)(PITCH_ALIGNMENT - 1);
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (pitch == NULL || width == 0 || height == 0 || rounded < width)
        return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(rounded, height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = allocate(address, size, SG_MEMORY_DEVICE);
    if (result == CUDA_SUCCESS)
        *pitch = rounded;
    return result;
}

SG_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned flags) {
    if (flags != 1 && flags != 2) /* attached to all, or to the host */
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return allocate(address, size, SG_MEMORY_MANAGED);
}

SG_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    sg_allocation was;
    if (address == 0)
        return sg_ready();
    if (sg_graph_memory_owns(address)) {
        CUresult result = sg_submit(NULL, &(sg_operation){SG_OPERATION_FREE, true, .memory = {.address = address}});
        return result;
    }
    return sg_memory_free(address, 1u << SG_MEMORY_DEVICE | 1u << SG_MEMORY_MANAGED, &was);
}

SG_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
    CUcontext context;
    sg_allocation found;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_memory_lookup(address, &found))
        return CUDA_ERROR_NOT_FOUND;
    if (base != NULL)
        *base = found.address;
    if (size != NULL)
        *size = found.size;
    return CUDA_SUCCESS;
}

/* Managed memory here is always where it is: advice and prefetching are taken and change nothing. */
static CUresult advised(CUdeviceptr address, size_t size) {
    CUcontext context;
    sg_allocation found;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_memory_lookup(address, &found) || found.kind != SG_MEMORY_MANAGED ||
        size > found.size - (address - found.address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t size, int advice, CUdevice device) {
    (void)device;
    return advice < 1 || advice > 6 ? CUDA_ERROR_INVALID_VALUE : advised(address, size);
}

SG_EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, int advice, CUmemLocation location) {
    (void)location;
    return advice < 1 || advice > 6 ? CUDA_ERROR_INVALID_VALUE : advised(address, size);
}

SG_EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream) {
    (void)device;
    (void)stream;
    return advised(address, size);
}

SG_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags,
                                         CUstream stream) {
    (void)location;
    (void)flags;
    (void)stream;
    return advised(address, size);
}

/* Page-locked host memory. The device uses it at its host address. */
#include <sys/mman.h>

#include "capture.h"

static CUresult allocate_host(void **place, size_t size, unsigned flags) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (place == NULL || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_capture_forbids_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    sg_device *device = context->gpu->device;
    if (sg_host_memory_take(device, size) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Whole pages of our own, never malloc: a program that writes behind the end must not hit a heap. There
     * at once, as page-locked memory is: it is counted as taken. */
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    result = memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY
                                  : sg_memory_adopt(context, memory, size, SG_MEMORY_HOST, flags);
    if (result != CUDA_SUCCESS) {
        sg_host_memory_give(device, size);
        if (memory != MAP_FAILED)
            munmap(memory, size);
        return result;
    }
    *place = memory;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostAlloc(void **place, size_t size, unsigned flags) {
    return (flags & ~7u) != 0 ? CUDA_ERROR_INVALID_VALUE : allocate_host(place, size, flags);
}

SG_EXPORT CUresult cuMemAllocHost_v2(void **place, size_t size) {
    return allocate_host(place, size, 0);
}

SG_EXPORT CUresult cuMemFreeHost(void *place) {
    sg_allocation was;
    if (place == NULL)
        return sg_ready();
    CUresult result = sg_memory_free((uintptr_t)place, 1u << SG_MEMORY_HOST, &was);
    if (result == CUDA_SUCCESS) {
        munmap(was.host, was.size);
        sg_host_memory_give(was.gpu->device, was.size);
    }
    return result;
}

SG_EXPORT CUresult cuMemHostRegister_v2(void *place, size_t size, unsigned flags) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (place == NULL || size == 0 || (flags & ~15u) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & 4) /* memory of an I/O device */
        return CUDA_ERROR_NOT_SUPPORTED;
    return sg_memory_adopt(context, place, size, SG_MEMORY_REGISTERED, flags);
}
SG_ALIAS(cuMemHostRegister, cuMemHostRegister_v2);

SG_EXPORT CUresult cuMemHostUnregister(void *place) {
    sg_allocation was;
    CUresult result = sg_ready();
    if (result == CUDA_SUCCESS && place == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_memory_free((uintptr_t)place, 1u << SG_MEMORY_REGISTERED, &was);
    return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

static CUresult host_range(const void *place, sg_allocation *found) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_memory_lookup((uintptr_t)place, found) || found->kind == SG_MEMORY_DEVICE || found->kind >= SG_MEMORY_HEAP)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *place, unsigned flags) {
    sg_allocation found;
    CUresult result = host_range(place, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (address == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *address = (uintptr_t)place;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *place) {
    sg_allocation found;
    CUresult result = host_range(place, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = found.flags | 2; /* everything is mapped into the device */
    return CUDA_SUCCESS;
}

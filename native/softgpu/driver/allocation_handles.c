/* Physical memory as a handle: made, shared with other processes as a file descriptor, released. It belongs
 * to no context, and lives while a handle or a mapping of it does. */
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "memory.h"

static CUresult check_properties(const CUmemAllocationProp *p, sg_gpu **gpu) {
    if (p == NULL || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        sg_log_unsupported("call", "virtual memory that lies in host memory");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if ((p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ||
        p->allocFlags.compressionType != 0 || p->allocFlags.usage != 0) {
        sg_log_unsupported("call", "virtual memory that is compressed, tiled, or shared otherwise than by descriptor");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return sg_gpu_get(p->location.id, gpu);
}

SG_EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                                 int option) {
    sg_gpu *gpu;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (granularity == NULL || option < 0 || option > 1)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties, &gpu);
    if (result == CUDA_SUCCESS)
        *granularity = SG_CHUNK_BYTES;
    return result;
}

/* Gives the program a handle, and takes the reference. */
static CUresult give_handle(CUmemGenericAllocationHandle *handle, sg_physical *physical) {
    physical->entered = true;
    physical->handles = 1;
    if (!sg_object_add(physical, SG_PHYSICAL)) {
        sg_physical_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uintptr_t)physical;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *properties, unsigned long long flags) {
    sg_gpu *gpu;
    sg_physical *physical;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL || size == 0 || size % SG_CHUNK_BYTES != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_properties(properties, &gpu);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_enter(gpu);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_failing_allocation(gpu);
    sg_space_lock();
    if (result == CUDA_SUCCESS)
        result = sg_physical_make(gpu, size, &physical);
    if (result == CUDA_SUCCESS) {
        physical->handle_types = (unsigned)properties->requestedHandleTypes;
        result = give_handle(handle, physical);
    } else {
        sg_gpu_leave(gpu);
    }
    sg_space_unlock();
    return result;
}

/* Under the space's lock. */
static sg_physical *physical_of(CUmemGenericAllocationHandle handle) {
    sg_physical *physical = (sg_physical *)(uintptr_t)handle;
    return sg_object_is(physical, SG_PHYSICAL) && physical->handles > 0 ? physical : NULL;
}

SG_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    sg_space_lock();
    sg_physical *physical = physical_of(handle);
    if (physical == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        physical->handles--;
        if (physical->references == 1)
            sg_object_remove(physical);
        sg_physical_release(physical);
    }
    sg_space_unlock();
    return result;
}

SG_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sg_space_lock();
    sg_allocation *found = sg_space_find((uintptr_t)address);
    if (found == NULL || found->kind != SG_MEMORY_MAPPED) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        found->view->physical->handles++;
        found->view->physical->references++;
        *handle = (uintptr_t)found->view->physical;
    }
    sg_space_unlock();
    return result;
}

SG_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                          CUmemGenericAllocationHandle handle) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (properties == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sg_space_lock();
    const sg_physical *physical = physical_of(handle);
    if (physical == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        *properties = (CUmemAllocationProp){
            .type = CU_MEM_ALLOCATION_TYPE_PINNED,
            .requestedHandleTypes = (int)physical->handle_types,
            .location = {CU_MEM_LOCATION_TYPE_DEVICE, physical->gpu->ordinal},
        };
    sg_space_unlock();
    return result;
}

SG_EXPORT CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle, int type,
                                                unsigned long long flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (shareable == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_shared_by_descriptor(type, "memory shared otherwise than by descriptor")) != CUDA_SUCCESS)
        return result;
    sg_space_lock();
    sg_physical *physical = physical_of(handle);
    if (physical == NULL || !(physical->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_physical_share(physical);
    if (result == CUDA_SUCCESS) {
        int descriptor = sg_share_descriptor(physical->gpu->device, (unsigned)physical->share);
        if (descriptor < 0)
            result = sg_result_of_errno(descriptor);
        else
            *(int *)shareable = descriptor;
    }
    sg_space_unlock();
    return result;
}

static sg_gpu *gpu_of_descriptor(int descriptor, unsigned *share) {
    sg_gpu *gpu;
    for (int i = 0; i < sg_gpu_count(); i++) {
        if (sg_gpu_get(i, &gpu) != CUDA_SUCCESS)
            continue;
        int found = sg_share_of_descriptor(gpu->device, descriptor);
        if (found >= 0) {
            *share = (unsigned)found;
            return gpu;
        }
    }
    return NULL;
}

SG_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable, int type) {
    unsigned share;
    sg_physical *physical;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_shared_by_descriptor(type, "memory shared otherwise than by descriptor")) != CUDA_SUCCESS)
        return result;
    sg_gpu *gpu = gpu_of_descriptor((int)(intptr_t)shareable, &share);
    if (gpu == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_gpu_enter(gpu)) != CUDA_SUCCESS)
        return result;
    sg_space_lock();
    result = sg_physical_join(gpu, share, NULL, &physical);
    if (result == CUDA_SUCCESS) {
        physical->handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        result = give_handle(handle, physical);
    } else {
        sg_gpu_leave(gpu);
    }
    sg_space_unlock();
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

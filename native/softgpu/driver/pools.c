/* Stream-ordered allocation. Allocations of a pool are ordinary ones: they go back to the device when
 * they are freed, so a pool never holds memory in reserve and its release threshold has nothing to do. */
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "operation.h"
#include "pools.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUmemoryPool sg_pool_make(sg_gpu *gpu, bool is_default) {
    CUmemoryPool pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    pool->gpu = gpu;
    pool->is_default = is_default;
    for (int i = 0; i < 4; i++)
        pool->reuse[i] = 1;
    if (!sg_object_add(pool, SG_POOL)) {
        free(pool);
        return NULL;
    }
    return pool;
}

static CUresult current_pool(sg_gpu *gpu, bool of_default, CUmemoryPool *pool) {
    pthread_mutex_lock(&lock);
    if (gpu->default_pool == NULL)
        gpu->default_pool = gpu->current_pool = sg_pool_make(gpu, true);
    CUmemoryPool found = of_default ? gpu->default_pool : gpu->current_pool;
    pthread_mutex_unlock(&lock);
    if (found == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pool = found;
    return CUDA_SUCCESS;
}

static CUresult device_pool(CUmemoryPool *pool, CUdevice device, bool of_default) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    return pool == NULL ? CUDA_ERROR_INVALID_VALUE : current_pool(gpu, of_default, pool);
}

SG_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return device_pool(pool, device, true);
}

SG_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    return device_pool(pool, device, false);
}

static CUresult set_pool(sg_gpu *gpu, CUmemoryPool pool) {
    CUmemoryPool existing;
    CUresult result = current_pool(gpu, true, &existing);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(pool, SG_POOL) || pool->gpu != gpu)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    gpu->current_pool = pool;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    return result == CUDA_SUCCESS ? set_pool(gpu, pool) : result;
}

static CUresult device_of(const CUmemLocation *location, int type, sg_gpu **gpu) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (location == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_NOT_SUPPORTED;
    return sg_gpu_get(location->id, gpu);
}

SG_EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    sg_gpu *gpu;
    CUresult result = device_of(location, type, &gpu);
    return result == CUDA_SUCCESS ? device_pool(pool, gpu->ordinal, true) : result;
}

SG_EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
    sg_gpu *gpu;
    CUresult result = device_of(location, type, &gpu);
    return result == CUDA_SUCCESS ? device_pool(pool, gpu->ordinal, false) : result;
}

SG_EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool) {
    sg_gpu *gpu;
    CUresult result = device_of(location, type, &gpu);
    return result == CUDA_SUCCESS ? set_pool(gpu, pool) : result;
}

SG_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
    sg_gpu *gpu;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL || properties == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((properties->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        sg_log_unsupported("call", "a pool shared otherwise than by descriptor");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    result = device_of(&properties->location, properties->allocType, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    CUmemoryPool made = sg_pool_make(gpu, false);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->shareable = properties->handleTypes != 0;
    *pool = made;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(pool, SG_POOL) || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    sg_object_remove(pool);
    pthread_mutex_lock(&lock);
    if (pool->gpu->current_pool == pool)
        pool->gpu->current_pool = pool->gpu->default_pool;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS; /* the struct stays: allocations still name it */
}

SG_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    CUresult result = sg_ready();
    (void)keep;
    return result == CUDA_SUCCESS && !sg_object_is(pool, SG_POOL) ? CUDA_ERROR_INVALID_VALUE : result;
}

enum { ATTR_RELEASE_THRESHOLD = 4, ATTR_RESERVED, ATTR_RESERVED_HIGH, ATTR_USED, ATTR_USED_HIGH };

SG_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(pool, SG_POOL) || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3)
        pool->reuse[attribute] = *(int *)value != 0;
    else if (attribute == ATTR_RELEASE_THRESHOLD)
        pool->release_threshold = *(uint64_t *)value;
    else if ((attribute == ATTR_RESERVED_HIGH || attribute == ATTR_USED_HIGH) && *(uint64_t *)value == 0)
        pool->high = sg_memory_pool_bytes(pool);
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(pool, SG_POOL) || value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute >= 1 && attribute <= 3)
        *(int *)value = pool->reuse[attribute];
    else if (attribute == ATTR_RELEASE_THRESHOLD)
        *(uint64_t *)value = pool->release_threshold;
    else if (attribute == ATTR_RESERVED || attribute == ATTR_USED)
        *(uint64_t *)value = sg_memory_pool_bytes(pool);
    else if (attribute == ATTR_RESERVED_HIGH || attribute == ATTR_USED_HIGH)
        *(uint64_t *)value = pool->high;
    else
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(pool, SG_POOL) || (map == NULL && count > 0))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id != pool->gpu->ordinal)
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || location == NULL || !sg_object_is(pool, SG_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == pool->gpu->ordinal;
    *flags = own ? 3 : 0; /* read and write, or none */
    return CUDA_SUCCESS;
}

CUresult sg_allocate_perform(CUcontext context, sg_memory_operation *memory) {
    sg_allocation made;
    CUmemoryPool pool = memory->pool;
    CUresult result = pool != NULL ? CUDA_SUCCESS : current_pool(context->gpu, false, &pool);
    if (result != CUDA_SUCCESS)
        return result;
    if (memory->size == 0 || !sg_object_is(pool, SG_POOL) || pool->gpu != context->gpu || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_failing_allocation(context->gpu);
    if (result == CUDA_SUCCESS)
        result = sg_memory_allocate(context, memory->size, SG_MEMORY_DEVICE, &made);
    if (result != CUDA_SUCCESS)
        return result;
    sg_memory_tag(made.address, pool);
    uint64_t bytes = sg_memory_pool_bytes(pool);
    if (bytes > pool->high)
        pool->high = bytes;
    memory->address = made.address;
    return CUDA_SUCCESS;
}

static CUresult allocate_from(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    sg_operation operation = {SG_OPERATION_ALLOCATE, .memory = {.pool = pool, .size = size}};
    CUresult result = sg_ready();
    if (result == CUDA_SUCCESS && address == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_submit(stream, &operation);
    if (result == CUDA_SUCCESS)
        *address = operation.memory.address;
    return result;
}

SG_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
    return allocate_from(address, size, NULL, stream);
}

SG_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    if (pool == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return allocate_from(address, size, pool, stream);
}

CUresult sg_free_check(CUcontext context, const sg_memory_operation *memory) {
    sg_allocation found = {0};
    (void)context; /* memory of any context may be freed in the order of this stream */
    if (sg_graph_memory_owns(memory->address))
        return CUDA_SUCCESS; /* it may be lent out only when this is performed */
    bool whole = sg_memory_lookup(memory->address, &found) && found.address == memory->address;
    bool ours = found.kind == SG_MEMORY_DEVICE || (found.kind == SG_MEMORY_IMPORTED && found.pool != NULL);
    return whole && ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_free_perform(CUcontext context, const sg_memory_operation *memory) {
    sg_allocation was;
    (void)context;
    if (sg_graph_memory_owns(memory->address))
        return sg_graph_memory_lend(memory->address, false);
    return sg_memory_release(memory->address, 1u << SG_MEMORY_DEVICE | 1u << SG_MEMORY_IMPORTED, &was);
}

SG_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    return sg_submit(stream, &(sg_operation){SG_OPERATION_FREE, .memory = {.address = address}});
}

/* Pools of several processes. The descriptor of a pool says which pool it is, and holds no memory; each
 * allocation of it that another process shall have is exported by itself, as with cuIpcGetMemHandle. */
#include <string.h>
#include <sys/random.h>

#include "memory.h"
#include "pools.h"

#define DATA_MAGIC UINT64_C(0x314c4f4f50525451) /* "QTRPOOL1" */

typedef struct {
    uint64_t magic;
    unsigned char uuid[16];
    uint32_t share, pool;
    uint64_t secret, offset, size;
} pointer_content;

_Static_assert(sizeof(pointer_content) <= sizeof(CUmemPoolPtrExportData), "the data is too small for what it says");

static CUresult by_descriptor(int type) {
    return sg_shared_by_descriptor(type, "a pool shared otherwise than by descriptor");
}

SG_EXPORT CUresult cuMemPoolExportToShareableHandle(void *shareable, CUmemoryPool pool, int type,
                                                    unsigned long long flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (shareable == NULL || flags != 0 || !sg_object_is(pool, SG_POOL) || !pool->shareable)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = by_descriptor(type)) != CUDA_SUCCESS)
        return result;
    while (pool->number == 0)
        if (getrandom(&pool->number, sizeof pool->number, 0) != sizeof pool->number)
            return CUDA_ERROR_OPERATING_SYSTEM;
    int descriptor = sg_pool_descriptor(pool->gpu->device, pool->number);
    if (descriptor < 0)
        return sg_result_of_errno(descriptor);
    *(int *)shareable = descriptor;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shareable, int type,
                                                      unsigned long long flags) {
    sg_gpu *gpu;
    uint32_t number = 0;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (pool == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = by_descriptor(type)) != CUDA_SUCCESS)
        return result;
    for (int i = 0; i < sg_gpu_count() && number == 0; i++)
        if (sg_gpu_get(i, &gpu) == CUDA_SUCCESS)
            (void)sg_pool_of_descriptor(gpu->device, (int)(intptr_t)shareable, &number);
    if (number == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemoryPool made = sg_pool_make(gpu, false);
    if (made == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->imported = true;
    made->number = number;
    *pool = made;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address) {
    sg_shared_memory memory;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_shared_describe(address, true, &memory)) != CUDA_SUCCESS)
        return result;
    if (!memory.pool->shareable)
        return CUDA_ERROR_INVALID_VALUE;
    pointer_content content = {DATA_MAGIC, {0}, memory.share, memory.pool->number, memory.secret, memory.offset,
                               memory.size};
    memcpy(content.uuid, memory.uuid, sizeof content.uuid);
    memset(data, 0, sizeof *data);
    memcpy(data, &content, sizeof content);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    pointer_content content;
    CUdeviceptr opened;
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (address == NULL || data == NULL || !sg_object_is(pool, SG_POOL) || !pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&content, data, sizeof content);
    if (content.magic != DATA_MAGIC || content.pool != pool->number || content.share >= SG_MAXIMUM_SHARES)
        return CUDA_ERROR_INVALID_VALUE;
    sg_shared_memory memory = {content.share, content.secret, content.offset, content.size, pool, {0}};
    memcpy(memory.uuid, content.uuid, sizeof memory.uuid);
    result = sg_shared_open(context, &memory, &opened);
    if (result == CUDA_SUCCESS)
        *address = opened;
    return result;
}

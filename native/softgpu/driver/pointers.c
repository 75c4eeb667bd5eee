/* What is known about an address. */
#include <string.h>

#include "driver.h"

static void put(void *data, const void *value, size_t size) {
    memcpy(data, value, size);
}
#define PUT(type, value) put(data, &(type){value}, sizeof(type))

static bool on_device(const sg_allocation *a) {
    return a->kind != SG_MEMORY_HOST && a->kind != SG_MEMORY_REGISTERED;
}

static CUresult describe(void *data, int attribute, CUdeviceptr address, const sg_allocation *a) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: PUT(CUcontext, a->context); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        PUT(unsigned, on_device(a) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: PUT(CUdeviceptr, address); break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (on_device(a) && a->kind != SG_MEMORY_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(CUdeviceptr, address);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: PUT(unsigned long long, a->id); break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: PUT(unsigned, a->kind == SG_MEMORY_MANAGED); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: PUT(int, a->gpu->ordinal); break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: PUT(CUdeviceptr, a->address); break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: PUT(size_t, a->size); break;
    case CU_POINTER_ATTRIBUTE_MAPPED: PUT(unsigned, 1); break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: PUT(unsigned, 3); break; /* read and write */
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: PUT(CUmemoryPool, a->pool); break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: PUT(unsigned, 1); break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        PUT(unsigned, a->kind == SG_MEMORY_DEVICE && a->pool == NULL);
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: PUT(unsigned, 0); break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: PUT(unsigned long long, 0); break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
    sg_allocation found;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (data == NULL || attribute < 1 || attribute > 22 || !sg_memory_lookup(address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    return describe(data, attribute, address, &found);
}

/* Of an address that is not ours: zero, which also says "neither host nor device memory". */
static void describe_unknown(void *data, int attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: PUT(unsigned long long, 0); break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: PUT(int, -2); break; /* as the driver says: no device */
    default: PUT(unsigned, 0); break;
    }
}

SG_EXPORT CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr address) {
    sg_allocation found;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (attributes == NULL || data == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = sg_memory_lookup(address, &found);
    for (unsigned i = 0; i < count; i++) {
        if (data[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        if (!known || describe(data[i], attributes[i], address, &found) != CUDA_SUCCESS)
            describe_unknown(data[i], attributes[i]);
    }
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address) {
    sg_allocation found;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    /* Copies are always synchronous here, so the one attribute that can be set holds already. */
    if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !sg_memory_lookup(address, &found))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

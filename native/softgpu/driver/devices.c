/* Device queries. */
#include <stdio.h>
#include <string.h>

#include "driver.h"

SG_EXPORT CUresult cuDeviceGetCount(int *count) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sg_gpu_count();
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(ordinal, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *device = gpu->ordinal;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", gpu->device->facts.name);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, gpu->device->facts.uuid_bytes, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}
/* The two versions differ on MIG devices only. */
SG_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2);

SG_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = sg_capacity_bytes(&gpu->device->facts);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (major == NULL || minor == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *major = gpu->device->facts.compute_major;
    *minor = gpu->device->facts.compute_minor;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (text == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const sg_facts *facts = &gpu->device->facts;
    snprintf(text, (size_t)length, "%04X:%02X:%02X.0", facts->pci_domain, facts->pci_bus, facts->pci_device);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
    unsigned domain = 0, bus, slot, function = 0;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (device == NULL || text == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &slot, &function) < 3) {
        domain = 0;
        if (sscanf(text, "%2x:%2x.%1x", &bus, &slot, &function) < 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < sg_gpu_count(); i++) {
        sg_gpu *gpu;
        if (sg_gpu_get(i, &gpu) != CUDA_SUCCESS)
            continue;
        const sg_facts *facts = &gpu->device->facts;
        if (facts->pci_domain == domain && facts->pci_bus == bus && facts->pci_device == slot) {
            *device = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

SG_EXPORT CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (properties == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    const sg_facts *facts = &gpu->device->facts;
    *properties = (CUdevprop){
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {INT32_MAX, 65535, 65535},
        .sharedMemPerBlock = facts->shared_per_block_bytes,
        .totalConstantMemory = 65536,
        .SIMDWidth = 32,
        .memPitch = INT32_MAX,
        .regsPerBlock = facts->registers_per_block,
        .clockRate = facts->clock_khz,
        .textureAlign = 512,
    };
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuDeviceGetExecAffinitySupport(int *supported, int type, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (supported == NULL || type != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
}

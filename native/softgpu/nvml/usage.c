/* Memory and utilisation of a device. */
#include "nvml.h"

/* Everything that no program can ever have counts as reserved, the rest of the last chunk included. */
static void read_memory(sg_device *device, nvmlMemory_v2_t *memory) {
    uint64_t capacity = sg_capacity_bytes(&device->facts), used = sg_used_bytes(device);
    memory->total = device->facts.memory_bytes;
    memory->reserved = device->facts.memory_bytes - capacity;
    memory->used = used;
    memory->free = used < capacity ? capacity - used : 0;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    read_memory(device, memory);
    return NVML_SUCCESS;
}

/* The old form has no field for what is reserved and counts it as used. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory) {
    nvmlMemory_v2_t now;
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    read_memory(device, &now);
    *memory = (nvmlMemory_t){.total = now.total, .free = now.free, .used = now.used + now.reserved};
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *rates) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (rates == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    rates->gpu = (sg_recent_permille(device) + 5) / 10;
    rates->memory = rates->gpu; /* no bandwidth is modelled: a kernel that runs uses memory */
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned *percent, unsigned *period) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (percent == NULL || period == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 0;
    *period = 1000000;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization);

/* Memory of a device, how busy it is, and how busy it was. */
#include <time.h>

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

/* Nothing is ever mapped through the window: the host reaches a software GPU's memory without one. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *memory) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, memory, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (device->facts.bar1_bytes == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *memory = (nvmlBAR1Memory_t){.bar1Total = device->facts.bar1_bytes, .bar1Free = device->facts.bar1_bytes};
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
    rates->memory = rates->gpu; /* the time in which memory was used, not how much of its bandwidth */
    return NVML_SUCCESS;
}

/* There are no such engines, so they are idle; monitors take an error for a broken card. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t handle, unsigned *percent, unsigned *period) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, percent, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (period == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 0;
    *period = 1000000;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization);
SG_ALIAS(nvmlDeviceGetJpgUtilization, nvmlDeviceGetEncoderUtilization);
SG_ALIAS(nvmlDeviceGetOfaUtilization, nvmlDeviceGetEncoderUtilization);

/* ---- samples ---- */

enum { POWER = 0, GPU = 1, MEMORY = 2, PROCESSOR_CLOCK = 5, MEMORY_CLOCK = 6, SAMPLE_KINDS = 10 };

static bool sampled(const sg_facts *facts, unsigned kind, unsigned busy_permille, unsigned *value) {
    switch (kind) {
    case POWER: *value = (unsigned)sg_modelled_power_mw(facts, busy_permille); return facts->power_limit_mw != 0;
    case GPU:
    case MEMORY: *value = (busy_permille + 5) / 10; return true;
    case PROCESSOR_CLOCK: *value = (unsigned)facts->clock_khz / 1000; return true;
    case MEMORY_CLOCK: *value = (unsigned)facts->memory_clock_khz / 1000; return facts->memory_clock_khz != 0;
    default: return false;
    }
}

/* The tenths of a second that ended after `last_seen`, in microseconds since the epoch. Without an array *count
 * is how many there can be. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t handle, unsigned kind, unsigned long long last_seen,
                                            unsigned *value_type, unsigned *count, nvmlSample_t *samples) {
    sg_sample past[SG_SAMPLES];
    unsigned value, kept = 0;
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (value_type == NULL || count == NULL || kind >= SAMPLE_KINDS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!sampled(&device->facts, kind, 0, &value))
        return NVML_ERROR_NOT_SUPPORTED;
    *value_type = SG_VALUE_UNSIGNED_INT;
    if (samples == NULL) {
        *count = SG_SAMPLES;
        return NVML_SUCCESS;
    }
    int found = sg_recent_samples(device, past);
    unsigned long long now_us = sg_microseconds_now(), now_ns = sg_monotonic_ns();
    for (int i = 0; i < found && kept < *count; i++) {
        unsigned long long at = now_us - (now_ns - past[i].end_ns) / 1000;
        (void)sampled(&device->facts, kind, past[i].busy_permille, &value);
        if (at > last_seen)
            samples[kept++] = (nvmlSample_t){.timeStamp = at, .sampleValue = {.uiVal = value}};
    }
    *count = kept;
    return kept == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

/* What each device can do, and how it is set up. */
#include "nvml.h"

typedef unsigned (*answer)(const sg_facts *facts);

static nvmlReturn_t tell(nvmlDevice_t handle, answer of, unsigned *value) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (value == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = of(&device->facts);
    return NVML_SUCCESS;
}

static nvmlReturn_t always(nvmlDevice_t handle, unsigned constant, unsigned *value) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (value == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *value = constant;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (major == NULL || minor == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = device->facts.compute_major;
    *minor = device->facts.compute_minor;
    return NVML_SUCCESS;
}

static unsigned cores(const sg_facts *facts) {
    return (unsigned)facts->multiprocessors * (unsigned)facts->fp32_lanes_per_multiprocessor;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t handle, unsigned *count) {
    return tell(handle, cores, count);
}

/* NVML_DEVICE_ARCH_*: Maxwell 3, Pascal 4, Volta 5, Turing 6, Ampere 7, Ada 8, Hopper 9, Blackwell 10. */
static unsigned architecture(const sg_facts *facts) {
    switch (facts->compute_major) {
    case 5: return 3;
    case 6: return 4;
    case 7: return facts->compute_minor >= 5 ? 6 : 5;
    case 8: return facts->compute_minor == 9 ? 8 : 7;
    case 9: return 9;
    case 10:
    case 12: return 10;
    default: return 0xFFFFFFFFu;
    }
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t handle, unsigned *number) {
    return tell(handle, architecture, number);
}

static unsigned bus_width(const sg_facts *facts) {
    return (unsigned)facts->bus_width_bits;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned *bits) {
    return tell(handle, bus_width, bits);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t handle, unsigned *brand) {
    return always(handle, 0, brand); /* unknown: it is nobody's product */
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, unsigned *mode) {
    return always(handle, 0, mode); /* shared by any number of processes */
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, unsigned *state) {
    return always(handle, 0, state);
}
SG_ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState);

SG_EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, unsigned *mode) {
    return always(handle, 1, mode);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t handle, unsigned *mode) {
    return always(handle, 0, mode);
}
SG_ALIAS(nvmlDeviceGetDisplayActive, nvmlDeviceGetDisplayMode);

SG_EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned *yes) {
    return always(handle, 0, yes);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t handle, unsigned *count) {
    return always(handle, 0, count);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle, unsigned *mode) {
    return always(handle, 0, mode);
}

/* Splitting is not modelled: where the card can be split, MIG is off. */
static bool has_mig(const sg_facts *facts) {
    return facts->mig_instances > 0;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current, unsigned *pending) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (current == NULL || pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!has_mig(&device->facts))
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = 0;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *count) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)device->facts.mig_instances;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *yes) {
    return always(handle, 0, yes);
}

/* As the card comes: on for a data centre, off on a desk. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (current == NULL || pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->facts.ecc < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = (unsigned)device->facts.ecc;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned type, unsigned counter,
                                                   unsigned long long *count) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || type > 1 || counter > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, unsigned type, unsigned counter,
                                                       unsigned location, unsigned long long *count) {
    (void)location;
    return nvmlDeviceGetTotalEccErrors(handle, type, counter, count);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (reasons == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *reasons = 0;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);

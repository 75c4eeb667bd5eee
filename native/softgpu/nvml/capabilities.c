/* What each device can do, and how it is set up. */
#include "nvml.h"

typedef unsigned (*answer)(const sg_facts *facts);

static nvmlReturn_t tell(nvmlDevice_t handle, answer of, unsigned *value) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, value, &device);
    if (result == NVML_SUCCESS)
        *value = of(&device->facts);
    return result;
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
    return sg_answer(handle, 0, brand); /* unknown: it is nobody's product */
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, unsigned *mode) {
    return sg_answer(handle, 0, mode); /* shared by any number of processes */
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, unsigned *mode) {
    return sg_answer(handle, 1, mode);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t handle, unsigned *mode) {
    return sg_answer(handle, 0, mode);
}
SG_ALIAS(nvmlDeviceGetDisplayActive, nvmlDeviceGetDisplayMode);

SG_EXPORT nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t handle, unsigned *yes) {
    return sg_answer(handle, 0, yes);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle, unsigned *mode) {
    return sg_answer(handle, 0, mode);
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

static unsigned mig_instances(const sg_facts *facts) {
    return (unsigned)facts->mig_instances;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned *count) {
    return tell(handle, mig_instances, count);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *part) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, part, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (!has_mig(&device->facts))
        return NVML_ERROR_NOT_SUPPORTED;
    return index < mig_instances(&device->facts) ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}

/* No handle of ours is one of a part. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t part, nvmlDevice_t *whole) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(part, whole, &device);
    return result == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *yes) {
    return sg_answer(handle, 0, yes);
}

/* ---- answers in a struct with a version ---- */

static nvmlReturn_t word(nvmlDevice_t handle, unsigned version, unsigned constant, nvmlVersionedWord_t *answer) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, answer, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (answer->version != version)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    answer->value = constant;
    return NVML_SUCCESS;
}

/* The host's pages are not the device's. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t handle, nvmlVersionedWord_t *mode) {
    return word(handle, NVML_STRUCT_VERSION(nvmlVersionedWord_t, 1), 0, mode);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t handle, nvmlVersionedWord_t *capabilities) {
    return word(handle, NVML_STRUCT_VERSION(nvmlVersionedWord_t, 1), 0, capabilities);
}

/* The counters of a card's monitor are not there. Its version is a plain number. */
SG_EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlVersionedWord_t *support) {
    return word(handle, 1, 0, support);
}

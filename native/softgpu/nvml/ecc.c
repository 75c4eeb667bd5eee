/* Errors of memory: how many there were, and what a card does about them. The only errors of a software GPU
 * are those that were reported to it (device/incidents.c), all in its device memory. */
#include "nvml.h"

enum { CORRECTED = 0, UNCORRECTED = 1, ERROR_TYPES };
enum { COUNTER_VOLATILE = 0, COUNTER_AGGREGATE = 1, COUNTERS };
enum { LOCATION_DRAM = 2, LOCATIONS = 8 };

/* As the card comes: on for a data centre, off on a desk. */
static nvmlReturn_t mode(nvmlDevice_t handle, const void *answer, sg_device **device) {
    nvmlReturn_t result = sg_session_ask(handle, answer, device);
    return result == NVML_SUCCESS && (*device)->facts.ecc < 0 ? NVML_ERROR_NOT_SUPPORTED : result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending) {
    sg_device *device;
    nvmlReturn_t result = mode(handle, current, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (pending == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = (unsigned)device->facts.ecc;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t handle, unsigned *by_default) {
    sg_device *device;
    nvmlReturn_t result = mode(handle, by_default, &device);
    if (result == NVML_SUCCESS)
        *by_default = (unsigned)device->facts.ecc;
    return result;
}

/* Counts are there only where ECC is on. */
static nvmlReturn_t counting(nvmlDevice_t handle, const void *answer, sg_device **device) {
    nvmlReturn_t result = mode(handle, answer, device);
    if (result == NVML_SUCCESS && (*device)->facts.ecc != 1)
        result = NVML_ERROR_NOT_SUPPORTED;
    return result == NVML_SUCCESS ? sg_session_state(handle, device) : result;
}

/* Since the device was made. Nothing resets the volatile counter: there is no driver to load again. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned type, unsigned counter,
                                                   unsigned long long *count) {
    sg_device *device;
    nvmlReturn_t result = counting(handle, count, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (type >= ERROR_TYPES || counter >= COUNTERS)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = sg_memory_errors(device, type == UNCORRECTED);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, unsigned type, unsigned counter,
                                                       unsigned location, unsigned long long *count) {
    nvmlReturn_t result = nvmlDeviceGetTotalEccErrors(handle, type, counter, count);
    if (result != NVML_SUCCESS)
        return result;
    if (location >= LOCATIONS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (location != LOCATION_DRAM)
        *count = 0;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t handle, unsigned type, unsigned counter,
                                                      nvmlEccErrorCounts_t *counts) {
    unsigned long long in_memory;
    nvmlReturn_t result = nvmlDeviceGetTotalEccErrors(handle, type, counter, &in_memory);
    if (result != NVML_SUCCESS)
        return result;
    if (counts == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *counts = (nvmlEccErrorCounts_t){.deviceMemory = in_memory};
    return NVML_SUCCESS;
}

/* ---- what a card does about them: rows are remapped from Ampere on, pages retired before ---- */

static bool remaps_rows(const sg_facts *facts) {
    return facts->ecc == 1 && facts->compute_major >= 8;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned *corrected, unsigned *uncorrected,
                                                 unsigned *pending, unsigned *failed) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, corrected, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (uncorrected == NULL || pending == NULL || failed == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!remaps_rows(&device->facts))
        return NVML_ERROR_NOT_SUPPORTED;
    *corrected = *uncorrected = *pending = *failed = 0; /* nothing here remaps: true of any error so far */
    return NVML_SUCCESS;
}

static nvmlReturn_t retired(nvmlDevice_t handle, unsigned cause, unsigned *count) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, count, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (cause > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->facts.ecc != 1 || remaps_rows(&device->facts))
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, unsigned cause, unsigned *count,
                                                 unsigned long long *addresses) {
    (void)addresses;
    return retired(handle, cause, count);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t handle, unsigned cause, unsigned *count,
                                                    unsigned long long *addresses, unsigned long long *times) {
    (void)addresses;
    (void)times;
    return retired(handle, cause, count);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t handle, unsigned *pending) {
    return retired(handle, 0, pending);
}

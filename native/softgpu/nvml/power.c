/* Power. A software GPU has no sensor: what it draws is a model, the profile's idle draw and from there in
 * proportion to how busy it was, up to the power limit. The limits are the card's. */
#include <time.h>

#include "nvml.h"

static nvmlReturn_t limit(nvmlDevice_t handle, const void *answer, sg_device **device) {
    nvmlReturn_t result = sg_session_ask(handle, answer, device);
    if (result == NVML_SUCCESS && (*device)->facts.power_limit_mw == 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned *milliwatts) {
    sg_device *device;
    nvmlReturn_t result = limit(handle, milliwatts, &device);
    if (result == NVML_SUCCESS)
        *milliwatts = (unsigned)device->facts.power_limit_mw;
    return result;
}
SG_ALIAS(nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit);
SG_ALIAS(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDeviceGetPowerManagementLimit);

/* A device that does not say how far down its limit goes has a limit that cannot be moved. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle, unsigned *least,
                                                                    unsigned *most) {
    sg_device *device;
    nvmlReturn_t result = limit(handle, least, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (most == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *most = (unsigned)device->facts.power_limit_mw;
    *least = device->facts.power_limit_min_mw != 0 ? (unsigned)device->facts.power_limit_min_mw : *most;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t handle, unsigned *mode) {
    sg_device *device;
    nvmlReturn_t result = limit(handle, mode, &device);
    if (result == NVML_SUCCESS)
        *mode = 1;
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t handle, unsigned *source) {
    return sg_answer(handle, 0, source); /* mains */
}

/* ---- the model ---- */

static uint64_t idle_mw(const sg_facts *facts) {
    return facts->power_idle_mw != 0 ? (uint64_t)facts->power_idle_mw : (uint64_t)facts->power_limit_mw / 8;
}

uint64_t sg_modelled_power_mw(const sg_facts *facts, unsigned busy_permille) {
    uint64_t idle = idle_mw(facts), most = (uint64_t)facts->power_limit_mw;
    return most <= idle ? most : idle + (most - idle) * busy_permille / 1000;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned *milliwatts) {
    sg_device *device;
    nvmlReturn_t result = limit(handle, milliwatts, &device);
    if (result == NVML_SUCCESS)
        result = sg_session_state(handle, &device);
    if (result == NVML_SUCCESS)
        *milliwatts = (unsigned)sg_modelled_power_mw(&device->facts, sg_recent_permille(device));
    return result;
}

/* Since the machine started, as a driver loaded then would count: the idle draw all the while, and the rest
 * of it for as long as the device was busy. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t handle, unsigned long long *millijoules) {
    sg_device *device;
    struct timespec up;
    nvmlReturn_t result = limit(handle, millijoules, &device);
    if (result == NVML_SUCCESS)
        result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    clock_gettime(CLOCK_BOOTTIME, &up);
    uint64_t idle = idle_mw(&device->facts), most = sg_modelled_power_mw(&device->facts, 1000);
    uint64_t up_ms = (uint64_t)up.tv_sec * 1000 + (uint64_t)up.tv_nsec / 1000000;
    *millijoules = idle * up_ms / 1000 + (most - idle) * (sg_busy_ns(device) / 1000000) / 1000;
    return NVML_SUCCESS;
}

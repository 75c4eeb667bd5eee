/* Clocks, power, temperature. A software GPU has no sensors: clocks are the profile's, and power and
 * temperature follow from how busy the device was in the last second, so that a monitor shows the same
 * shape as on a card. */
#include "nvml.h"

enum { IDLE_CELSIUS = 34, BUSY_CELSIUS = 70, SLOWDOWN_CELSIUS = 90, SHUTDOWN_CELSIUS = 95 };
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_VIDEO = 3 };

SG_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned type, unsigned *megahertz) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (megahertz == NULL || type > CLOCK_VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    int khz = type == CLOCK_MEMORY ? device->facts.memory_clock_khz : device->facts.clock_khz;
    if (type == CLOCK_VIDEO || khz == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *megahertz = (unsigned)khz / 1000;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClockInfo);
SG_ALIAS(nvmlDeviceGetApplicationsClock, nvmlDeviceGetClockInfo);
SG_ALIAS(nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetClockInfo);

SG_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t handle, unsigned type, unsigned id, unsigned *megahertz) {
    return id > 3 ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetClockInfo(handle, type, megahertz);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned *milliwatts) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (milliwatts == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->facts.power_limit_mw == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *milliwatts = (unsigned)device->facts.power_limit_mw;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit);
SG_ALIAS(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDeviceGetPowerManagementLimit);

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle, unsigned *least,
                                                                    unsigned *most) {
    nvmlReturn_t result = nvmlDeviceGetPowerManagementLimit(handle, least);
    return result == NVML_SUCCESS ? nvmlDeviceGetPowerManagementLimit(handle, most) : result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned *milliwatts) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetPowerManagementLimit(handle, milliwatts);
    if (result != NVML_SUCCESS)
        return result;
    unsigned idle = *milliwatts / 8;
    *milliwatts = idle + (unsigned)((unsigned long long)(*milliwatts - idle) * sg_recent_permille(device) / 1000);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, unsigned sensor, unsigned *celsius) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (celsius == NULL || sensor != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = IDLE_CELSIUS + (BUSY_CELSIUS - IDLE_CELSIUS) * sg_recent_permille(device) / 1000;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, unsigned which, unsigned *celsius) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (celsius == NULL || which > 7)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (which > 1)
        return NVML_ERROR_NOT_SUPPORTED;
    *celsius = which == 0 ? SHUTDOWN_CELSIUS : SLOWDOWN_CELSIUS;
    return NVML_SUCCESS;
}

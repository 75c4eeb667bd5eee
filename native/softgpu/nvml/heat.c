/* Temperature and fans. Both are models, like power: warmer in proportion to how busy the device was, between
 * these bounds and the profile's slowdown temperature, and fans that follow the temperature. */
#include "nvml.h"

enum { SENSOR_GPU = 0 };
enum { IDLE_CELSIUS = 34, BELOW_SLOWDOWN_CELSIUS = 20 };
enum { DEFAULT_SLOWDOWN_CELSIUS = 90, DEFAULT_SHUTDOWN_CELSIUS = 95 };
enum { IDLE_FAN_PERCENT = 30, LEAST_FAN_PERCENT = 30, MOST_FAN_PERCENT = 100 };

static int slowdown(const sg_facts *facts) {
    return facts->slowdown_celsius != 0 ? facts->slowdown_celsius : DEFAULT_SLOWDOWN_CELSIUS;
}

/* Never hot enough to slow down: nothing here does. */
static int temperature(sg_device *device) {
    int busiest = slowdown(&device->facts) - BELOW_SLOWDOWN_CELSIUS;
    return IDLE_CELSIUS + (busiest - IDLE_CELSIUS) * (int)sg_recent_permille(device) / 1000;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, unsigned sensor, unsigned *celsius) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (celsius == NULL || sensor != SENSOR_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    *celsius = (unsigned)temperature(device);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_v1_t *answer) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, answer, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (answer->version != NVML_STRUCT_VERSION(nvmlTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    unsigned celsius;
    result = nvmlDeviceGetTemperature(handle, answer->sensorType, &celsius);
    if (result == NVML_SUCCESS)
        answer->temperature = (int)celsius;
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, unsigned which, unsigned *celsius) {
    enum { SHUTDOWN = 0, SLOWDOWN = 1, COUNT = 8 };
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, celsius, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (which >= COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (which > SLOWDOWN)
        return NVML_ERROR_NOT_SUPPORTED;
    int shutdown = device->facts.shutdown_celsius;
    if (which == SLOWDOWN)
        *celsius = (unsigned)slowdown(&device->facts);
    else
        *celsius = shutdown != 0 ? (unsigned)shutdown : DEFAULT_SHUTDOWN_CELSIUS;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t handle, nvmlMarginTemperature_v1_t *answer) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, answer, &device);
    if (result == NVML_SUCCESS && answer->version != NVML_STRUCT_VERSION(nvmlMarginTemperature_v1_t, 1))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS)
        result = sg_session_state(handle, &device);
    if (result == NVML_SUCCESS)
        answer->marginTemperature = slowdown(&device->facts) - temperature(device);
    return result;
}

/* ---- fans ---- */

SG_EXPORT nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t handle, unsigned *count) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, count, &device);
    if (result == NVML_SUCCESS)
        *count = (unsigned)device->facts.fans;
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t handle, unsigned fan, unsigned *percent) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, percent, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (device->facts.fans == 0)
        return NVML_ERROR_NOT_SUPPORTED; /* cooled by its server */
    if (fan >= (unsigned)device->facts.fans)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = sg_session_state(handle, &device);
    if (result == NVML_SUCCESS)
        *percent = IDLE_FAN_PERCENT + (MOST_FAN_PERCENT - IDLE_FAN_PERCENT) * sg_recent_permille(device) / 2000;
    return result;
}
SG_ALIAS(nvmlDeviceGetTargetFanSpeed, nvmlDeviceGetFanSpeed_v2);

SG_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t handle, unsigned *percent) {
    return nvmlDeviceGetFanSpeed_v2(handle, 0, percent);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t handle, unsigned *least, unsigned *most) {
    nvmlReturn_t result = nvmlDeviceGetFanSpeed(handle, least);
    if (result != NVML_SUCCESS)
        return result;
    if (most == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *least = LEAST_FAN_PERCENT;
    *most = MOST_FAN_PERCENT;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t handle, unsigned fan, unsigned *policy) {
    nvmlReturn_t result = nvmlDeviceGetFanSpeed_v2(handle, fan, policy);
    if (result == NVML_SUCCESS)
        *policy = 0; /* follows the temperature */
    return result;
}

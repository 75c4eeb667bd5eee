/* Clocks, performance state and what holds clocks down. A software GPU has one clock for its
 * multiprocessors and one for its memory, those of the profile, and never changes them: they are what its
 * %clock64 and its model of time count in. So it is always in P0, and nothing ever throttles it. */
#include "nvml.h"

enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_VIDEO = 3, CLOCKS };
enum { CLOCK_IDS = 4 };

SG_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned type, unsigned *megahertz) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, megahertz, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (type >= CLOCKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    int khz = type == CLOCK_MEMORY ? device->facts.memory_clock_khz : device->facts.clock_khz;
    if (type == CLOCK_VIDEO || khz == 0)
        return NVML_ERROR_NOT_SUPPORTED; /* nothing here decodes */
    *megahertz = (unsigned)khz / 1000;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClockInfo);
SG_ALIAS(nvmlDeviceGetApplicationsClock, nvmlDeviceGetClockInfo);
SG_ALIAS(nvmlDeviceGetDefaultApplicationsClock, nvmlDeviceGetClockInfo);
SG_ALIAS(nvmlDeviceGetMaxCustomerBoostClock, nvmlDeviceGetClockInfo);

SG_EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t handle, unsigned type, unsigned id, unsigned *megahertz) {
    return id >= CLOCK_IDS ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetClockInfo(handle, type, megahertz);
}

/* The one clock that there is, in NVML's way with arrays. */
static nvmlReturn_t list_one(nvmlDevice_t handle, unsigned type, unsigned *count, unsigned *clocks) {
    unsigned megahertz;
    nvmlReturn_t result = nvmlDeviceGetClockInfo(handle, type, &megahertz);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (*count > 0 && clocks == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    bool room = *count >= 1;
    *count = 1;
    if (!room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    clocks[0] = megahertz;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t handle, unsigned *count, unsigned *clocks) {
    return list_one(handle, CLOCK_MEMORY, count, clocks);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t handle, unsigned memory, unsigned *count,
                                                            unsigned *clocks) {
    unsigned only;
    nvmlReturn_t result = nvmlDeviceGetClockInfo(handle, CLOCK_MEMORY, &only);
    if (result != NVML_SUCCESS)
        return result;
    return memory == only ? list_one(handle, CLOCK_GRAPHICS, count, clocks) : NVML_ERROR_NOT_FOUND;
}

/* ---- performance states ---- */

enum { P0 = 0, P_LAST = 15, P_UNKNOWN = 32 };

SG_EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, unsigned *state) {
    return sg_answer(handle, P0, state);
}
SG_ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState);

/* `bytes` is the size of the array. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t handle, unsigned *states, unsigned bytes) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, states, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (bytes < sizeof *states)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < bytes / sizeof *states; i++)
        states[i] = i == 0 ? P0 : P_UNKNOWN;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t handle, unsigned type, unsigned state,
                                                        unsigned *least, unsigned *most) {
    if (state > P_LAST)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = nvmlDeviceGetClockInfo(handle, type, least);
    if (result != NVML_SUCCESS)
        return result;
    return state == P0 ? nvmlDeviceGetClockInfo(handle, type, most) : NVML_ERROR_NOT_SUPPORTED;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t handle, nvmlGpuDynamicPstatesInfo_t *info) {
    enum { GPU = 0, MEMORY = 1 };
    nvmlUtilization_t rates;
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, info, &device);
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetUtilizationRates(handle, &rates);
    if (result != NVML_SUCCESS)
        return result;
    *info = (nvmlGpuDynamicPstatesInfo_t){.flags = 0};
    info->utilization[GPU].present = info->utilization[MEMORY].present = 1;
    info->utilization[GPU].percentage = rates.gpu;
    info->utilization[MEMORY].percentage = rates.memory;
    return NVML_SUCCESS;
}

/* ---- what holds clocks down ---- */

SG_EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, reasons, &device);
    if (result == NVML_SUCCESS)
        *reasons = 0; /* none, also when idle: the clock does not fall */
    return result;
}
SG_ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);
SG_ALIAS(nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetCurrentClocksEventReasons);
SG_ALIAS(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);

SG_EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t handle, unsigned policy, nvmlViolationTime_t *time) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, time, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (policy > 11 || (policy > 5 && policy < 10))
        return NVML_ERROR_INVALID_ARGUMENT;
    *time = (nvmlViolationTime_t){.referenceTime = sg_microseconds_now(), .violationTime = 0};
    return NVML_SUCCESS;
}

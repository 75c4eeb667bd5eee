/* Events. Nothing ever goes wrong with a software GPU, so a wait ends when its time is over. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "nvml.h"

struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nvmlEventSet_t sets;

static bool is_set(nvmlEventSet_t wanted) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (nvmlEventSet_t set = sets; set != NULL && !found; set = set->next)
        found = set == wanted;
    pthread_mutex_unlock(&lock);
    return found;
}

SG_EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *made) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (made == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlEventSet_t set = calloc(1, sizeof *set);
    if (set == NULL)
        return NVML_ERROR_MEMORY;
    pthread_mutex_lock(&lock);
    set->next = sets;
    sets = set;
    pthread_mutex_unlock(&lock);
    *made = set;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    result = NVML_ERROR_INVALID_ARGUMENT;
    pthread_mutex_lock(&lock);
    for (nvmlEventSet_t *at = &sets; *at != NULL; at = &(*at)->next)
        if (*at == set) {
            *at = set->next;
            free(set);
            result = NVML_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

enum { SINGLE_BIT_ECC = 1, DOUBLE_BIT_ECC = 2, XID = 8 };

SG_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *types) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (types == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *types = SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (!is_set(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    return (types & ~(unsigned long long)(SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID)) != 0 ? NVML_ERROR_NOT_SUPPORTED
                                                                                       : NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (data == NULL || !is_set(set))
        return NVML_ERROR_INVALID_ARGUMENT;
    struct timespec rest = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
    return NVML_ERROR_TIMEOUT;
}
SG_ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2);

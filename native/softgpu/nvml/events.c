/* Events: what went wrong with the devices of a set, since they were registered in it, in order.
 *
 * What is reported lies in the shared state of each device (device/incidents.c), where a reader of any process
 * finds it. A set remembers, for each device, the last incident that it has seen. Waiting looks at all of
 * them every POLL_NS: a set has several devices, and nothing of Linux before 5.16 sleeps on several words. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "nvml.h"

#define POLL_NS 10000000

enum { SINGLE_BIT_ECC = 1, DOUBLE_BIT_ECC = 2, XID = 8, ALL_TYPES = SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID };

typedef struct registration {
    struct registration *next;
    nvmlDevice_t device;
    unsigned long long types;
    uint64_t seen;   /* the last incident that was looked at */
    bool stepped;    /* the next one could not be read; if it still cannot, it is stepped over */
} registration;

struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
    registration *registrations;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the sets and what is in them */
static nvmlEventSet_t sets;

void sg_events_forget(void) {
    pthread_mutex_init(&lock, NULL);
}

/* Under the lock. */
static bool is_set(nvmlEventSet_t wanted) {
    nvmlEventSet_t set = sets;
    while (set != NULL && set != wanted)
        set = set->next;
    return set != NULL;
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

static void discard(nvmlEventSet_t set) {
    for (registration *at = set->registrations, *next; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    free(set);
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
            discard(set);
            result = NVML_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *types) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, types, &device);
    if (result == NVML_SUCCESS)
        *types = device->facts.ecc == 1 ? ALL_TYPES : XID;
    return result;
}

/* A device registered again listens to the types of both. */
static nvmlReturn_t enrol(nvmlEventSet_t set, nvmlDevice_t handle, unsigned long long types, uint64_t seen) {
    registration *at = set->registrations;
    while (at != NULL && at->device != handle)
        at = at->next;
    if (at != NULL) {
        at->types |= types;
        return NVML_SUCCESS;
    }
    registration *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NVML_ERROR_MEMORY;
    *made = (registration){.next = set->registrations, .device = handle, .types = types, .seen = seen};
    set->registrations = made;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set) {
    sg_device *device;
    unsigned long long supported;
    nvmlReturn_t result = nvmlDeviceGetSupportedEventTypes(handle, &supported);
    if (result == NVML_SUCCESS)
        result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (!is_set(set))
        result = NVML_ERROR_INVALID_ARGUMENT;
    else if ((types & ~supported) != 0)
        result = NVML_ERROR_NOT_SUPPORTED;
    else if (types != 0)
        result = enrol(set, handle, types, sg_incident_newest(device));
    pthread_mutex_unlock(&lock);
    return result;
}

static unsigned long long type_of(sg_incident_kind kind) {
    switch (kind) {
    case SG_INCIDENT_XID: return XID;
    case SG_INCIDENT_CORRECTED: return SINGLE_BIT_ECC;
    case SG_INCIDENT_UNCORRECTED: return DOUBLE_BIT_ECC;
    }
    return 0; /* written by nobody of ours */
}

/* The next incident of one device that the set listens to. */
static bool next_of(registration *at, sg_device *device, nvmlEventData_t *data) {
    sg_failures told;
    (void)sg_failures_any(device, &told); /* what the device was told to have had is reported by who looks first */
    uint64_t newest = sg_incident_newest(device);
    if (newest - at->seen > SG_INCIDENTS)
        at->seen = newest < SG_INCIDENTS ? 0 : newest - SG_INCIDENTS; /* or somebody wrote nonsense there */
    while (at->seen < newest) {
        sg_incident incident;
        if (!sg_incident_read(device, at->seen + 1, &incident)) {
            at->stepped = !at->stepped;
            if (at->stepped)
                return false; /* perhaps being written at this moment: look once more */
            at->seen++;
            continue;
        }
        at->stepped = false;
        at->seen++;
        unsigned long long type = type_of(incident.kind);
        if ((type & at->types) == 0)
            continue;
        *data = (nvmlEventData_t){.device = at->device,
                                  .eventType = type,
                                  .eventData = type == XID ? incident.value : 0,
                                  .gpuInstanceId = SG_NO_INSTANCE,
                                  .computeInstanceId = SG_NO_INSTANCE};
        return true;
    }
    return false;
}

static nvmlReturn_t look(nvmlEventSet_t set, nvmlEventData_t *data) {
    nvmlReturn_t result = NVML_ERROR_TIMEOUT;
    pthread_mutex_lock(&lock);
    registration *at = is_set(set) ? set->registrations : NULL;
    if (!is_set(set))
        result = NVML_ERROR_INVALID_ARGUMENT; /* freed by another thread, perhaps while we wait */
    for (; at != NULL && result == NVML_ERROR_TIMEOUT; at = at->next) {
        sg_device *device;
        nvmlReturn_t opened = sg_session_state(at->device, &device);
        if (opened != NVML_SUCCESS)
            result = opened;
        else if (next_of(at, device, data))
            result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned milliseconds) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (data == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t end = sg_monotonic_ns() + (uint64_t)milliseconds * 1000000;
    while ((result = look(set, data)) == NVML_ERROR_TIMEOUT) {
        uint64_t now = sg_monotonic_ns();
        if (now >= end)
            break;
        nanosleep(&(struct timespec){.tv_nsec = end - now < POLL_NS ? (long)(end - now) : POLL_NS}, NULL);
    }
    return result;
}
SG_ALIAS(nvmlEventSetWait, nvmlEventSetWait_v2);

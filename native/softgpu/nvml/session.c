/* Init, shutdown, and the handles. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned sessions;
static sg_device *devices; /* kept after the last shutdown: a handle stays an address of ours */
static int device_count;

/* The child opens the devices itself when it looks: a lock taken through the parent's open file would
 * not keep the two apart. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&lock, NULL);
    sg_events_forget();
    for (int i = 0; i < device_count; i++)
        sg_device_forget(&devices[i]);
}

static nvmlReturn_t find_devices(void) {
    static char folder[4096]; /* under `lock` */
    static bool prepared;
    if (devices == NULL && (devices = calloc(SG_MAXIMUM_DEVICES, sizeof *devices)) == NULL)
        return NVML_ERROR_MEMORY;
    if (!prepared && pthread_atfork(NULL, NULL, after_fork_in_child) != 0)
        return NVML_ERROR_MEMORY;
    prepared = true;
    device_count = 0;
    if (sg_inventory_folder((const void *)&find_devices, folder, sizeof folder) == 0)
        device_count = sg_inventory_read(folder, devices, SG_MAXIMUM_DEVICES);
    return NVML_SUCCESS; /* no device is an answer, not an error */
}

SG_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    nvmlReturn_t result = NVML_SUCCESS;
    (void)flags;
    pthread_mutex_lock(&lock);
    if (sessions == 0)
        result = find_devices();
    if (result == NVML_SUCCESS)
        sessions++;
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT nvmlReturn_t nvmlInit_v2(void) {
    return nvmlInitWithFlags(0);
}
SG_ALIAS(nvmlInit, nvmlInit_v2);

SG_EXPORT nvmlReturn_t nvmlShutdown(void) {
    nvmlReturn_t result = NVML_SUCCESS;
    pthread_mutex_lock(&lock);
    if (sessions == 0)
        result = NVML_ERROR_UNINITIALIZED;
    else if (--sessions == 0)
        for (int i = 0; i < device_count; i++)
            sg_state_close(&devices[i]);
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t sg_session_ready(void) {
    pthread_mutex_lock(&lock);
    bool ready = sessions > 0;
    pthread_mutex_unlock(&lock);
    return ready ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

int sg_session_count(void) {
    return device_count;
}

int sg_session_branch(void) {
    return sg_oldest_branch(devices, device_count, false);
}

nvmlDevice_t sg_session_handle(int index) {
    return (nvmlDevice_t)&devices[index];
}

static nvmlReturn_t device_of(nvmlDevice_t handle, sg_device **device) {
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    for (int i = 0; i < device_count; i++)
        if (handle == (nvmlDevice_t)&devices[i]) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* The part of NVML that a file of this folder answers for. */
static bool is_missing(const sg_failures *failures, const char *file) {
    static const char *const files[SG_NVML_PARTS] = {"accounting.c", "clocks.c",    "ecc.c",  "fields.c",   "pcie.c",
                                                     "power.c",      "processes.c", "heat.c", "topology.c", "usage.c"};
    const char *slash = strrchr(file, '/');
    for (int i = 0; i < SG_NVML_PARTS; i++)
        if ((failures->without & 1u << i) != 0 && strcmp(slash != NULL ? slash + 1 : file, files[i]) == 0)
            return true;
    return false;
}

static bool has_fallen_off(const sg_failures *failures) {
    bool lost = failures->lost;
    for (int i = 0; i < failures->event_count; i++)
        lost = lost || (failures->events[i].kind == SG_EVENT_XID && failures->events[i].value == 79);
    return lost;
}

nvmlReturn_t sg_session_device_for(const char *file, nvmlDevice_t handle, sg_device **device) {
    sg_failures now;
    nvmlReturn_t result = device_of(handle, device);
    if (result != NVML_SUCCESS || !sg_failures_any(*device, &now))
        return result;
    if (has_fallen_off(&now) && strstr(file, "events.c") == NULL && strstr(file, "identity.c") == NULL)
        return NVML_ERROR_GPU_IS_LOST;
    return is_missing(&now, file) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t sg_session_ask_for(const char *file, nvmlDevice_t handle, const void *answer, sg_device **device) {
    nvmlReturn_t result = sg_session_device_for(file, handle, device);
    return result == NVML_SUCCESS && answer == NULL ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t sg_answer_for(const char *file, nvmlDevice_t handle, unsigned constant, unsigned *value) {
    sg_device *device;
    nvmlReturn_t result = sg_session_ask_for(file, handle, value, &device);
    if (result == NVML_SUCCESS)
        *value = constant;
    return result;
}

static nvmlReturn_t result_of_errno(int error) {
    switch (error) {
    case 0: return NVML_SUCCESS;
    case -EACCES:
    case -EPERM: return NVML_ERROR_NO_PERMISSION;
    case -ENOENT: return NVML_ERROR_GPU_IS_LOST; /* removed since */
    case -EPROTO: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    case -ETIMEDOUT: return NVML_ERROR_TIMEOUT; /* somebody sits on the metadata lock */
    case -ENOMEM: return NVML_ERROR_MEMORY;
    default: return NVML_ERROR_OPERATING_SYSTEM;
    }
}

nvmlReturn_t sg_session_state_for(const char *file, nvmlDevice_t handle, sg_device **device) {
    nvmlReturn_t result = sg_session_device_for(file, handle, device);
    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    result = result_of_errno(sg_state_open(*device, SG_READER_PATIENCE_NS));
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t sg_copy_text(const char *from, char *to, unsigned length) {
    if (to == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(from) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, from);
    return NVML_SUCCESS;
}

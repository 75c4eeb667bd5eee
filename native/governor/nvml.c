/* NVML as a share sees it: its devices in its order, its memory, its processes. */
#include <stdatomic.h>
#include <stddef.h>

#include "governor.h"
#include "nvml_api.h"
#include "refusal.h"
#include "share.h"
#include "surface.h"
#include "window.h"

enum { NEWEST = GOVERNOR_NEWEST_VERSION };

/* The driver's handle of each device of the share; NULL where the card is lost. */
static _Atomic(nvmlDevice_t) handles[ALIQUOT_DEVICES_MAX];

int nvml_index_of(nvmlDevice_t device)
{
    for (unsigned index = 0; device != NULL && index < share.devices; index++)
        if (atomic_load_explicit(&handles[index], memory_order_relaxed) == device)
            return (int)index;
    return -1;
}

/* ---- starting ---- */

static nvmlReturn_t learn_handles(nvmlReturn_t result)
{
    typedef nvmlReturn_t by_uuid(const char *, nvmlDevice_t *);
    for (unsigned index = 0; result == NVML_SUCCESS && index < share.devices; index++) {
        nvmlDevice_t device = NULL;
        if (REAL(nvmlDeviceGetHandleByUUID, by_uuid *)(share.uuid[index], &device) == NVML_SUCCESS)
            atomic_store(&handles[index], device);
    }
    return result;
}

EXPORTED nvmlReturn_t nvmlInit_v2(void)
{
    return governor_start() ? learn_handles(REAL(nvmlInit_v2, nvmlReturn_t (*)(void))()) : NVML_ERROR_NOT_READY;
}

EXPORTED nvmlReturn_t nvmlInit(void)
{
    return governor_start() ? learn_handles(REAL(nvmlInit, nvmlReturn_t (*)(void))()) : NVML_ERROR_NOT_READY;
}

EXPORTED nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    return governor_start() ? learn_handles(REAL(nvmlInitWithFlags, nvmlReturn_t (*)(unsigned))(flags))
                            : NVML_ERROR_NOT_READY;
}

EXPORTED const char *nvmlErrorString(nvmlReturn_t result)
{
    const char *sentence = refusal_sentence();
    if (result == NVML_ERROR_NOT_READY && sentence != NULL)
        return sentence;
    if (governor_start())
        return REAL(nvmlErrorString, const char *(*)(nvmlReturn_t))(result);
    sentence = refusal_sentence();
    return result == NVML_ERROR_NOT_READY && sentence != NULL ? sentence : "Unknown Error";
}

#define CUDA_VERSION_OF(name)                                                                      \
    EXPORTED nvmlReturn_t name(int *version)                                                       \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return NVML_ERROR_NOT_READY;                                                           \
        nvmlReturn_t result = REAL(name, nvmlReturn_t (*)(int *))(version);                        \
        if (result == NVML_SUCCESS && version != NULL && *version > NEWEST)                        \
            *version = NEWEST;                                                                     \
        return result;                                                                             \
    }

CUDA_VERSION_OF(nvmlSystemGetCudaDriverVersion)
CUDA_VERSION_OF(nvmlSystemGetCudaDriverVersion_v2)

/* ---- which devices ---- */

#define COUNT(name)                                                                                \
    EXPORTED nvmlReturn_t name(unsigned *count)                                                    \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return NVML_ERROR_NOT_READY;                                                           \
        nvmlReturn_t result = REAL(name, nvmlReturn_t (*)(unsigned *))(count);                     \
        if (result == NVML_SUCCESS && count != NULL)                                               \
            *count = share.devices;                                                                \
        return result;                                                                             \
    }

COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

static nvmlReturn_t handle_at(unsigned index, nvmlDevice_t *out)
{
    unsigned count;
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetCount_v2, nvmlReturn_t (*)(unsigned *))(&count);
    if (result != NVML_SUCCESS)
        return result; /* such as not initialised */
    if (out == NULL || index >= share.devices)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlDevice_t device = atomic_load(&handles[index]);
    if (device == NULL)
        return NVML_ERROR_NOT_FOUND;
    *out = device;
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *out)
{
    return handle_at(index, out);
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out)
{
    return handle_at(index, out);
}

/* The driver finds it; whether it is the share's, we say. */
#define HANDLE_BY(name)                                                                            \
    EXPORTED nvmlReturn_t name(const void *key, nvmlDevice_t *out)                                 \
    {                                                                                              \
        nvmlDevice_t device = NULL;                                                                \
        if (!governor_start())                                                                     \
            return NVML_ERROR_NOT_READY;                                                           \
        nvmlReturn_t result = REAL(name, nvmlReturn_t (*)(const void *, nvmlDevice_t *))(          \
            key, out != NULL ? &device : NULL);                                                    \
        if (result != NVML_SUCCESS || out == NULL)                                                 \
            return result;                                                                         \
        if (nvml_index_of(device) < 0)                                                                  \
            return NVML_ERROR_NOT_FOUND;                                                           \
        *out = device;                                                                             \
        return NVML_SUCCESS;                                                                       \
    }

HANDLE_BY(nvmlDeviceGetHandleByUUID)
HANDLE_BY(nvmlDeviceGetHandleByUUIDV)
HANDLE_BY(nvmlDeviceGetHandleByPciBusId)
HANDLE_BY(nvmlDeviceGetHandleByPciBusId_v2)
HANDLE_BY(nvmlDeviceGetHandleBySerial)

EXPORTED nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetIndex, nvmlReturn_t (*)(nvmlDevice_t, unsigned *))(device, index);
    if (result != NVML_SUCCESS || index == NULL)
        return result;
    int own = nvml_index_of(device);
    if (own < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned)own;
    return NVML_SUCCESS;
}

/* ---- memory ---- */

struct memory_v1 {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory_v1 *memory)
{
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo, nvmlReturn_t (*)(nvmlDevice_t, void *))(device, memory);
    int index = nvml_index_of(device);
    if (result != NVML_SUCCESS || memory == NULL)
        return result;
    if (index < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct window seen = window_of((unsigned)index, memory->free, memory->total);
    *memory = (struct memory_v1){seen.total, seen.free, seen.used};
    return NVML_SUCCESS;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *memory)
{
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetMemoryInfo_v2, nvmlReturn_t (*)(nvmlDevice_t, void *))(device, memory);
    int index = nvml_index_of(device);
    if (result != NVML_SUCCESS || memory == NULL)
        return result;
    if (index < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct window seen = window_of((unsigned)index, memory->free, memory->total);
    memory->total = seen.total;
    memory->free = seen.free;
    memory->used = seen.used;
    memory->reserved = 0; /* what the driver keeps is outside every share */
    return NVML_SUCCESS;
}

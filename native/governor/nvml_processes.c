/* Who uses the device: of a share, only its own processes. */
#include <stddef.h>
#include <string.h>

#include "governor.h"
#include "ledger.h"
#include "nvml_api.h"
#include "share.h"
#include "surface.h"

struct process_v1 {
    unsigned pid;
    unsigned long long used;
};

struct process_v2 { /* and v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

enum { NO_INSTANCE = -1 };

typedef nvmlReturn_t list_processes(nvmlDevice_t, unsigned *, void *);

/* The share's processes into `infos`, whose elements are `size` bytes. `real` only tells whether
 * the driver would answer at all. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned *count, void *infos, size_t size, list_processes *real,
                         bool compute)
{
    struct ledger_process processes[ALIQUOT_SLOTS_MAX];
    unsigned none = 0;
    if (count == NULL || (infos == NULL && *count != 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = real(device, &none, NULL);
    if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    int index = nvml_index_of(device);
    if (index < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned found = compute ? ledger_processes((unsigned)index, processes, ALIQUOT_SLOTS_MAX) : 0, room = *count;
    *count = found;
    if (found > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned at = 0; at < found; at++) {
        struct process_v2 row = {(unsigned)processes[at].pid, processes[at].used, (unsigned)NO_INSTANCE,
                                 (unsigned)NO_INSTANCE};
        memcpy((char *)infos + at * size, &row, size); /* v1 is the head of v2 */
    }
    return NVML_SUCCESS;
}

_Static_assert(offsetof(struct process_v1, used) == offsetof(struct process_v2, used), "v1 is the head of v2");

#define LIST(name, type, compute)                                                                  \
    EXPORTED nvmlReturn_t name(nvmlDevice_t device, unsigned *count, void *infos)                  \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return NVML_ERROR_NOT_READY;                                                           \
        return list(device, count, infos, sizeof(struct type), REAL(name, list_processes *), compute); \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, process_v1, true)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, process_v2, true)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, process_v2, true)
/* A share computes; what draws or runs under MPS on this card is not its. */
LIST(nvmlDeviceGetGraphicsRunningProcesses, process_v1, false)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, process_v2, false)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, process_v2, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, process_v1, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, process_v2, false)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, process_v2, false)

static struct utilisation_sample of_share(unsigned device, struct utilisation_sample sample)
{
    sample.multiprocessors = nvml_percent_of_share(device, sample.multiprocessors);
    sample.memory = nvml_percent_of_share(device, sample.memory);
    return sample;
}

EXPORTED nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct utilisation_sample *samples,
                                                      unsigned *count, unsigned long long since)
{
    typedef nvmlReturn_t sample(nvmlDevice_t, void *, unsigned *, unsigned long long);
    struct ledger_process processes[ALIQUOT_SLOTS_MAX];
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessUtilization, sample *)(device, samples, count, since);
    int index = nvml_index_of(device);
    if (result != NVML_SUCCESS || samples == NULL || count == NULL)
        return result;
    unsigned ours = index < 0 ? 0 : ledger_processes((unsigned)index, processes, ALIQUOT_SLOTS_MAX), kept = 0;
    nvml_name_as_driver(device, processes, ours);
    for (unsigned at = 0; at < *count; at++) {
        const struct ledger_process *one = nvml_ours(samples[at].pid, processes, ours);
        if (one == NULL)
            continue;
        samples[kept] = of_share((unsigned)index, samples[at]);
        samples[kept++].pid = (unsigned)one->pid;
    }
    *count = kept;
    return NVML_SUCCESS;
}

/* ---- the same in structs with a version: one that we do not know may hold what we do not know ---- */

#define VERSION_1(type) ((unsigned)(sizeof(type) | 1 << 24))

struct process_detail {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_bytes;
};

struct detail_list {
    unsigned version, mode, count;
    struct process_detail *processes;
};

enum { MODE_COMPUTE = 0, MODE_ALL = 3 };

EXPORTED nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, struct detail_list *asked)
{
    typedef nvmlReturn_t get_details(nvmlDevice_t, struct detail_list *);
    struct ledger_process processes[ALIQUOT_SLOTS_MAX];
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    if (asked == NULL || (asked->processes == NULL && asked->count != 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (asked->version != VERSION_1(struct detail_list))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    struct detail_list probe = {.version = asked->version, .mode = asked->mode};
    nvmlReturn_t result = REAL(nvmlDeviceGetRunningProcessDetailList, get_details *)(device, &probe);
    if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    int index = nvml_index_of(device);
    if (index < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    bool compute = asked->mode == MODE_COMPUTE || asked->mode == MODE_ALL;
    unsigned found = compute ? ledger_processes((unsigned)index, processes, ALIQUOT_SLOTS_MAX) : 0, room = asked->count;
    asked->count = found;
    if (found > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned at = 0; at < found; at++)
        asked->processes[at] = (struct process_detail){(unsigned)processes[at].pid, processes[at].used,
                                                       (unsigned)NO_INSTANCE, (unsigned)NO_INSTANCE, 0};
    return NVML_SUCCESS;
}

struct process_use {
    unsigned long long time;
    unsigned pid, multiprocessors, memory, encoder, decoder, jpeg, optical_flow;
};

struct use_list {
    unsigned version, count;
    unsigned long long since;
    struct process_use *processes;
};

enum { CARDS_PROCESSES_MAX = 1024 }; /* that a card has samples of at once; with more, a share is told of none */

EXPORTED nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct use_list *asked)
{
    typedef nvmlReturn_t get_use(nvmlDevice_t, struct use_list *);
    struct process_use everybody[CARDS_PROCESSES_MAX]; /* not the tenant's own array: that would show it to it */
    struct ledger_process processes[ALIQUOT_SLOTS_MAX];
    if (!governor_start())
        return NVML_ERROR_NOT_READY;
    if (asked == NULL || (asked->processes == NULL && asked->count != 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (asked->version != VERSION_1(struct use_list))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    struct use_list all = {asked->version, CARDS_PROCESSES_MAX, asked->since, everybody};
    nvmlReturn_t result = REAL(nvmlDeviceGetProcessesUtilizationInfo, get_use *)(device, &all);
    if (result != NVML_SUCCESS)
        return result == NVML_ERROR_INSUFFICIENT_SIZE ? NVML_ERROR_INSUFFICIENT_RESOURCES : result;
    int index = nvml_index_of(device);
    if (index < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned ours = ledger_processes((unsigned)index, processes, ALIQUOT_SLOTS_MAX), room = asked->count, kept = 0;
    nvml_name_as_driver(device, processes, ours);
    for (unsigned at = 0; at < all.count && at < CARDS_PROCESSES_MAX; at++) {
        const struct ledger_process *one = nvml_ours(everybody[at].pid, processes, ours);
        if (one != NULL && kept++ < room) {
            struct process_use use = everybody[at];
            use.pid = (unsigned)one->pid;
            use.multiprocessors = nvml_percent_of_share((unsigned)index, use.multiprocessors);
            use.memory = nvml_percent_of_share((unsigned)index, use.memory);
            asked->processes[kept - 1] = use;
        }
    }
    asked->count = kept;
    return kept > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

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

struct utilisation_sample {
    unsigned pid;
    unsigned long long time;
    unsigned multiprocessors, memory, encoder, decoder;
};

static bool is_ours(unsigned pid, const struct ledger_process *processes, unsigned count)
{
    for (unsigned at = 0; at < count; at++)
        if ((unsigned)processes[at].pid == pid)
            return true;
    return false;
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
    for (unsigned at = 0; at < *count; at++)
        if (is_ours(samples[at].pid, processes, ours))
            samples[kept++] = samples[at];
    *count = kept;
    return NVML_SUCCESS;
}

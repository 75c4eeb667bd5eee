/* What the driver calls our processes: by their pids in this pid namespace, or by those in the node's, which
 * the share's keeper wrote into the ledger. It is seen from whom the driver lists, for drivers differ. */
#include <stddef.h>

#include "nvml_api.h"
#include "surface.h"

enum { PROCESSES_MAX = 1024 };

struct listed { /* nvmlProcessInfo_v2_t and v3 */
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};

static bool is_outside(const struct ledger_process *process)
{
    return process->outer != 0 && process->outer != process->pid;
}

/* The process of ours that the driver means by `pid`, for a driver that calls them so. */
static bool means(unsigned pid, const struct ledger_process *processes, unsigned count, bool outer)
{
    for (unsigned at = 0; at < count; at++)
        if (outer ? is_outside(&processes[at]) && (unsigned)processes[at].outer == pid
                  : (unsigned)processes[at].pid == pid)
            return true;
    return false;
}

bool nvml_name_as_driver(nvmlDevice_t device, struct ledger_process *processes, unsigned count)
{
    typedef nvmlReturn_t list(nvmlDevice_t, unsigned *, void *);
    struct listed rows[PROCESSES_MAX];
    unsigned listed = PROCESSES_MAX;
    bool outer = false, own = false;
    if (REAL(nvmlDeviceGetComputeRunningProcesses_v3, list *)(device, &listed, rows) != NVML_SUCCESS)
        listed = 0;
    for (unsigned at = 0; at < listed; at++) {
        outer |= means(rows[at].pid, processes, count, true);
        own |= means(rows[at].pid, processes, count, false);
    }
    for (unsigned at = 0; at < count; at++)
        processes[at].named = (unsigned)(outer && is_outside(&processes[at]) ? processes[at].outer : processes[at].pid);
    return outer || own;
}

const struct ledger_process *nvml_ours(unsigned named, const struct ledger_process *processes, unsigned count)
{
    for (unsigned at = 0; at < count; at++)
        if (processes[at].named == named)
            return &processes[at];
    return NULL;
}

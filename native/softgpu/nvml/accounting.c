/* Accounting: what each process had of the device so far. It is always on. Only of the living: what a process
 * had goes with its slot. */
#include <stdlib.h>

#include "nvml.h"

SG_EXPORT nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t handle, unsigned *mode) {
    return sg_answer(handle, 1, mode);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t handle, unsigned *size) {
    return sg_answer(handle, SG_MAXIMUM_PROCESSES, size);
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t handle, unsigned *count, unsigned *pids) {
    sg_process *processes;
    nvmlReturn_t result = sg_list_processes(handle, count, pids, &processes);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < *count; i++)
        pids[i] = (unsigned)processes[i].pid;
    free(processes);
    return NVML_SUCCESS;
}

static nvmlReturn_t process_of(nvmlDevice_t handle, unsigned pid, sg_process *process) {
    unsigned count = SG_MAXIMUM_PROCESSES;
    sg_process *processes;
    nvmlReturn_t result = sg_list_processes(handle, &count, process, &processes);
    if (result != NVML_SUCCESS)
        return result;
    result = NVML_ERROR_NOT_FOUND;
    for (unsigned i = 0; i < count && result != NVML_SUCCESS; i++)
        if ((unsigned)processes[i].pid == pid) {
            *process = processes[i];
            result = NVML_SUCCESS;
        }
    free(processes);
    return result;
}

/* In percent, over the whole life of the process. */
static unsigned busy_percent(const sg_process *process) {
    unsigned long long now = sg_microseconds_now();
    if (process->started_us == 0 || now <= process->started_us)
        return 0;
    unsigned long long percent = process->busy_ns / 10 / (now - process->started_us);
    return percent > 100 ? 100 : (unsigned)percent;
}

/* `time` is 0 as long as a process runs: NVIDIA documents it so. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t handle, unsigned pid, nvmlAccountingStats_t *stats) {
    sg_process process;
    sg_device *device;
    nvmlReturn_t result = sg_session_ask(handle, stats, &device);
    if (result == NVML_SUCCESS)
        result = process_of(handle, pid, &process);
    if (result != NVML_SUCCESS)
        return result;
    *stats = (nvmlAccountingStats_t){.gpuUtilization = busy_percent(&process),
                                     .memoryUtilization = busy_percent(&process),
                                     .maxMemoryUsage = process.most_bytes,
                                     .startTime = process.started_us,
                                     .isRunning = 1};
    return NVML_SUCCESS;
}

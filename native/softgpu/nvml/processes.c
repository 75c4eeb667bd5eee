/* Who uses a device. Pids are those of the caller's pid namespace; a process that the caller cannot see
 * is left out, as NVML does in a container. */
#include <stdlib.h>
#include <time.h>

#include "nvml.h"

/* One entry a pid: a program may have loaded the driver twice. */
static int visible_processes(sg_device *device, sg_process *processes) {
    int found = sg_processes(device, processes, SG_MAXIMUM_PROCESSES), kept = 0;
    for (int i = 0; i < found; i++) {
        int same = 0;
        while (same < kept && processes[same].pid != processes[i].pid)
            same++;
        if (processes[i].pid == 0)
            continue;
        if (same == kept) {
            processes[kept++] = processes[i];
        } else {
            processes[same].used_bytes += processes[i].used_bytes;
            processes[same].recent_permille += processes[i].recent_permille;
        }
    }
    return kept;
}

nvmlReturn_t sg_list_processes(nvmlDevice_t handle, unsigned *count, const void *array, sg_process **processes) {
    sg_device *device;
    nvmlReturn_t result = sg_session_state(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (*count > 0 && array == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    sg_process *found = calloc(SG_MAXIMUM_PROCESSES, sizeof *found);
    if (found == NULL)
        return NVML_ERROR_MEMORY;
    unsigned room = *count;
    *count = (unsigned)visible_processes(device, found);
    if (*count > room) {
        free(found);
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *processes = found;
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned *count,
                                                            nvmlProcessInfo_v1_t *infos) {
    sg_process *processes;
    nvmlReturn_t result = sg_list_processes(handle, count, infos, &processes);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < *count; i++)
        infos[i] = (nvmlProcessInfo_v1_t){(unsigned)processes[i].pid, processes[i].used_bytes};
    free(processes);
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned *count,
                                                               nvmlProcessInfo_v2_t *infos) {
    sg_process *processes;
    nvmlReturn_t result = sg_list_processes(handle, count, infos, &processes);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < *count; i++)
        infos[i] = (nvmlProcessInfo_v2_t){(unsigned)processes[i].pid, processes[i].used_bytes,
                                          SG_NO_INSTANCE, SG_NO_INSTANCE};
    free(processes);
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDeviceGetComputeRunningProcesses_v3);

SG_EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned *count, void *infos) {
    sg_device *device;
    nvmlReturn_t result = sg_session_device(handle, &device);
    if (result != NVML_SUCCESS)
        return result;
    if (count == NULL || (*count > 0 && infos == NULL))
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}
SG_ALIAS(nvmlDeviceGetGraphicsRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses_v3);
SG_ALIAS(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3);
SG_ALIAS(nvmlDeviceGetMPSComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses_v3);
SG_ALIAS(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlDeviceGetGraphicsRunningProcesses_v3);
SG_ALIAS(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3);

SG_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle, nvmlProcessDetailList_v1_t *details) {
    sg_process *processes;
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (details == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (details->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    enum { COMPUTE = 0, ALL = 3 };
    if (details->mode > ALL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (details->mode != COMPUTE && details->mode != ALL) { /* nothing draws, and there is no MPS */
        sg_device *device;
        details->numProcArrayEntries = 0;
        return sg_session_device(handle, &device);
    }
    result = sg_list_processes(handle, &details->numProcArrayEntries, details->procArray, &processes);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < details->numProcArrayEntries; i++)
        details->procArray[i] = (nvmlProcessDetail_v1_t){(unsigned)processes[i].pid, processes[i].used_bytes,
                                                         SG_NO_INSTANCE, SG_NO_INSTANCE, 0};
    free(processes);
    return NVML_SUCCESS;
}

unsigned long long sg_microseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

static unsigned percent(const sg_process *process) {
    unsigned rounded = (process->recent_permille + 5) / 10;
    return rounded > 100 ? 100 : rounded;
}

/* One sample a process: the last second. A caller that has seen now already gets NOT_FOUND. */
SG_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, nvmlProcessUtilizationSample_t *samples,
                                                       unsigned *count, unsigned long long last_seen) {
    sg_process *processes;
    unsigned long long now = sg_microseconds_now();
    nvmlReturn_t result = sg_list_processes(handle, count, samples, &processes);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned i = 0; i < *count && now > last_seen; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = (unsigned)processes[i].pid,
            .timeStamp = now,
            .smUtil = percent(&processes[i]),
            .memUtil = percent(&processes[i])};
    free(processes);
    if (*count == 0 || now <= last_seen) {
        *count = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    return NVML_SUCCESS;
}

SG_EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                             nvmlProcessesUtilizationInfo_v1_t *info) {
    sg_process *processes;
    unsigned long long now = sg_microseconds_now();
    nvmlReturn_t result = sg_session_ready();
    if (result != NVML_SUCCESS)
        return result;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    result = sg_list_processes(handle, &info->processSamplesCount, info->procUtilArray, &processes);
    if (result != NVML_SUCCESS)
        return result;
    if (now <= info->lastSeenTimeStamp)
        info->processSamplesCount = 0;
    for (unsigned i = 0; i < info->processSamplesCount; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .pid = (unsigned)processes[i].pid,
            .timeStamp = now,
            .smUtil = percent(&processes[i]),
            .memUtil = percent(&processes[i])};
    free(processes);
    return info->processSamplesCount == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

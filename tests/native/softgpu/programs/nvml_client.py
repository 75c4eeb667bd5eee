"""What NVIDIA's own Python binding reads from the software GPU."""

import json

import pynvml as n

n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(0)


def refused(call, *arguments):
    try:
        call(*arguments)
    except n.NVMLError as error:
        return error.value
    return 0


def process_utilisation():
    try:
        return [[sample.pid, sample.smUtil] for sample in n.nvmlDeviceGetProcessUtilization(handle, 0)]
    except n.NVMLError_NotFound:
        return []


memory, memory_v2 = (
    n.nvmlDeviceGetMemoryInfo(handle),
    n.nvmlDeviceGetMemoryInfo(handle, version=n.nvmlMemory_v2),
)
events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(handle, n.nvmlEventTypeXidCriticalError, events)
seen = {
    "count": n.nvmlDeviceGetCount(),
    "name": n.nvmlDeviceGetName(handle),
    "uuid": n.nvmlDeviceGetUUID(handle),
    "index": n.nvmlDeviceGetIndex(handle),
    "minor": n.nvmlDeviceGetMinorNumber(handle),
    "bus": n.nvmlDeviceGetPciInfo(handle).busId,
    "legacy_bus": n.nvmlDeviceGetPciInfo(handle).busIdLegacy,
    "driver_fields": len(n.nvmlSystemGetDriverVersion().split(".")),
    "nvml": n.nvmlSystemGetNVMLVersion(),
    "cuda": n.nvmlSystemGetCudaDriverVersion_v2(),
    "capability": n.nvmlDeviceGetCudaComputeCapability(handle),
    "cores": n.nvmlDeviceGetNumGpuCores(handle),
    "memory": [memory.total, memory.used, memory.free],
    "memory_v2": [memory_v2.total, memory_v2.reserved, memory_v2.used, memory_v2.free],
    "clock": n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM),
    "memory_clock": n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_MEM),
    "power_limit": n.nvmlDeviceGetPowerManagementLimit(handle),
    "power": n.nvmlDeviceGetPowerUsage(handle),
    "temperature": n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU),
    "ecc": n.nvmlDeviceGetEccMode(handle),
    "ecc_errors": n.nvmlDeviceGetTotalEccErrors(
        handle, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC
    ),
    "mig": n.nvmlDeviceGetMigMode(handle) if not refused(n.nvmlDeviceGetMigMode, handle) else None,
    "utilisation": n.nvmlDeviceGetUtilizationRates(handle).gpu,
    "process_utilisation": process_utilisation(),
    "performance": n.nvmlDeviceGetPerformanceState(handle),
    "processes": [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(handle)],
    "graphics": len(n.nvmlDeviceGetGraphicsRunningProcesses(handle)),
    "event_wait": refused(n.nvmlEventSetWait, events, 10),
    "unsupported": refused(n.nvmlDeviceGetFanSpeed, handle),
    "by_uuid": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(handle))),
    "by_bus": n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(handle).busId)),
    "no_such_index": refused(n.nvmlDeviceGetHandleByIndex, 7),
    "no_such_uuid": refused(n.nvmlDeviceGetHandleByUUID, "GPU-none"),
}
n.nvmlEventSetFree(events)
n.nvmlShutdown()
seen["after_shutdown"] = refused(n.nvmlDeviceGetCount)
seen["shutdown_again"] = refused(n.nvmlShutdown)
print(json.dumps(seen))

/* What a device that was told to fail does to its contexts, allocations and kernels: device/failures.h. */
#include <stdio.h>
#include <time.h>

#include "failing.h"

/* What a program is told after an XID, as NVIDIA's driver does it ("XID Errors"); 0 where its context lives on. Which
 * XIDs take the device out of service is for who looks at it: src/aliquot/inventory/nvidia_health.py. */
static CUresult result_of_xid(uint64_t xid) {
    switch (xid) {
    case 31: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case 48:
    case 94:
    case 95: return CUDA_ERROR_ECC_UNCORRECTABLE;
    case 74: return CUDA_ERROR_NVLINK_UNCORRECTABLE;
    case 79: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case 63: /* row remapping and page retirement, rates of errors, tests, clocks and power: nobody is ended */
    case 64:
    case 65:
    case 92:
    case 93:
    case 106:
    case 107:
    case 121:
    case 156:
    case 157:
    case 160:
    case 161:
    case 162:
    case 163:
    case 164:
    case 165:
    case 154: return CUDA_SUCCESS;
    default: return CUDA_ERROR_LAUNCH_FAILED;
    }
}

static CUresult result_of_event(const sg_failing_event *event) {
    if (event->kind == SG_EVENT_XID)
        return result_of_xid(event->value);
    return event->kind == SG_EVENT_UNCORRECTED ? CUDA_ERROR_ECC_UNCORRECTABLE : CUDA_SUCCESS;
}

bool sg_device_lost(const sg_failures *failures) {
    bool lost = failures->lost;
    for (int i = 0; i < failures->event_count; i++)
        lost = lost || (failures->events[i].kind == SG_EVENT_XID && failures->events[i].value == 79);
    return lost;
}

CUresult sg_failing_make(sg_gpu *gpu, uint64_t *seen) {
    sg_failures now;
    sg_failures_now(gpu->device, &now);
    *seen = sg_failures_newest(&now);
    return sg_device_lost(&now) ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

void sg_failing_check(CUcontext context) {
    sg_failures now;
    if (!sg_failures_any(context->gpu->device, &now))
        return;
    if (sg_device_lost(&now))
        sg_context_poison(context, CUDA_ERROR_DEVICE_UNAVAILABLE);
    for (int i = 0; i < now.event_count; i++)
        if (now.events[i].serial > context->failures_seen && result_of_event(&now.events[i]) != CUDA_SUCCESS)
            sg_context_poison(context, result_of_event(&now.events[i]));
}

CUresult sg_failing_allocation(sg_gpu *gpu) {
    return sg_failures_allocation(gpu->device) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

uint64_t sg_failing_duration(sg_device *device, uint64_t ns) {
    sg_failures now;
    if (!sg_failures_any(device, &now))
        return ns;
    return now.hang ? SG_FOREVER : (uint64_t)((double)ns * (double)now.slow_ppm / 1e6);
}

static void rest(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0)
        ;
}

/* In real mode a kernel that hangs or is slow keeps the device, and gives way, as one that computes does. */
static void linger(sg_device *device) {
    enum { LOOK_NS = 1000000 };
    rest(LOOK_NS);
    if (sg_turn_due(device))
        sg_turn_give_way(device);
}

void sg_failing_linger(sg_device *device) {
    sg_failures now;
    if (sg_model_used(device) || !sg_failures_any(device, &now))
        return;
    uint64_t takes = (uint64_t)((double)sg_turn_held_ns(device) * (double)now.slow_ppm / 1e6);
    while (now.slow_ppm > 1000000 && sg_turn_held_ns(device) < takes)
        linger(device);
    for (; now.hang && !sg_device_lost(&now); sg_failures_now(device, &now))
        linger(device);
}

static const sg_driver_branch *told_branch(bool cheap) {
    int count;
    sg_device *devices = sg_inventory(&count);
    return sg_driver_branch_of(sg_oldest_branch(devices, count, cheap));
}

int sg_driver_cuda_version(bool cheap) {
    const sg_driver_branch *told = told_branch(cheap);
    return told != NULL ? told->cuda_version : SG_CUDA_VERSION;
}

CUresult sg_failing_ptx(const char *text, size_t length, const sg_jit_options *options) {
    const sg_driver_branch *told = told_branch(false);
    char message[160];
    int line = 0, version = told != NULL ? sg_ptx_version(text, length, &line) : 0;
    if (told == NULL || version <= told->ptx_version)
        return CUDA_SUCCESS;
    snprintf(message, sizeof message,
             "line %d: Unsupported .version %d.%d; the driver of branch %d (CUDA %d.%d) knows PTX up to '%d.%d'", line,
             version / 10, version % 10, told->branch, told->cuda_version / 1000, told->cuda_version / 10 % 100,
             told->ptx_version / 10, told->ptx_version % 10);
    sg_log_unsupported("ptx", message);
    sg_jit_log(options, true, message);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

/* The oracle of a device, for tests: ../aliquot_softgpu.h. It needs no nvmlInit. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../aliquot_softgpu.h"
#include "model.h"
#include "failures.h"
#include "nvml.h"

static int fill(const sg_busy_report *report, aliquotSoftgpuTotal *total, aliquotSoftgpuAccount *accounts, int capacity) {
    *total = (aliquotSoftgpuTotal){
        .now_ns = report->now_ns,
        .slice_ns = report->slice_ns,
        .compute_ns = report->compute_ns,
        .switching_ns = report->switching_ns,
        .switches = report->switches,
        .preemptions = report->preemptions,
        .time = (int32_t)report->time,
    };
    for (int i = 0; i < report->count && i < capacity; i++) {
        const sg_account *from = &report->accounts[i];
        accounts[i] = (aliquotSoftgpuAccount){
            .pid = from->pid,
            .living = from->living,
            .compute_ns = from->compute_ns,
            .copy_ns = from->copy_ns,
            .kernels = from->kernels,
            .copies = from->copies,
            .bytes = from->bytes,
            .copied = from->copied,
        };
        memcpy(accounts[i].name, from->name, sizeof accounts[i].name);
    }
    return report->count;
}

SG_EXPORT int aliquotSoftgpuBusy(const char *folder, aliquotSoftgpuTotal *total, aliquotSoftgpuAccount *accounts,
                                 int capacity) {
    if (folder == NULL || total == NULL || (capacity > 0 && accounts == NULL))
        return -EINVAL;
    sg_device *device = calloc(1, sizeof *device);
    sg_busy_report *report = calloc(1, sizeof *report);
    int result = device == NULL || report == NULL ? -ENOMEM : sg_device_read(folder, device);
    if (result == 0 && (result = sg_state_open(device, SG_READER_PATIENCE_NS)) == 0) {
        sg_failures told;
        sg_failures_now(device, &told); /* reports what was ordered and that nobody has seen yet */
        result = sg_busy_read(device, report);
        if (result == 0)
            result = fill(report, total, accounts, capacity);
        sg_state_close(device);
    }
    if (device != NULL)
        free(atomic_load(&device->failing));
    free(device);
    free(report);
    return result;
}

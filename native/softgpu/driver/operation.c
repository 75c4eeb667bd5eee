/* What is true of an operation by its kind. */
#include <stdlib.h>
#include <string.h>

#include "operation.h"

/* Kernels too: an endless one is ended by the profile's time-out, and to launch by waking another thread
 * would cost several times what a small kernel does. A function of the program may wait for anything. */
bool sg_operation_brief(const sg_operation *operation) {
    return operation->kind != SG_OPERATION_HOST;
}

/* A callback is told of the failure; an event is complete, as whoever waits for it has to see. */
bool sg_operation_survives(const sg_operation *operation) {
    return operation->kind == SG_OPERATION_HOST || operation->kind == SG_OPERATION_EVENT_RECORD;
}

static bool keep_parameters(sg_kernel_operation *kernel) {
    size_t size = kernel->function->info.parameter_bytes;
    unsigned char *copy = malloc(size + 1);
    if (copy == NULL)
        return false;
    if (size > 0)
        memcpy(copy, kernel->parameters, size);
    kernel->parameters = copy;
    return true;
}

bool sg_operation_keep(sg_operation *kept, const sg_operation *operation) {
    *kept = *operation;
    switch (kept->kind) {
    case SG_OPERATION_KERNEL: return keep_parameters(&kept->kernel);
    case SG_OPERATION_EVENT_RECORD:
    case SG_OPERATION_EVENT_WAIT: atomic_fetch_add(&kept->event->references, 1); return true;
    default: return true;
    }
}

void sg_operation_drop(sg_operation *kept) {
    switch (kept->kind) {
    case SG_OPERATION_KERNEL: free((void *)(uintptr_t)kept->kernel.parameters); break;
    case SG_OPERATION_EVENT_RECORD:
    case SG_OPERATION_EVENT_WAIT: sg_event_release(kept->event); break;
    default: break;
    }
    kept->kind = SG_OPERATION_NOTHING;
}

/* What is true of an operation by its kind. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "ipc_events.h"

/* Kernels too: an endless one is ended by the profile's time-out, and to launch by waking another thread
 * would cost several times what a small kernel does. A function of the program may wait for anything. */
bool sg_operation_brief(const sg_operation *operation) {
    switch (operation->kind) {
    case SG_OPERATION_HOST: return false;
    case SG_OPERATION_VALUES: return sg_values_met(&operation->values);
    case SG_OPERATION_EVENT_WAIT: return sg_interprocess_passed(operation->event, operation->record);
    case SG_OPERATION_GRAPH: return operation->graph.plan->brief;
    default: return true;
    }
}

/* A callback is told of the failure; an event is complete, as whoever waits for it has to see. */
bool sg_operation_survives(const sg_operation *operation) {
    return operation->kind == SG_OPERATION_HOST || operation->kind == SG_OPERATION_EVENT_RECORD;
}

size_t sg_operation_waits(const sg_operation *operation, const CUevent **events) {
    if (operation->kind == SG_OPERATION_GRAPH) {
        *events = operation->graph.plan->waits;
        return operation->graph.plan->wait_count;
    }
    *events = &operation->event;
    return operation->kind == SG_OPERATION_EVENT_WAIT && operation->event->interprocess == NULL;
}

size_t sg_operation_records(const sg_operation *operation, const CUevent **events) {
    if (operation->kind == SG_OPERATION_GRAPH) {
        *events = operation->graph.plan->records;
        return operation->graph.plan->record_count;
    }
    *events = &operation->event;
    return operation->kind == SG_OPERATION_EVENT_RECORD && operation->event->interprocess == NULL;
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

static bool keep_values(sg_values_operation *values) {
    CUstreamBatchMemOpParams *copy = calloc(values->count + 1, sizeof *copy);
    if (copy == NULL)
        return false;
    if (values->count > 0)
        memcpy(copy, values->list, values->count * sizeof *copy);
    values->list = copy;
    return true;
}

bool sg_operation_keep(sg_operation *kept, const sg_operation *operation) {
    *kept = *operation;
    switch (kept->kind) {
    case SG_OPERATION_KERNEL: return keep_parameters(&kept->kernel);
    case SG_OPERATION_EVENT_RECORD:
    case SG_OPERATION_EVENT_WAIT: atomic_fetch_add(&kept->event->references, 1); return true;
    case SG_OPERATION_VALUES: return keep_values(&kept->values);
    case SG_OPERATION_GRAPH: atomic_fetch_add(&kept->graph.plan->references, 1); return true;
    default: return true;
    }
}

void sg_operation_drop(sg_operation *kept) {
    switch (kept->kind) {
    case SG_OPERATION_KERNEL: free((void *)(uintptr_t)kept->kernel.parameters); break;
    case SG_OPERATION_EVENT_RECORD:
    case SG_OPERATION_EVENT_WAIT: sg_event_release(kept->event); break;
    case SG_OPERATION_VALUES: free((void *)(uintptr_t)kept->values.list); break;
    case SG_OPERATION_GRAPH: sg_plan_release(kept->graph.plan); break;
    default: break;
    }
    kept->kind = SG_OPERATION_NOTHING;
}

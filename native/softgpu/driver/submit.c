/* The one place through which everything passes that a stream orders. */
#include "capture.h"
#include "ipc_events.h"

CUresult sg_operation_check(CUcontext context, const sg_operation *operation) {
    switch (operation->kind) {
    case SG_OPERATION_NOTHING:
    case SG_OPERATION_ALLOCATE: return CUDA_SUCCESS;
    case SG_OPERATION_KERNEL: return sg_kernel_check(context, &operation->kernel);
    case SG_OPERATION_COPY: return sg_copy_check(context, &operation->copy);
    case SG_OPERATION_FILL: return sg_fill_check(context, &operation->fill);
    case SG_OPERATION_HOST: return sg_host_check(&operation->host);
    case SG_OPERATION_EVENT_RECORD: return sg_event_check(context, operation->event, true);
    case SG_OPERATION_EVENT_WAIT: return sg_event_check(context, operation->event, false);
    case SG_OPERATION_FREE: return sg_free_check(context, &operation->memory);
    case SG_OPERATION_VALUES: return sg_values_check(context, &operation->values);
    case SG_OPERATION_GRAPH: return sg_plan_check(&operation->graph);
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_operation_perform(CUcontext context, const sg_operation *operation) {
    switch (operation->kind) {
    case SG_OPERATION_KERNEL: return sg_kernel_perform(context, &operation->kernel);
    case SG_OPERATION_COPY: return sg_copy_perform(context, &operation->copy);
    case SG_OPERATION_FILL: return sg_fill_perform(context, &operation->fill);
    case SG_OPERATION_HOST: return sg_host_perform(context, &operation->host);
    case SG_OPERATION_EVENT_RECORD: return sg_event_record(operation->event, operation->record);
    case SG_OPERATION_EVENT_WAIT: return sg_event_wait(context, operation->event, operation->record);
    case SG_OPERATION_ALLOCATE: return sg_graph_memory_lend(operation->memory.address, true);
    case SG_OPERATION_FREE: return sg_free_perform(context, &operation->memory);
    case SG_OPERATION_VALUES: return sg_values_perform(context, &operation->values);
    case SG_OPERATION_GRAPH: return sg_plan_perform(context, operation->graph.plan);
    default: return CUDA_SUCCESS;
    }
}

/* Memory is given when it is asked for, not when its turn comes: the caller has to have the address.
 * What frees before it on any stream may make the room that there is not yet. */
static CUresult allocate(CUcontext context, sg_memory_operation *memory) {
    CUresult result = sg_allocate_perform(context, memory);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return result;
    sg_context_drain(context);
    return sg_allocate_perform(context, memory);
}

CUresult sg_submit(CUstream given, sg_operation *operation) {
    CUcontext context;
    sg_queue *queue;
    bool captured;
    CUresult result = sg_stream_queue(given, &context, &queue);
    if (result == CUDA_SUCCESS)
        result = sg_operation_check(context, operation);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_capture_submit(context, queue, operation, &captured);
    if (captured)
        return result;
    if (operation->kind == SG_OPERATION_ALLOCATE)
        return allocate(context, &operation->memory);
    if (operation->kind == SG_OPERATION_COPY && sg_copy_pageable(&operation->copy))
        operation->awaited = true;
    if ((result = sg_interprocess_submit(context, operation)) != CUDA_SUCCESS)
        return result;
    result = sg_queue_submit(queue, operation);
    if (result != CUDA_SUCCESS && operation->kind == SG_OPERATION_EVENT_RECORD)
        sg_interprocess_finish(operation->event, operation->record, 0);
    return result;
}

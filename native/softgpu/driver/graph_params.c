/* The parameters of nodes, between the form that programs use and the operation that is performed. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "launch.h"

static CUresult refuse(const char *what) {
    sg_log_unsupported("graph", what);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Give the node a copy of the operation, in place of the one it has. */
static CUresult replace(CUgraphNode node, CUcontext context, const sg_operation *operation) {
    sg_operation kept;
    CUresult result = sg_operation_check(context, operation);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_operation_keep(&kept, operation))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_operation_drop(&node->operation);
    node->operation = kept;
    node->context = context;
    return CUDA_SUCCESS;
}

static CUresult function_of(const CUDA_KERNEL_NODE_PARAMS *p, CUfunction *function, CUkernel *kern) {
    CUcontext context;
    *kern = NULL;
    if (p->func != NULL && sg_object_is(p->func, SG_FUNCTION)) {
        *function = p->func;
        return CUDA_SUCCESS;
    }
    *kern = p->func != NULL ? (CUkernel)p->func : p->kern;
    if (!sg_object_is(*kern, SG_KERNEL))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sg_context_or_current(p->func != NULL ? NULL : p->ctx, &context);
    return result == CUDA_SUCCESS ? sg_kernel_function(*kern, context, function) : result;
}

static CUresult set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *p) {
    CUfunction function;
    CUkernel kern;
    CUresult result = function_of(p, &function, &kern);
    if (result != CUDA_SUCCESS)
        return result;
    unsigned char *packed = calloc(1, function->info.parameter_bytes + 1);
    if (packed == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_geometry shape = {{p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ},
                         p->sharedMemBytes, node->operation.kind == SG_OPERATION_KERNEL &&
                         node->operation.kernel.shape.cooperative};
    result = sg_kernel_pack(function, p->kernelParams, p->extra, packed);
    if (result == CUDA_SUCCESS)
        result = replace(node, function->module->context,
                         &(sg_operation){SG_OPERATION_KERNEL, .kernel = {function, shape, packed}});
    free(packed);
    if (result == CUDA_SUCCESS)
        node->kern = kern;
    if (result == CUDA_SUCCESS) {
        free(node->pointers);
        node->pointers = NULL;
    }
    return result;
}

static CUresult set_in_context(CUgraphNode node, CUcontext given, const sg_operation *operation) {
    CUcontext context;
    CUresult result = sg_context_or_current(given, &context);
    return result == CUDA_SUCCESS ? replace(node, context, operation) : result;
}

static CUresult set_copy(CUgraphNode node, const CUDA_MEMCPY_NODE_PARAMS *p) {
    if (p->flags != 0 || p->reserved != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return set_in_context(node, p->copyCtx, &(sg_operation){SG_OPERATION_COPY, .copy = {.box = p->copyParams}});
}

static CUresult set_fill(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v2 *p) {
    sg_fill_operation fill = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    return set_in_context(node, p->ctx, &(sg_operation){SG_OPERATION_FILL, .fill = fill});
}

static CUresult set_host(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v2 *p) {
    return replace(node, NULL, &(sg_operation){SG_OPERATION_HOST, .host = {.function = p->fn, .data = p->userData}});
}

static CUresult set_event(CUgraphNode node, CUevent event, sg_operation_kind kind) {
    if (!sg_object_is(event, SG_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    if (event->interprocess != NULL)
        return refuse("event of several processes in a graph");
    return replace(node, event->context, &(sg_operation){kind, .event = event});
}

static CUresult set_values(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p) {
    if (p->flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return set_in_context(node, p->ctx, &(sg_operation){SG_OPERATION_VALUES, .values = {p->paramArray, p->count}});
}

static CUresult set_child(CUgraphNode node, const CUDA_CHILD_GRAPH_NODE_PARAMS *p) {
    CUgraph clone;
    if (!sg_is_graph(p->graph) || p->graph == node->graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->ownership > 0)
        return refuse("child graph that is moved to its parent");
    if (sg_graph_has_memory_nodes(p->graph))
        return refuse("child graph with memory nodes");
    CUresult result = sg_graph_clone(p->graph, false, &clone);
    if (result != CUDA_SUCCESS)
        return result;
    sg_graph_discard(node->child);
    node->child = clone;
    clone->within = node;
    return CUDA_SUCCESS;
}

/* The address is the graph's from now on, so that other nodes can name it. */
static CUresult set_allocate(CUgraphNode node, const CUDA_MEM_ALLOC_NODE_PARAMS *p) {
    CUcontext context;
    CUdeviceptr address;
    CUresult result = sg_context_or_current(NULL, &context);
    if (result != CUDA_SUCCESS)
        return result;
    if (node->operation.kind != SG_OPERATION_NOTHING || p->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->poolProps.handleTypes != 0 ||
        p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return refuse("memory node that is not of a device");
    if (p->poolProps.location.id != context->gpu->ordinal || p->accessDescCount != 0)
        return refuse("memory node of another device, or for one");
    result = sg_graph_memory_make(context, p->bytesize, &address);
    if (result != CUDA_SUCCESS)
        return result;
    node->context = context;
    node->operation = (sg_operation){SG_OPERATION_ALLOCATE, .memory = {NULL, p->bytesize, address}};
    return CUDA_SUCCESS;
}

static CUresult set_free(CUgraphNode node, const CUDA_MEM_FREE_NODE_PARAMS *p) {
    if (node->operation.kind != SG_OPERATION_NOTHING)
        return CUDA_ERROR_INVALID_VALUE;
    return replace(node, NULL, &(sg_operation){SG_OPERATION_FREE, .memory = {.address = p->dptr}});
}

CUresult sg_node_set(CUgraphNode node, const CUgraphNodeParams *p) {
    if (p->type != node->type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return set_kernel(node, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return set_copy(node, &p->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET: return set_fill(node, &p->memset);
    case CU_GRAPH_NODE_TYPE_HOST: return set_host(node, &p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH: return set_child(node, &p->graph);
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return set_event(node, p->eventWait.event, SG_OPERATION_EVENT_WAIT);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return set_event(node, p->eventRecord.event, SG_OPERATION_EVENT_RECORD);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return set_allocate(node, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return set_free(node, &p->free);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return set_values(node, &p->memOp);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return refuse("external semaphore node");
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return refuse("conditional node");
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- back ---- */

/* The node owns the values and the pointers to them, as the driver documents. */
static CUresult get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *p) {
    const sg_kernel_operation *kernel = &node->operation.kernel;
    const sg_geometry *g = &kernel->shape;
    size_t count = kernel->function->info.parameter_count;
    if (node->pointers == NULL && (node->pointers = calloc(count + 1, sizeof *node->pointers)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        size_t offset, length;
        if (!sg_kernel_parameter(kernel->function->kernel, i, &offset, &length))
            return CUDA_ERROR_INVALID_VALUE;
        node->pointers[i] = (void *)(uintptr_t)(kernel->parameters + offset);
    }
    *p = (CUDA_KERNEL_NODE_PARAMS){
        .func = node->kern != NULL ? NULL : kernel->function,
        .gridDimX = g->grid[0], .gridDimY = g->grid[1], .gridDimZ = g->grid[2],
        .blockDimX = g->block[0], .blockDimY = g->block[1], .blockDimZ = g->block[2],
        .sharedMemBytes = g->shared_bytes,
        .kernelParams = node->pointers,
        .kern = node->kern,
        .ctx = node->context,
    };
    return CUDA_SUCCESS;
}

static void get_allocate(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p) {
    *p = (CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = node->operation.memory.size, .dptr = node->operation.memory.address};
    p->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, node->context->gpu->ordinal};
}

CUresult sg_node_get(CUgraphNode node, CUgraphNodeParams *p) {
    const sg_operation *o = &node->operation;
    *p = (CUgraphNodeParams){.type = node->type};
    switch (node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return get_kernel(node, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: p->memcpy = (CUDA_MEMCPY_NODE_PARAMS){0, 0, node->context, o->copy.box}; break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        p->memset = (CUDA_MEMSET_NODE_PARAMS_v2){o->fill.to, o->fill.pitch, o->fill.value, o->fill.element_bytes,
                                                 o->fill.width, o->fill.height, node->context};
        break;
    case CU_GRAPH_NODE_TYPE_HOST: p->host = (CUDA_HOST_NODE_PARAMS_v2){o->host.function, o->host.data, 0, NULL}; break;
    case CU_GRAPH_NODE_TYPE_GRAPH: p->graph = (CUDA_CHILD_GRAPH_NODE_PARAMS){node->child, 0}; break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: p->eventWait.event = o->event; break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: p->eventRecord.event = o->event; break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: get_allocate(node, &p->alloc); break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE: p->free.dptr = o->memory.address; break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        p->memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS){node->context, o->values.count,
                                                   (CUstreamBatchMemOpParams *)(uintptr_t)o->values.list, 0};
        break;
    default: break;
    }
    return CUDA_SUCCESS;
}

/* What `from` does, in `to`, a new node of the same type. */
CUresult sg_node_copy(CUgraphNode to, CUgraphNode from) {
    sg_operation kept;
    CUgraph child = NULL;
    if (from->child != NULL) {
        CUresult result = sg_graph_clone(from->child, from->origin != NULL && to->origin == from->origin, &child);
        if (result != CUDA_SUCCESS)
            return result;
    }
    if (!sg_operation_keep(&kept, &from->operation)) {
        sg_graph_discard(child);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_operation_drop(&to->operation);
    sg_graph_discard(to->child);
    to->operation = kept;
    to->context = from->context;
    to->kern = from->kern;
    to->child = child;
    if (child != NULL)
        child->within = to;
    if (from->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        sg_graph_memory_retain(kept.memory.address);
    free(to->pointers);
    to->pointers = NULL;
    return CUDA_SUCCESS;
}

/* ---- adding ---- */

CUresult sg_graph_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                      size_t count, CUgraphNodeParams *p) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || p == NULL || !sg_is_graph(graph))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node = sg_node_make(graph, p->type);
    if (node == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_node_set(node, p);
    if (result == CUDA_SUCCESS)
        result = sg_graph_append(node, dependencies, data, count);
    if (result != CUDA_SUCCESS) {
        sg_node_discard(node);
        return result;
    }
    if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        p->alloc.dptr = node->operation.memory.address;
    *out = node;
    return CUDA_SUCCESS;
}

static CUgraphNodeType type_of(sg_operation_kind kind) {
    switch (kind) {
    case SG_OPERATION_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
    case SG_OPERATION_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
    case SG_OPERATION_FILL: return CU_GRAPH_NODE_TYPE_MEMSET;
    case SG_OPERATION_HOST: return CU_GRAPH_NODE_TYPE_HOST;
    case SG_OPERATION_EVENT_RECORD: return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case SG_OPERATION_EVENT_WAIT: return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case SG_OPERATION_ALLOCATE: return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case SG_OPERATION_FREE: return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case SG_OPERATION_VALUES: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default: return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

static bool is_interprocess(const sg_operation *operation) {
    return (operation->kind == SG_OPERATION_EVENT_RECORD || operation->kind == SG_OPERATION_EVENT_WAIT) &&
           operation->event->interprocess != NULL;
}

CUresult sg_graph_append_operation(CUgraph graph, CUcontext context, const sg_operation *operation,
                                   const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
                                   CUgraphNode *out) {
    CUgraphNode node = sg_node_make(graph, type_of(operation->kind));
    if (node == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    if (is_interprocess(operation))
        result = refuse("event of several processes in a graph");
    else if (!sg_operation_keep(&node->operation, operation))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    node->operation.awaited = false;
    node->context = context;
    if (result == CUDA_SUCCESS)
        result = sg_graph_append(node, dependencies, data, count);
    if (result != CUDA_SUCCESS)
        sg_node_discard(node);
    else
        *out = node;
    return result;
}

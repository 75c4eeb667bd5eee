/* The calls for nodes of few parameters, and those about graphs as a whole. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"
#include "launch.h"

static CUresult known(CUgraphNode node, CUgraphNodeType type) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_is_node(node) && node->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult known_graph(CUgraph graph) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_is_graph(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- graphs ---- */

SG_EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return graph == NULL || flags != 0 ? CUDA_ERROR_INVALID_VALUE : sg_graph_make(graph);
}

SG_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS)
        return result;
    if (graph->within != NULL || graph->capturing) /* it goes with its node */
        return CUDA_ERROR_INVALID_VALUE;
    sg_graph_discard(graph);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphClone(CUgraph *clone, CUgraph graph) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS || clone == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    if (sg_graph_has_memory_nodes(graph))
        return CUDA_ERROR_NOT_SUPPORTED; /* as in the driver: whose would the memory be? */
    return sg_graph_clone(graph, false, clone);
}

SG_EXPORT CUresult cuGraphGetId(CUgraph graph, unsigned *id) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS || id == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *id = graph->id;
    return CUDA_SUCCESS;
}

/* ---- nodes as such ---- */

static CUresult any(CUgraphNode node, const void *out) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return out == NULL || !sg_is_node(node) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
    CUresult result = any(node, type);
    if (result == CUDA_SUCCESS)
        *type = node->type;
    return result;
}

SG_EXPORT CUresult cuGraphNodeGetContainingGraph(CUgraphNode node, CUgraph *graph) {
    CUresult result = any(node, graph);
    if (result == CUDA_SUCCESS)
        *graph = node->graph;
    return result;
}

SG_EXPORT CUresult cuGraphNodeGetLocalId(CUgraphNode node, unsigned *id) {
    CUresult result = any(node, id);
    if (result == CUDA_SUCCESS)
        *id = node->id;
    return result;
}

SG_EXPORT CUresult cuGraphNodeGetToolsId(CUgraphNode node, unsigned long long *id) {
    CUresult result = any(node, id);
    if (result == CUDA_SUCCESS)
        *id = (unsigned long long)node->graph->id << 32 | node->id;
    return result;
}

SG_EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone) {
    CUresult result = any(original, found);
    if (result == CUDA_SUCCESS)
        result = known_graph(clone);
    if (result != CUDA_SUCCESS)
        return result;
    *found = sg_graph_clone_of(clone, original);
    return *found != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- empty nodes and child graphs ---- */

SG_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count) {
    return sg_graph_add(node, graph, dependencies, NULL, count,
                        &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

SG_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                            size_t count, CUgraph child) {
    return sg_graph_add(node, graph, dependencies, NULL, count,
                        &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child, 0}});
}

SG_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_GRAPH);
    if (result == CUDA_SUCCESS && graph == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *graph = node->child;
    return result;
}

SG_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
    return sg_exec_set(exec, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {child, 0}});
}

/* ---- events ---- */

#define EVENT_CALLS(Name, TYPE, field)                                                                           \
    SG_EXPORT CUresult cuGraphAdd##Name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,       \
                                        size_t count, CUevent event) {                                           \
        return sg_graph_add(node, graph, dependencies, NULL, count,                                              \
                            &(CUgraphNodeParams){.type = TYPE, .field = {.event = event}});                      \
    }                                                                                                            \
    SG_EXPORT CUresult cuGraph##Name##GetEvent(CUgraphNode node, CUevent *event) {                               \
        CUresult result = known(node, TYPE);                                                                     \
        if (result == CUDA_SUCCESS && event == NULL)                                                             \
            result = CUDA_ERROR_INVALID_VALUE;                                                                   \
        if (result == CUDA_SUCCESS)                                                                              \
            *event = node->operation.event;                                                                      \
        return result;                                                                                           \
    }                                                                                                            \
    SG_EXPORT CUresult cuGraph##Name##SetEvent(CUgraphNode node, CUevent event) {                                \
        CUresult result = known(node, TYPE);                                                                     \
        if (result != CUDA_SUCCESS)                                                                              \
            return result;                                                                                       \
        return sg_node_set(node, &(CUgraphNodeParams){.type = TYPE, .field = {.event = event}});                 \
    }                                                                                                            \
    SG_EXPORT CUresult cuGraphExec##Name##SetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {          \
        return sg_exec_set(exec, node, &(CUgraphNodeParams){.type = TYPE, .field = {.event = event}});           \
    }

EVENT_CALLS(EventRecordNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord)
EVENT_CALLS(EventWaitNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait)

/* ---- memory ---- */

SG_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                          size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *given) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS || given == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    p.alloc = *given;
    result = sg_graph_add(node, graph, dependencies, NULL, count, &p);
    if (result == CUDA_SUCCESS)
        given->dptr = p.alloc.dptr;
    return result;
}

SG_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
    CUgraphNodeParams p;
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (result == CUDA_SUCCESS)
        result = out == NULL ? CUDA_ERROR_INVALID_VALUE : sg_node_get(node, &p);
    if (result == CUDA_SUCCESS)
        *out = p.alloc;
    return result;
}

SG_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                         size_t count, CUdeviceptr address) {
    return sg_graph_add(node, graph, dependencies, NULL, count,
                        &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {address}});
}

SG_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (result == CUDA_SUCCESS && address == NULL)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *address = node->operation.memory.address;
    return result;
}

/* ---- attributes of kernel nodes ---- */

static CUlaunchAttribute *attribute(CUgraphNode node, int id) {
    for (unsigned i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].id == id)
            return &node->attributes[i];
    return NULL;
}

static CUresult set_attribute(CUgraphNode node, int id, const CUlaunchAttributeValue *value) {
    CUresult result = sg_launch_attribute(&(CUlaunchAttribute){.id = id, .value = *value},
                                          &node->operation.kernel.shape);
    if (result != CUDA_SUCCESS)
        return result;
    CUlaunchAttribute *place = attribute(node, id);
    if (place == NULL) {
        CUlaunchAttribute *grown = realloc(node->attributes, (node->attribute_count + 1) * sizeof *grown);
        if (grown == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        node->attributes = grown;
        place = &grown[node->attribute_count++];
    }
    *place = (CUlaunchAttribute){.id = id, .value = *value};
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id, const CUlaunchAttributeValue *value) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result != CUDA_SUCCESS)
        return result;
    return value == NULL || id <= 0 || id > 18 ? CUDA_ERROR_INVALID_VALUE : set_attribute(node, id, value);
}

SG_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int id, CUlaunchAttributeValue *value) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || id <= 0 || id > 18)
        return CUDA_ERROR_INVALID_VALUE;
    const CUlaunchAttribute *found = attribute(node, id);
    *value = found != NULL ? found->value : (CUlaunchAttributeValue){{0}};
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) /* a captured launch may have it */
        value->cooperative = node->operation.kernel.shape.cooperative;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    CUresult result = known(to, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS)
        result = known(from, CU_GRAPH_NODE_TYPE_KERNEL);
    for (unsigned i = 0; result == CUDA_SUCCESS && i < from->attribute_count; i++)
        result = set_attribute(to, from->attributes[i].id, &from->attributes[i].value);
    if (result == CUDA_SUCCESS)
        to->operation.kernel.shape.cooperative = from->operation.kernel.shape.cooperative;
    return result;
}

/* Executable graphs: instantiated, launched, updated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static _Atomic unsigned next_exec = 1;

static CUresult known(CUgraphExec exec) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(exec, SG_GRAPH_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* An event of the driver's own, which no program ever sees. */
static CUevent make_launched(void) {
    CUevent event = calloc(1, sizeof *event);
    if (event != NULL)
        atomic_store(&event->references, 1);
    return event;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags, CUgraphNode *wrong) {
    CUresult result = sg_ready();
    *wrong = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || !sg_is_graph(graph) || (flags & ~15ull) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
        sg_log_unsupported("graph", "launch from the device");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUgraphExec exec = calloc(1, sizeof *exec);
    if (exec == NULL || (exec->launched = make_launched()) == NULL) {
        free(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    exec->id = atomic_fetch_add(&next_exec, 1);
    exec->flags = flags;
    result = sg_plan_make(graph, exec->launched, &exec->plan, wrong);
    if (result == CUDA_SUCCESS && !sg_object_add(exec, SG_GRAPH_EXEC))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        sg_plan_release(exec->plan);
        sg_event_release(exec->launched);
        free(exec);
        return result;
    }
    *out = exec;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    CUgraphNode wrong;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* needs a stream: only with parameters */
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return instantiate(exec, graph, flags, &wrong);
}

SG_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size) {
    CUgraphNode wrong;
    CUresult result = instantiate(exec, graph, 0, &wrong);
    if (node != NULL)
        *node = wrong;
    if (log != NULL && size > 0)
        snprintf(log, size, "%s", wrong != NULL ? "the graph has a cycle" : "");
    return result;
}
SG_ALIAS(cuGraphInstantiate, cuGraphInstantiate_v2);

SG_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
    CUgraphNode wrong;
    if (p == NULL)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    CUresult result = instantiate(exec, graph, p->flags, &wrong);
    p->hErrNode_out = wrong;
    p->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                    : wrong != NULL        ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                           : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}
SG_PTSZ(cuGraphInstantiateWithParams); /* what it uploads is here already */

SG_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS)
        return result;
    sg_object_remove(exec);
    sg_plan_release(exec->plan); /* a launch that waits has its own hold on it */
    sg_event_release(exec->launched);
    free(exec);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags) {
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS || flags == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *flags = exec->flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphExecGetId(CUgraphExec exec, unsigned *id) {
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS || id == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *id = exec->id;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS)
        return result;
    bool reuse = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    sg_plan *plan = exec->plan;
    atomic_fetch_add(&plan->references, 1); /* the launch may outlive the executable graph */
    result = sg_submit(stream, &(sg_operation){SG_OPERATION_GRAPH, .graph = {plan, reuse}});
    sg_plan_release(plan);
    return result;
}

/* There is nothing to bring to the device before a launch. */
SG_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    CUresult result = known(exec);
    return result == CUDA_SUCCESS ? sg_submit(stream, &(sg_operation){SG_OPERATION_NOTHING}) : result;
}

/* ---- changing ---- */

/* What may not change between instantiation and launch: where a node runs, and what kind of memory it
 * copies. */
static int forbidden_change(CUgraphNode now, CUgraphNode wanted) {
    const CUDA_MEMCPY3D *a = &now->operation.copy.box, *b = &wanted->operation.copy.box;
    switch (now->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return now->context == wanted->context ? 0 : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (a->srcMemoryType != b->srcMemoryType || a->dstMemoryType != b->dstMemoryType)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        return now->context == wanted->context ? 0 : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return now->context == wanted->context ? 0 : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return now->operation.memory.address == wanted->operation.memory.address
                   ? 0
                   : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    default: return 0;
    }
}

static int compare(CUgraph now, CUgraph wanted, CUgraphExecUpdateResultInfo *info);

static int compare_node(CUgraphNode now, CUgraphNode wanted, CUgraphExecUpdateResultInfo *info) {
    info->errorNode = wanted;
    if (now->type != wanted->type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (now->in_count != wanted->in_count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < wanted->in_count; i++)
        if (sg_node_edge(now, wanted->in[i].node->twin) == NULL) {
            info->errorFromNode = wanted->in[i].node;
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
    return now->child != NULL ? compare(now->child, wanted->child, info) : forbidden_change(now, wanted);
}

/* Nodes correspond in the order in which they were added. */
static int compare(CUgraph now, CUgraph wanted, CUgraphExecUpdateResultInfo *info) {
    CUgraphNode other = now->first;
    if (now->count != wanted->count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (CUgraphNode node = wanted->first; node != NULL; node = node->next, other = other->next)
        node->twin = other;
    for (CUgraphNode node = wanted->first; node != NULL; node = node->next) {
        int difference = compare_node(node->twin, node, info);
        if (difference != 0)
            return difference;
    }
    info->errorNode = NULL;
    return 0;
}

static CUresult take(CUgraph now, CUgraph wanted) {
    CUgraphNode other = now->first;
    CUresult result = CUDA_SUCCESS;
    for (CUgraphNode node = wanted->first; node != NULL && result == CUDA_SUCCESS; node = node->next) {
        if (node->child != NULL)
            result = take(other->child, node->child);
        else if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            result = sg_node_copy(other, node);
        other = other->next;
    }
    return result;
}

/* The child keeps its nodes, which stand for those of the graph that was instantiated. */
static CUresult set_child(CUgraphNode node, const CUgraphNodeParams *p) {
    CUgraphExecUpdateResultInfo info = {0};
    if (p->type != node->type || !sg_is_graph(p->graph.graph) || compare(node->child, p->graph.graph, &info) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return take(node->child, p->graph.graph);
}

CUresult sg_exec_set(CUgraphExec exec, CUgraphNode original, const CUgraphNodeParams *p) {
    CUgraphNode node;
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is_node(original) || p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_exec_node(exec, original, &node);
    if (result != CUDA_SUCCESS)
        return result;
    if (node->child != NULL) {
        result = set_child(node, p);
        return result == CUDA_SUCCESS ? sg_plan_refresh(exec->plan, exec->launched) : result;
    }
    CUgraphNode changed = sg_node_make(node->graph, node->type);
    if (changed == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (node->operation.kind == SG_OPERATION_KERNEL)
        (void)sg_node_copy(changed, node); /* what is not a parameter stays */
    result = sg_node_set(changed, p);
    if (result == CUDA_SUCCESS && forbidden_change(node, changed) != 0)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_node_copy(node, changed);
    sg_node_discard(changed);
    return result == CUDA_SUCCESS ? sg_plan_refresh(exec->plan, exec->launched) : result;
}

SG_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    CUgraphNode node;
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS)
        return result;
    if (info == NULL || !sg_is_graph(graph))
        return CUDA_ERROR_INVALID_VALUE;
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    (void)sg_exec_node(exec, NULL, &node); /* a plan that may be changed */
    if (atomic_load(&exec->plan->references) > 1)
        return CUDA_ERROR_OUT_OF_MEMORY;
    info->result = compare(exec->plan->graph, graph, info);
    if (info->result != 0)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    result = take(exec->plan->graph, graph);
    if (result == CUDA_SUCCESS)
        result = sg_plan_refresh(exec->plan, exec->launched);
    if (result != CUDA_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return result;
}

SG_EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node, int *outcome) {
    CUgraphExecUpdateResultInfo info = {0};
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    if (node != NULL)
        *node = info.errorNode;
    if (outcome != NULL)
        *outcome = info.result;
    return result;
}

static bool can_be_disabled(CUgraphNode node) {
    return node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

SG_EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode original, unsigned enabled) {
    CUgraphNode node;
    CUresult result = known(exec);
    if (result == CUDA_SUCCESS && (!sg_is_node(original) || !can_be_disabled(original)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_exec_node(exec, original, &node);
    if (result == CUDA_SUCCESS)
        node->disabled = enabled == 0;
    return result;
}

SG_EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode original, unsigned *enabled) {
    CUresult result = known(exec);
    if (result != CUDA_SUCCESS)
        return result;
    if (enabled == NULL || !sg_is_node(original) || !can_be_disabled(original))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node = sg_graph_clone_of(exec->plan->graph, original);
    if (node == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !node->disabled;
    return CUDA_SUCCESS;
}

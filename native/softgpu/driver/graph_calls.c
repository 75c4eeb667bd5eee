/* The calls for each kind of node. All go through CUgraphNodeParams, the form that holds any of them. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static CUresult known(CUgraphNode node, CUgraphNodeType type) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_is_node(node) && node->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set(CUgraphNode node, const CUgraphNodeParams *p) {
    CUresult result = known(node, p->type);
    return result == CUDA_SUCCESS ? sg_node_set(node, p) : result;
}

static CUresult missing(void) {
    return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
}

/* ---- of any kind ---- */

SG_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *p) {
    return sg_graph_add(node, graph, dependencies, data, count, p);
}
SG_ALIAS(cuGraphAddNode_v3, cuGraphAddNode_v2);

SG_EXPORT CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  CUgraphNodeParams *p) {
    return sg_graph_add(node, graph, dependencies, NULL, count, p);
}

SG_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *p) {
    return p == NULL ? missing() : set(node, p);
}
SG_ALIAS(cuGraphNodeSetParams_v2, cuGraphNodeSetParams);

SG_EXPORT CUresult cuGraphNodeGetParams(CUgraphNode node, CUgraphNodeParams *p) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return p == NULL || !sg_is_node(node) ? CUDA_ERROR_INVALID_VALUE : sg_node_get(node, p);
}

SG_EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p) {
    return sg_exec_set(exec, node, p);
}

/* ---- add, get, set and set in an executable graph, for the kinds that have all four ---- */

#define CALLS(Name, TYPE, field, structure, size)                                                                \
    SG_EXPORT CUresult cuGraphAdd##Name(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,       \
                                        size_t count, const structure *given) {                                  \
        CUgraphNodeParams p = {.type = TYPE};                                                                    \
        if (given == NULL)                                                                                       \
            return missing();                                                                                    \
        memcpy(&p.field, given, size);                                                                           \
        return sg_graph_add(node, graph, dependencies, NULL, count, &p);                                         \
    }                                                                                                            \
    GET_AND_SET(Name, TYPE, field, structure, size)

#define GET_AND_SET(Name, TYPE, field, structure, size)                                                          \
    SG_EXPORT CUresult cuGraph##Name##SetParams(CUgraphNode node, const structure *given) {                      \
        CUgraphNodeParams p = {.type = TYPE};                                                                    \
        if (given == NULL)                                                                                       \
            return missing();                                                                                    \
        memcpy(&p.field, given, size);                                                                           \
        return set(node, &p);                                                                                    \
    }                                                                                                            \
    SG_EXPORT CUresult cuGraph##Name##GetParams(CUgraphNode node, structure *out) {                              \
        CUgraphNodeParams p;                                                                                     \
        CUresult result = known(node, TYPE);                                                                     \
        if (result == CUDA_SUCCESS && out == NULL)                                                               \
            result = CUDA_ERROR_INVALID_VALUE;                                                                   \
        if (result == CUDA_SUCCESS)                                                                              \
            result = sg_node_get(node, &p);                                                                      \
        if (result == CUDA_SUCCESS)                                                                              \
            memcpy(out, &p.field, size);                                                                         \
        return result;                                                                                           \
    }                                                                                                            \
    SG_EXPORT CUresult cuGraphExec##Name##SetParams(CUgraphExec exec, CUgraphNode node, const structure *given) { \
        CUgraphNodeParams p = {.type = TYPE};                                                                    \
        if (given == NULL)                                                                                       \
            return missing();                                                                                    \
        memcpy(&p.field, given, size);                                                                           \
        return sg_exec_set(exec, node, &p);                                                                      \
    }

CALLS(HostNode, CU_GRAPH_NODE_TYPE_HOST, host, CUDA_HOST_NODE_PARAMS, sizeof(CUDA_HOST_NODE_PARAMS))
CALLS(BatchMemOpNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, memOp, CUDA_BATCH_MEM_OP_NODE_PARAMS,
      sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS))

/* ---- kernels: two versions, the older one a beginning of the newer ---- */

SG_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                           size_t count, const CUDA_KERNEL_NODE_PARAMS *given) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (given == NULL)
        return missing();
    p.kernel = *given;
    return sg_graph_add(node, graph, dependencies, NULL, count, &p);
}

SG_EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *given) {
    CUDA_KERNEL_NODE_PARAMS newer = {0};
    if (given == NULL)
        return missing();
    memcpy(&newer, given, sizeof *given);
    return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &newer);
}

SG_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
    CUgraphNodeParams p;
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_KERNEL);
    if (result == CUDA_SUCCESS)
        result = out == NULL ? CUDA_ERROR_INVALID_VALUE : sg_node_get(node, &p);
    if (result == CUDA_SUCCESS)
        *out = p.kernel;
    return result;
}

SG_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out) {
    CUDA_KERNEL_NODE_PARAMS newer;
    CUresult result = cuGraphKernelNodeGetParams_v2(node, out != NULL ? &newer : NULL);
    if (result != CUDA_SUCCESS)
        return result;
    if (newer.func == NULL) /* the older form has no place for a kernel */
        newer.func = node->operation.kernel.function;
    memcpy(out, &newer, sizeof *out);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *given) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (given == NULL)
        return missing();
    p.kernel = *given;
    return set(node, &p);
}

SG_EXPORT CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *given) {
    CUDA_KERNEL_NODE_PARAMS newer = {0};
    if (given == NULL)
        return missing();
    memcpy(&newer, given, sizeof *given);
    return cuGraphKernelNodeSetParams_v2(node, &newer);
}

SG_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                     const CUDA_KERNEL_NODE_PARAMS *given) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (given == NULL)
        return missing();
    p.kernel = *given;
    return sg_exec_set(exec, node, &p);
}

SG_EXPORT CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v1 *given) {
    CUDA_KERNEL_NODE_PARAMS newer = {0};
    if (given == NULL)
        return missing();
    memcpy(&newer, given, sizeof *given);
    return cuGraphExecKernelNodeSetParams_v2(exec, node, &newer);
}

/* ---- copies and fills, whose context is an argument of its own ---- */

static CUgraphNodeParams copy_parameters(const CUDA_MEMCPY3D *box, CUcontext context) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    p.memcpy.copyCtx = context;
    p.memcpy.copyParams = *box;
    return p;
}

SG_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        const CUDA_MEMCPY3D *box, CUcontext context) {
    if (box == NULL)
        return missing();
    CUgraphNodeParams p = copy_parameters(box, context);
    return sg_graph_add(node, graph, dependencies, NULL, count, &p);
}

SG_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *box) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (result != CUDA_SUCCESS || box == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    CUgraphNodeParams p = copy_parameters(box, node->context);
    return sg_node_set(node, &p);
}

SG_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (result != CUDA_SUCCESS || out == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    *out = node->operation.copy.box;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *box,
                                                  CUcontext context) {
    if (box == NULL)
        return missing();
    CUgraphNodeParams p = copy_parameters(box, context);
    return sg_exec_set(exec, node, &p);
}

static CUgraphNodeParams fill_parameters(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context) {
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    memcpy(&p.memset, fill, sizeof *fill);
    p.memset.ctx = context;
    return p;
}

SG_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context) {
    if (fill == NULL)
        return missing();
    CUgraphNodeParams p = fill_parameters(fill, context);
    return sg_graph_add(node, graph, dependencies, NULL, count, &p);
}

SG_EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill) {
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEMSET);
    if (result != CUDA_SUCCESS || fill == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    CUgraphNodeParams p = fill_parameters(fill, node->context);
    return sg_node_set(node, &p);
}

SG_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out) {
    CUgraphNodeParams p;
    CUresult result = known(node, CU_GRAPH_NODE_TYPE_MEMSET);
    if (result == CUDA_SUCCESS)
        result = out == NULL ? CUDA_ERROR_INVALID_VALUE : sg_node_get(node, &p);
    if (result == CUDA_SUCCESS)
        memcpy(out, &p.memset, sizeof *out);
    return result;
}

SG_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context) {
    if (fill == NULL)
        return missing();
    CUgraphNodeParams p = fill_parameters(fill, context);
    return sg_exec_set(exec, node, &p);
}

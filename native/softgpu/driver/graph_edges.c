/* Questions about a graph's shape, and changes of it. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static CUresult known_graph(CUgraph graph) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_is_graph(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult known_node(CUgraphNode node) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_is_node(node) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* A list that a program asks for: without room, how many there are; else as many as fit, and NULL in
 * what is left over. `data` NULL while an edge has some: the answer would be lossy. */
typedef struct {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy;
} listing;

static void list(listing *l, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data) {
    static const CUgraphEdgeData plain;
    if (data != NULL && l->data == NULL && memcmp(data, &plain, sizeof plain) != 0)
        l->lossy = true;
    if (l->found < l->room) {
        if (l->from != NULL)
            l->from[l->found] = from;
        if (l->to != NULL)
            l->to[l->found] = to;
        if (l->data != NULL && data != NULL)
            l->data[l->found] = *data;
    }
    l->found++;
}

static CUresult conclude(listing *l, size_t *count) {
    bool asked = l->from != NULL || l->to != NULL;
    if (asked && l->lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    for (size_t i = l->found; asked && i < l->room; i++) {
        if (l->from != NULL)
            l->from[i] = NULL;
        if (l->to != NULL)
            l->to[i] = NULL;
    }
    *count = asked && l->room < l->found ? l->room : l->found;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS || count == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    listing l = {.from = nodes, .room = nodes != NULL ? *count : 0};
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        list(&l, node, NULL, NULL);
    return conclude(&l, count);
}

SG_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS || count == NULL)
        return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
    listing l = {.from = nodes, .room = nodes != NULL ? *count : 0};
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->in_count == 0)
            list(&l, node, NULL, NULL);
    return conclude(&l, count);
}

SG_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                      size_t *count) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL || (from == NULL) != (to == NULL) || (data != NULL && from == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    listing l = {.from = from, .to = to, .data = data, .room = from != NULL ? *count : 0};
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        for (size_t i = 0; i < node->in_count; i++)
            list(&l, node->in[i].node, node, &node->in[i].data);
    return conclude(&l, count);
}

SG_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
    return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

SG_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *dependencies, CUgraphEdgeData *data,
                                                 size_t *count) {
    CUresult result = known_node(node);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL || (data != NULL && dependencies == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    listing l = {.from = dependencies, .data = data, .room = dependencies != NULL ? *count : 0};
    for (size_t i = 0; i < node->in_count; i++)
        list(&l, node->in[i].node, NULL, &node->in[i].data);
    return conclude(&l, count);
}

SG_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies, size_t *count) {
    return cuGraphNodeGetDependencies_v2(node, dependencies, NULL, count);
}

SG_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *dependents, CUgraphEdgeData *data,
                                                   size_t *count) {
    CUresult result = known_node(node);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL || (data != NULL && dependents == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    listing l = {.from = dependents, .data = data, .room = dependents != NULL ? *count : 0};
    for (CUgraphNode other = node->graph->first; other != NULL; other = other->next) {
        sg_edge *edge = sg_node_edge(other, node);
        if (edge != NULL)
            list(&l, other, NULL, &edge->data);
    }
    return conclude(&l, count);
}

SG_EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *dependents, size_t *count) {
    return cuGraphNodeGetDependentNodes_v2(node, dependents, NULL, count);
}

static CUresult edges_known(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    CUresult result = known_graph(graph);
    if (result != CUDA_SUCCESS)
        return result;
    if (count > 0 && (from == NULL || to == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!sg_is_node(from[i]) || !sg_is_node(to[i]) || from[i]->graph != graph || to[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                             const CUgraphEdgeData *data, size_t count) {
    CUresult result = edges_known(graph, from, to, count);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = sg_node_connect(to[i], &from[i], data != NULL ? &data[i] : NULL, 1);
        for (size_t j = i; result != CUDA_SUCCESS && j-- > 0;) /* all of them or none */
            sg_node_disconnect(to[j], from[j]);
    }
    return result;
}

SG_EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count) {
    return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

SG_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                                const CUgraphEdgeData *data, size_t count) {
    CUresult result = edges_known(graph, from, to, count);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        sg_edge *edge = sg_node_edge(to[i], from[i]);
        if (edge == NULL || (data != NULL && memcmp(&edge->data, &data[i], sizeof *data) != 0))
            result = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        sg_node_disconnect(to[i], from[i]);
    return result;
}

SG_EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                             size_t count) {
    return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

SG_EXPORT CUresult cuGraphDestroyNode(CUgraphNode node) {
    CUresult result = known_node(node);
    if (result != CUDA_SUCCESS)
        return result;
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUgraph graph = node->graph;
    if (graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode other = graph->first; other != NULL; other = other->next)
        sg_node_disconnect(other, node);
    CUgraphNode *at = &graph->first;
    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    if (graph->last == &node->next)
        graph->last = at;
    graph->count--;
    sg_node_discard(node);
    return CUDA_SUCCESS;
}

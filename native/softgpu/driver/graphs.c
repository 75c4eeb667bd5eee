/* Graphs and their nodes as objects: made, cloned, taken apart. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static _Atomic unsigned next_graph = 1;

bool sg_is_graph(CUgraph graph) {
    return sg_object_is(graph, SG_GRAPH);
}

bool sg_is_node(CUgraphNode node) {
    return sg_object_is(node, SG_GRAPH_NODE);
}

CUresult sg_graph_make(CUgraph *made) {
    CUgraph graph = calloc(1, sizeof *graph);
    if (graph == NULL || !sg_object_add(graph, SG_GRAPH)) {
        free(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->id = atomic_fetch_add(&next_graph, 1);
    graph->last = &graph->first;
    *made = graph;
    return CUDA_SUCCESS;
}

void sg_graph_discard(CUgraph graph) {
    if (graph == NULL)
        return;
    sg_object_remove(graph);
    for (CUgraphNode node = graph->first, next; node != NULL; node = next) {
        next = node->next;
        sg_node_discard(node);
    }
    for (sg_held *held = graph->held, *next; held != NULL; held = next) {
        next = held->next;
        sg_user_object_release(held->object, held->count);
        free(held);
    }
    free(graph);
}

CUgraphNode sg_node_make(CUgraph graph, CUgraphNodeType type) {
    CUgraphNode node = calloc(1, sizeof *node);
    if (node == NULL || !sg_object_add(node, SG_GRAPH_NODE)) {
        free(node);
        return NULL;
    }
    node->graph = graph;
    node->type = type;
    return node;
}

void sg_node_discard(CUgraphNode node) {
    sg_object_remove(node);
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        sg_graph_memory_release(node->operation.memory.address);
    sg_operation_drop(&node->operation);
    sg_graph_discard(node->child);
    free(node->pointers);
    free(node->attributes);
    free(node->in);
    free(node);
}

/* ---- edges ---- */

sg_edge *sg_node_edge(CUgraphNode node, CUgraphNode dependency) {
    for (size_t i = 0; i < node->in_count; i++)
        if (node->in[i].node == dependency)
            return &node->in[i];
    return NULL;
}

/* Programmatic edges let a kernel begin before the one it depends on has ended; here it begins after. */
static bool edge_possible(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data) {
    static const unsigned char zeros[5];
    bool kernels = from->type == CU_GRAPH_NODE_TYPE_KERNEL && to->type == CU_GRAPH_NODE_TYPE_KERNEL;
    if (data->type > 1 || data->from_port > 2 || data->to_port != 0 || memcmp(data->reserved, zeros, 5) != 0)
        return false;
    return (data->type == 0 || (kernels && data->from_port != 0)) &&
           (data->from_port == 0 || from->type == CU_GRAPH_NODE_TYPE_KERNEL);
}

static bool reserve(CUgraphNode node, size_t more) {
    size_t wanted = node->in_count + more;
    if (wanted <= node->in_room)
        return true;
    if (wanted < 2 * node->in_room)
        wanted = 2 * node->in_room;
    sg_edge *grown = realloc(node->in, wanted * sizeof *grown);
    if (grown == NULL)
        return false;
    node->in = grown;
    node->in_room = wanted;
    return true;
}

CUresult sg_node_connect(CUgraphNode node, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count) {
    size_t before = node->in_count;
    if (count > 0 && dependencies == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (count > node->graph->count || !reserve(node, count)) /* more than there are nodes: some twice */
        return count > node->graph->count ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        CUgraphNode from = dependencies[i];
        CUgraphEdgeData edge = data != NULL ? data[i] : (CUgraphEdgeData){0};
        if (!sg_is_node(from) || from->graph != node->graph || from == node || sg_node_edge(node, from) != NULL ||
            !edge_possible(from, node, &edge)) {
            node->in_count = before;
            return CUDA_ERROR_INVALID_VALUE;
        }
        node->in[node->in_count++] = (sg_edge){from, edge};
    }
    return CUDA_SUCCESS;
}

void sg_node_disconnect(CUgraphNode node, CUgraphNode dependency) {
    sg_edge *edge = sg_node_edge(node, dependency);
    if (edge == NULL)
        return;
    size_t at = (size_t)(edge - node->in);
    memmove(edge, edge + 1, (node->in_count - at - 1) * sizeof *edge);
    node->in_count--;
}

CUresult sg_graph_append(CUgraphNode node, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count) {
    CUgraph graph = node->graph;
    CUresult result = sg_node_connect(node, dependencies, data, count);
    if (result != CUDA_SUCCESS)
        return result;
    node->id = graph->next_node++;
    *graph->last = node;
    graph->last = &node->next;
    graph->count++;
    return CUDA_SUCCESS;
}

/* ---- clones ---- */

bool sg_graph_has_memory_nodes(CUgraph graph) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
            (node->child != NULL && sg_graph_has_memory_nodes(node->child)))
            return true;
    return false;
}

CUgraphNode sg_graph_clone_of(CUgraph clone, CUgraphNode original) {
    for (CUgraphNode node = clone->first; node != NULL; node = node->next) {
        if (node->origin == original)
            return node;
        CUgraphNode inside = node->child != NULL ? sg_graph_clone_of(node->child, original) : NULL;
        if (inside != NULL)
            return inside;
    }
    return NULL;
}

/* A clone in a plan stands for the same node as what it was cloned from. */
static CUresult clone_node(CUgraphNode node, CUgraph clone, bool replan) {
    CUgraphNode copy = sg_node_make(clone, node->type);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->origin = replan ? node->origin : node;
    copy->disabled = node->disabled;
    CUresult result = sg_node_copy(copy, node);
    if (result == CUDA_SUCCESS && !reserve(copy, node->in_count))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = sg_graph_append(copy, NULL, NULL, 0);
    if (result != CUDA_SUCCESS) {
        sg_node_discard(copy);
        return result;
    }
    copy->id = node->id;
    return CUDA_SUCCESS;
}

/* The edges of a clone, whose nodes are in the order of the original's. */
static void clone_edges(CUgraph graph, CUgraph clone) {
    CUgraphNode copy = clone->first;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next, copy = copy->next)
        node->twin = copy;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        for (size_t i = 0; i < node->in_count; i++)
            node->twin->in[node->twin->in_count++] = (sg_edge){node->in[i].node->twin, node->in[i].data};
}

static CUresult clone_held(CUgraph graph, CUgraph clone) {
    for (sg_held *held = graph->held; held != NULL; held = held->next) {
        sg_held *copy = malloc(sizeof *copy);
        if (copy == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *copy = (sg_held){held->object, held->count, clone->held};
        sg_user_object_hold(held->object, held->count);
        clone->held = copy;
    }
    return CUDA_SUCCESS;
}

CUresult sg_graph_clone(CUgraph graph, bool replan, CUgraph *made) {
    CUgraph clone;
    CUresult result = sg_graph_make(&clone);
    if (result != CUDA_SUCCESS)
        return result;
    for (CUgraphNode node = graph->first; node != NULL && result == CUDA_SUCCESS; node = node->next)
        result = clone_node(node, clone, replan);
    if (result == CUDA_SUCCESS)
        result = clone_held(graph, clone);
    if (result != CUDA_SUCCESS) {
        sg_graph_discard(clone);
        return result;
    }
    clone_edges(graph, clone);
    clone->next_node = graph->next_node;
    *made = clone;
    return CUDA_SUCCESS;
}

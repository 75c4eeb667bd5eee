/* Plans: a graph in an order in which it can be performed, by one thread, as one operation. */
#include <stdlib.h>
#include <string.h>

#include "graphs.h"

static bool ready(CUgraphNode node) {
    for (size_t i = 0; i < node->in_count; i++)
        if (!node->in[i].node->placed)
            return false;
    return !node->placed;
}

static bool waits_for_value(CUgraphNode node) {
    return node->operation.kind == SG_OPERATION_VALUES && sg_values_wait(&node->operation.values);
}

/* Nodes come in the order in which they were added, which mostly is one that works: one pass. Nodes that
 * wait for a value come as late as they can: another branch of the graph may write it. */
static bool put_in_order(CUgraph graph, CUgraphNode *order) {
    size_t placed = 0, before;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        node->placed = false;
    do {
        before = placed;
        for (int late = 0; late < 2 && placed == before; late++)
            for (CUgraphNode node = graph->first; node != NULL && (late == 0 || placed == before); node = node->next)
                if (ready(node) && (late == 1 || !waits_for_value(node))) {
                    node->placed = true;
                    order[placed++] = node;
                }
    } while (placed > before && placed < graph->count);
    return placed == graph->count;
}

static bool brief(CUgraph graph) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        if (node->type == CU_GRAPH_NODE_TYPE_HOST || waits_for_value(node) ||
            (node->child != NULL && !brief(node->child)))
            return false;
    return true;
}

static void add_event(CUevent *list, size_t *count, CUevent event) {
    atomic_fetch_add(&event->references, 1);
    list[(*count)++] = event;
}

static size_t count_events(CUgraph graph) {
    size_t count = 0;
    for (CUgraphNode node = graph->first; node != NULL; node = node->next)
        count += node->child != NULL ? count_events(node->child)
                                     : node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ||
                                           node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    return count;
}

static void list_events(sg_plan *plan, CUgraph graph) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (node->child != NULL)
            list_events(plan, node->child);
        else if (node->disabled)
            continue;
        else if (node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
            add_event(plan->waits, &plan->wait_count, node->operation.event);
        else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
            add_event(plan->records, &plan->record_count, node->operation.event);
    }
}

static void forget_events(sg_plan *plan) {
    for (size_t i = 0; i < plan->wait_count; i++)
        sg_event_release(plan->waits[i]);
    for (size_t i = 0; i < plan->record_count; i++)
        sg_event_release(plan->records[i]);
    free(plan->waits);
    free(plan->records);
    plan->waits = plan->records = NULL;
    plan->wait_count = plan->record_count = 0;
}

CUresult sg_plan_refresh(sg_plan *plan, CUevent launched) {
    size_t room = count_events(plan->graph) + 1;
    forget_events(plan);
    plan->waits = calloc(room, sizeof *plan->waits);
    plan->records = calloc(room, sizeof *plan->records);
    if (plan->waits == NULL || plan->records == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    add_event(plan->waits, &plan->wait_count, launched);
    add_event(plan->records, &plan->record_count, launched);
    list_events(plan, plan->graph);
    plan->brief = brief(plan->graph);
    return CUDA_SUCCESS;
}

void sg_plan_release(sg_plan *plan) {
    if (plan == NULL || atomic_fetch_sub(&plan->references, 1) > 1)
        return;
    forget_events(plan);
    sg_graph_discard(plan->graph);
    free(plan->order);
    free(plan);
}

/* Child graphs are ordered when they are performed: their order needs no room in the plan. */
static bool children_ordered(CUgraph graph, CUgraphNode *wrong) {
    for (CUgraphNode node = graph->first; node != NULL; node = node->next) {
        if (node->child == NULL)
            continue;
        CUgraphNode *order = calloc(node->child->count + 1, sizeof *order);
        bool possible = order != NULL && put_in_order(node->child, order) && children_ordered(node->child, wrong);
        free(order);
        if (!possible) {
            *wrong = node->origin;
            return false;
        }
    }
    return true;
}

/* Takes the clone. */
static CUresult plan_of(CUgraph clone, CUevent launched, sg_plan **made, CUgraphNode *wrong) {
    sg_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        sg_graph_discard(clone);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    atomic_store(&plan->references, 1);
    plan->graph = clone;
    plan->order = calloc(clone->count + 1, sizeof *plan->order);
    CUresult result = plan->order != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !put_in_order(clone, plan->order)) {
        for (CUgraphNode node = clone->first; node != NULL && *wrong == NULL; node = node->next)
            if (!node->placed)
                *wrong = node->origin; /* in a circle, or behind one */
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS && !children_ordered(clone, wrong))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = sg_plan_refresh(plan, launched);
    if (result != CUDA_SUCCESS)
        sg_plan_release(plan);
    else
        *made = plan;
    return result;
}

CUresult sg_plan_make(CUgraph graph, CUevent launched, sg_plan **plan, CUgraphNode *wrong) {
    CUgraph clone;
    *wrong = NULL;
    CUresult result = sg_graph_clone(graph, false, &clone);
    return result == CUDA_SUCCESS ? plan_of(clone, launched, plan, wrong) : result;
}

CUresult sg_exec_node(CUgraphExec exec, CUgraphNode original, CUgraphNode *node) {
    if (atomic_load(&exec->plan->references) > 1) { /* a launch of it waits: leave that one as it is */
        CUgraph clone;
        CUgraphNode wrong = NULL;
        sg_plan *own;
        CUresult result = sg_graph_clone(exec->plan->graph, true, &clone);
        if (result == CUDA_SUCCESS)
            result = plan_of(clone, exec->launched, &own, &wrong);
        if (result != CUDA_SUCCESS)
            return result;
        sg_plan_release(exec->plan);
        exec->plan = own;
    }
    *node = sg_graph_clone_of(exec->plan->graph, original);
    return *node != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the operation ---- */

static CUresult perform_node(CUcontext context, CUgraphNode node);

static CUresult perform_child(CUcontext context, CUgraph graph) {
    CUresult result = CUDA_SUCCESS;
    CUgraphNode *order = calloc(graph->count + 1, sizeof *order);
    if (order == NULL || !put_in_order(graph, order))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++)
        result = perform_node(context, order[i]);
    free(order);
    return result;
}

static CUresult perform_node(CUcontext context, CUgraphNode node) {
    CUcontext own = node->context != NULL ? node->context : context;
    if (node->child != NULL)
        return perform_child(context, node->child);
    if (node->disabled)
        return CUDA_SUCCESS;
    if (atomic_load(&own->sticky) != CUDA_SUCCESS && !sg_operation_survives(&node->operation))
        return CUDA_SUCCESS; /* the context says it */
    if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && sg_graph_memory_lent(node->operation.memory.address))
        return CUDA_SUCCESS; /* from the launch before, and to be used again */
    return sg_operation_perform(own, &node->operation);
}

/* Memory that the launch before left lent out cannot be lent again, unless the program said so. */
CUresult sg_plan_check(const sg_graph_operation *graph) {
    for (CUgraphNode node = graph->plan->graph->first; node != NULL; node = node->next) {
        if (node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !sg_graph_memory_lent(node->operation.memory.address))
            continue;
        if (!graph->reuse)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult sg_plan_perform(CUcontext context, const sg_plan *plan) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < plan->graph->count; i++)
        result = perform_node(context, plan->order[i]);
    return result;
}

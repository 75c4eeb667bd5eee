/* The captures of this process. One lock for all: a graph is made by few calls, and by one thread. */
#include <stdlib.h>
#include <string.h>

#include "capture_state.h"

/* What an event recorded in a capturing stream stands for. */
struct sg_captured {
    unsigned long long capture;
    sg_frontier frontier;
};

pthread_mutex_t sg_capture_lock = PTHREAD_MUTEX_INITIALIZER;
sg_capture *sg_captures;
_Atomic unsigned sg_captures_running; /* how many captures: without any, nobody takes the lock */
_Thread_local int sg_capture_mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- frontiers ---- */

void sg_frontier_clear(sg_frontier *frontier) {
    free(frontier->nodes);
    free(frontier->data);
    *frontier = (sg_frontier){0};
}

/* Add what is not in it yet. */
CUresult sg_frontier_extend(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                            size_t count) {
    size_t room = frontier->count + count;
    CUgraphNode *grown = realloc(frontier->nodes, (room + 1) * sizeof *grown);
    if (grown != NULL)
        frontier->nodes = grown;
    CUgraphEdgeData *grown_data = realloc(frontier->data, (room + 1) * sizeof *grown_data);
    if (grown_data != NULL)
        frontier->data = grown_data;
    if (grown == NULL || grown_data == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < frontier->count && frontier->nodes[at] != nodes[i])
            at++;
        frontier->nodes[at] = nodes[i];
        frontier->data[at] = data != NULL ? data[i] : (CUgraphEdgeData){0};
        if (at == frontier->count)
            frontier->count++;
    }
    return CUDA_SUCCESS;
}

CUresult sg_frontier_replace(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data,
                             size_t count) {
    sg_frontier fresh = {0};
    CUresult result = sg_frontier_extend(&fresh, nodes, data, count);
    if (result != CUDA_SUCCESS) {
        sg_frontier_clear(&fresh);
        return result;
    }
    sg_frontier_clear(frontier);
    *frontier = fresh;
    return CUDA_SUCCESS;
}

/* ---- finding, under `lock` ---- */

sg_capture_member *sg_capture_member_of(const sg_capture *c, const sg_queue *queue) {
    sg_capture_member *m = c->members;
    while (m != NULL && m->queue != queue)
        m = m->next;
    return m;
}

sg_capture *sg_capture_of(const sg_queue *queue, sg_capture_member **found) {
    for (sg_capture *c = sg_captures; c != NULL; c = c->next)
        if ((*found = sg_capture_member_of(c, queue)) != NULL)
            return c;
    return NULL;
}

static sg_capture *capture_of_event(CUevent event) {
    for (sg_capture *c = sg_captures; event->captured != NULL && c != NULL; c = c->next)
        if (c->id == event->captured->capture)
            return c;
    return NULL;
}

CUresult sg_capture_end_with(sg_capture *c, CUresult error) {
    c->invalid = true;
    return error;
}

/* The legacy stream waits for all blocking streams: it cannot wait for one that captures. */
CUresult sg_capture_implicit(CUcontext context, const sg_queue *queue) {
    CUresult result = CUDA_SUCCESS;
    if (queue != atomic_load(&context->legacy))
        return CUDA_SUCCESS;
    for (sg_capture *c = sg_captures; c != NULL; c = c->next)
        for (sg_capture_member *m = c->members; m != NULL; m = m->next)
            if (m->queue != NULL && sg_queue_context(m->queue) == context && !sg_queue_apart(m->queue))
                result = sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return result;
}

CUresult sg_capture_join(sg_capture *c, sg_queue *queue, const sg_frontier *frontier) {
    sg_capture_member *m = calloc(1, sizeof *m);
    if (m == NULL ||
        sg_frontier_replace(&m->frontier, frontier->nodes, frontier->data, frontier->count) != CUDA_SUCCESS) {
        free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->queue = queue;
    m->next = c->members;
    c->members = m;
    return CUDA_SUCCESS;
}

/* ---- operations that become nodes ---- */

static void drop_event(CUevent event) {
    if (event->captured == NULL)
        return;
    sg_frontier_clear(&event->captured->frontier);
    free(event->captured);
    event->captured = NULL;
}

static CUresult record(const sg_capture *c, const sg_capture_member *m, CUevent event) {
    struct sg_captured *captured = calloc(1, sizeof *captured);
    if (captured == NULL ||
        sg_frontier_replace(&captured->frontier, m->frontier.nodes, m->frontier.data, m->frontier.count) !=
            CUDA_SUCCESS) {
        free(captured);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    captured->capture = c->id;
    drop_event(event);
    event->captured = captured;
    return CUDA_SUCCESS;
}

static CUresult wait(sg_capture *c, sg_capture_member *m, CUevent event) {
    sg_capture *other = capture_of_event(event);
    if (other == NULL) /* work that no capture knows */
        return sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (other != c)
        return sg_capture_end_with(other, sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_MERGE));
    const sg_frontier *f = &event->captured->frontier;
    return sg_frontier_extend(&m->frontier, f->nodes, f->data, f->count);
}

static CUresult append(sg_capture *c, sg_capture_member *m, CUcontext context, sg_operation *operation) {
    CUgraphNode node;
    const sg_frontier *f = &m->frontier;
    if (operation->kind == SG_OPERATION_ALLOCATE) {
        CUresult result = sg_graph_memory_make(context, operation->memory.size, &operation->memory.address);
        if (result != CUDA_SUCCESS)
            return result;
    }
    CUresult result = sg_graph_append_operation(c->graph, context, operation, f->nodes, f->data, f->count, &node);
    return result == CUDA_SUCCESS ? sg_frontier_replace(&m->frontier, &node, NULL, 1) : result;
}

/* A graph that is launched into a capturing stream becomes a child graph. */
static CUresult append_graph(sg_capture *c, sg_capture_member *m, const sg_graph_operation *graph) {
    CUgraphNode node;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {graph->plan->graph, 0}};
    CUresult result = sg_graph_add(&node, c->graph, m->frontier.nodes, m->frontier.data, m->frontier.count, &p);
    return result == CUDA_SUCCESS ? sg_frontier_replace(&m->frontier, &node, NULL, 1) : result;
}

static CUresult take(sg_capture *c, sg_capture_member *m, CUcontext context, sg_operation *operation) {
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (operation->awaited || (operation->kind == SG_OPERATION_HOST && operation->host.callback != NULL))
        return sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    switch (operation->kind) {
    case SG_OPERATION_NOTHING: return CUDA_SUCCESS;
    case SG_OPERATION_GRAPH: return append_graph(c, m, &operation->graph);
    case SG_OPERATION_EVENT_RECORD:
        return operation->external ? append(c, m, context, operation) : record(c, m, operation->event);
    case SG_OPERATION_EVENT_WAIT:
        return operation->external ? append(c, m, context, operation) : wait(c, m, operation->event);
    default: return append(c, m, context, operation);
    }
}

/* A stream that waits for an event of a capture takes part in that capture. */
static CUresult enter(CUcontext context, sg_queue *queue, CUevent event) {
    sg_capture *c = capture_of_event(event);
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (queue == atomic_load(&context->legacy))
        return sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return sg_capture_join(c, queue, &event->captured->frontier);
}

CUresult sg_capture_submit(CUcontext context, sg_queue *queue, sg_operation *operation, bool *taken) {
    sg_capture_member *m;
    CUresult result;
    *taken = false;
    if (atomic_load_explicit(&sg_captures_running, memory_order_acquire) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sg_capture_lock);
    sg_capture *c = sg_capture_of(queue, &m);
    *taken = true;
    if (c != NULL) {
        result = take(c, m, context, operation);
    } else if (operation->kind == SG_OPERATION_EVENT_WAIT && capture_of_event(operation->event) != NULL) {
        result = enter(context, queue, operation->event);
    } else {
        if (operation->kind == SG_OPERATION_EVENT_RECORD)
            drop_event(operation->event);
        result = sg_capture_implicit(context, queue);
        *taken = result != CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

/* ---- what is forbidden ---- */

CUresult sg_capture_forbids_wait(sg_queue *queue) {
    sg_capture_member *m;
    if (atomic_load(&sg_captures_running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sg_capture_lock);
    sg_capture *c = sg_capture_of(queue, &m);
    CUresult result = c == NULL    ? sg_capture_implicit(sg_queue_context(queue), queue)
                      : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                   : sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

CUresult sg_capture_forbids_context_wait(CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    if (atomic_load(&sg_captures_running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sg_capture_lock);
    for (sg_capture *c = sg_captures; c != NULL; c = c->next)
        for (sg_capture_member *m = c->members; m != NULL; m = m->next)
            if (m->queue != NULL && sg_queue_context(m->queue) == context)
                result = sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

CUresult sg_capture_forbids_event(CUevent event) {
    if (atomic_load(&sg_captures_running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sg_capture_lock);
    sg_capture *c = capture_of_event(event);
    CUresult result = c != NULL ? sg_capture_end_with(c, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

CUresult sg_capture_forbids_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    if (atomic_load(&sg_captures_running) == 0 || sg_capture_mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&sg_capture_lock);
    for (sg_capture *c = sg_captures; c != NULL; c = c->next) {
        bool ours = c->thread == &sg_capture_mode_of_thread && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool everybodys = sg_capture_mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                          c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (ours || everybodys)
            result = sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

/* ---- ends of captures, streams, events and processes ---- */

void sg_capture_discard(sg_capture *c) {
    c->graph->capturing = false;
    for (sg_capture **at = &sg_captures; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    for (sg_capture_member *m = c->members, *next; m != NULL; m = next) {
        next = m->next;
        sg_frontier_clear(&m->frontier);
        free(m);
    }
    free(c);
    atomic_fetch_sub(&sg_captures_running, 1);
}

void sg_capture_leave(sg_queue *queue) {
    sg_capture_member *m;
    CUgraph doomed = NULL;
    if (atomic_load(&sg_captures_running) == 0)
        return;
    pthread_mutex_lock(&sg_capture_lock);
    sg_capture *c = sg_capture_of(queue, &m);
    if (c != NULL && c->origin == queue) {
        doomed = c->own_graph ? c->graph : NULL;
        sg_capture_discard(c);
    } else if (c != NULL) {
        m->queue = NULL;
    }
    pthread_mutex_unlock(&sg_capture_lock);
    sg_graph_discard(doomed);
}

void sg_capture_drop_event(CUevent event) {
    pthread_mutex_lock(&sg_capture_lock);
    drop_event(event);
    pthread_mutex_unlock(&sg_capture_lock);
}

void sg_capture_forget(void) {
    pthread_mutex_init(&sg_capture_lock, NULL);
}

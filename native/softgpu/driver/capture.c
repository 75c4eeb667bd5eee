/* The captures of this process. One lock for all: a graph is made by few calls, and by one thread. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"

typedef struct member {
    sg_queue *queue; /* NULL: a stream that was destroyed; what it did still has to be joined */
    sg_frontier frontier;
    struct member *next;
} member;

typedef struct capture {
    unsigned long long id;
    int mode;
    const void *thread;
    CUgraph graph;
    bool own_graph; /* made for this capture */
    sg_queue *origin;
    member *members; /* the origin, and the streams that joined through events */
    bool invalid;
    struct capture *next;
} capture;

/* What an event recorded in a capturing stream stands for. */
struct sg_captured {
    unsigned long long capture;
    sg_frontier frontier;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static capture *captures;
static _Atomic unsigned running; /* how many captures: without any, nobody takes the lock */
static unsigned long long next_id = 1;
static _Thread_local int mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- frontiers ---- */

static void clear(sg_frontier *frontier) {
    free(frontier->nodes);
    free(frontier->data);
    *frontier = (sg_frontier){0};
}

/* Add what is not in it yet. */
static CUresult extend(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
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

static CUresult replace(sg_frontier *frontier, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count) {
    sg_frontier fresh = {0};
    CUresult result = extend(&fresh, nodes, data, count);
    if (result != CUDA_SUCCESS) {
        clear(&fresh);
        return result;
    }
    clear(frontier);
    *frontier = fresh;
    return CUDA_SUCCESS;
}

/* ---- finding, under `lock` ---- */

static member *member_of(const capture *c, const sg_queue *queue) {
    member *m = c->members;
    while (m != NULL && m->queue != queue)
        m = m->next;
    return m;
}

static capture *capture_of(const sg_queue *queue, member **found) {
    for (capture *c = captures; c != NULL; c = c->next)
        if ((*found = member_of(c, queue)) != NULL)
            return c;
    return NULL;
}

static capture *capture_of_event(CUevent event) {
    for (capture *c = captures; event->captured != NULL && c != NULL; c = c->next)
        if (c->id == event->captured->capture)
            return c;
    return NULL;
}

static CUresult end_with(capture *c, CUresult error) {
    c->invalid = true;
    return error;
}

/* The legacy stream waits for all blocking streams: it cannot wait for one that captures. */
static CUresult implicit(CUcontext context, const sg_queue *queue) {
    CUresult result = CUDA_SUCCESS;
    if (queue != atomic_load(&context->legacy))
        return CUDA_SUCCESS;
    for (capture *c = captures; c != NULL; c = c->next)
        for (member *m = c->members; m != NULL; m = m->next)
            if (m->queue != NULL && sg_queue_context(m->queue) == context && !sg_queue_apart(m->queue))
                result = end_with(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return result;
}

static CUresult join(capture *c, sg_queue *queue, const sg_frontier *frontier) {
    member *m = calloc(1, sizeof *m);
    if (m == NULL || replace(&m->frontier, frontier->nodes, frontier->data, frontier->count) != CUDA_SUCCESS) {
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
    clear(&event->captured->frontier);
    free(event->captured);
    event->captured = NULL;
}

static CUresult record(const capture *c, const member *m, CUevent event) {
    struct sg_captured *captured = calloc(1, sizeof *captured);
    if (captured == NULL ||
        replace(&captured->frontier, m->frontier.nodes, m->frontier.data, m->frontier.count) != CUDA_SUCCESS) {
        free(captured);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    captured->capture = c->id;
    drop_event(event);
    event->captured = captured;
    return CUDA_SUCCESS;
}

static CUresult wait(capture *c, member *m, CUevent event) {
    capture *other = capture_of_event(event);
    if (other == NULL) /* work that no capture knows */
        return end_with(c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (other != c)
        return end_with(other, end_with(c, CUDA_ERROR_STREAM_CAPTURE_MERGE));
    const sg_frontier *f = &event->captured->frontier;
    return extend(&m->frontier, f->nodes, f->data, f->count);
}

static CUresult append(capture *c, member *m, CUcontext context, sg_operation *operation) {
    CUgraphNode node;
    const sg_frontier *f = &m->frontier;
    if (operation->kind == SG_OPERATION_ALLOCATE) {
        CUresult result = sg_graph_memory_make(context, operation->memory.size, &operation->memory.address);
        if (result != CUDA_SUCCESS)
            return result;
    }
    CUresult result = sg_graph_append_operation(c->graph, context, operation, f->nodes, f->data, f->count, &node);
    return result == CUDA_SUCCESS ? replace(&m->frontier, &node, NULL, 1) : result;
}

/* A graph that is launched into a capturing stream becomes a child graph. */
static CUresult append_graph(capture *c, member *m, const sg_graph_operation *graph) {
    CUgraphNode node;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {graph->plan->graph, 0}};
    CUresult result = sg_graph_add(&node, c->graph, m->frontier.nodes, m->frontier.data, m->frontier.count, &p);
    return result == CUDA_SUCCESS ? replace(&m->frontier, &node, NULL, 1) : result;
}

static CUresult take(capture *c, member *m, CUcontext context, sg_operation *operation) {
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (operation->awaited || (operation->kind == SG_OPERATION_HOST && operation->host.callback != NULL))
        return end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
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
    capture *c = capture_of_event(event);
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (queue == atomic_load(&context->legacy))
        return end_with(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return join(c, queue, &event->captured->frontier);
}

CUresult sg_capture_submit(CUcontext context, sg_queue *queue, sg_operation *operation, bool *taken) {
    member *m;
    CUresult result;
    *taken = false;
    if (atomic_load_explicit(&running, memory_order_acquire) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    capture *c = capture_of(queue, &m);
    *taken = true;
    if (c != NULL) {
        result = take(c, m, context, operation);
    } else if (operation->kind == SG_OPERATION_EVENT_WAIT && capture_of_event(operation->event) != NULL) {
        result = enter(context, queue, operation->event);
    } else {
        if (operation->kind == SG_OPERATION_EVENT_RECORD)
            drop_event(operation->event);
        result = implicit(context, queue);
        *taken = result != CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- what is forbidden ---- */

CUresult sg_capture_forbids_wait(sg_queue *queue) {
    member *m;
    if (atomic_load(&running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    capture *c = capture_of(queue, &m);
    CUresult result = c == NULL    ? implicit(sg_queue_context(queue), queue)
                      : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                   : end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult sg_capture_forbids_context_wait(CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    if (atomic_load(&running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (capture *c = captures; c != NULL; c = c->next)
        for (member *m = c->members; m != NULL; m = m->next)
            if (m->queue != NULL && sg_queue_context(m->queue) == context)
                result = end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult sg_capture_forbids_event(CUevent event) {
    if (atomic_load(&running) == 0)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    capture *c = capture_of_event(event);
    CUresult result = c != NULL ? end_with(c, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult sg_capture_forbids_unsafe(void) {
    CUresult result = CUDA_SUCCESS;
    if (atomic_load(&running) == 0 || mode_of_thread == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (capture *c = captures; c != NULL; c = c->next) {
        bool ours = c->thread == &mode_of_thread && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool everybodys = mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (ours || everybodys)
            result = end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    int before = mode_of_thread;
    mode_of_thread = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static void discard(capture *c) {
    c->graph->capturing = false;
    for (capture **at = &captures; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    for (member *m = c->members, *next; m != NULL; m = next) {
        next = m->next;
        clear(&m->frontier);
        free(m);
    }
    free(c);
    atomic_fetch_sub(&running, 1);
}

static CUresult begin(sg_queue *queue, int mode, CUgraph graph, bool own, const sg_frontier *frontier) {
    member *m;
    capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (capture){.mode = mode, .thread = &mode_of_thread, .graph = graph, .own_graph = own, .origin = queue};
    pthread_mutex_lock(&lock);
    CUresult result = capture_of(queue, &m) != NULL ? CUDA_ERROR_ILLEGAL_STATE : join(c, queue, frontier);
    if (result == CUDA_SUCCESS) {
        c->id = next_id++;
        graph->capturing = true;
        c->next = captures;
        captures = c;
        atomic_fetch_add(&running, 1);
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_SUCCESS)
        free(c);
    return result;
}

static CUresult capturable(CUstream stream, int mode, sg_queue **queue) {
    CUcontext context;
    CUresult result = sg_stream_queue(stream, &context, queue);
    if (result != CUDA_SUCCESS)
        return result;
    if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    return *queue == atomic_load(&context->legacy) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    sg_queue *queue;
    CUgraph graph = NULL;
    CUresult result = capturable(stream, mode, &queue);
    if (result == CUDA_SUCCESS)
        result = sg_graph_make(&graph);
    if (result == CUDA_SUCCESS)
        result = begin(queue, mode, graph, true, &(sg_frontier){0});
    if (result != CUDA_SUCCESS)
        sg_graph_discard(graph);
    return result;
}

SG_EXPORT CUresult cuStreamBeginCapture(CUstream stream) {
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static bool nodes_of(CUgraph graph, const CUgraphNode *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (nodes == NULL || !sg_is_node(nodes[i]) || nodes[i]->graph != graph)
            return false;
    return true;
}

SG_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *nodes,
                                               const CUgraphEdgeData *data, size_t count, int mode) {
    sg_queue *queue;
    CUresult result = capturable(stream, mode, &queue);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is_graph(graph) || !nodes_of(graph, nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    sg_frontier frontier = {(CUgraphNode *)(uintptr_t)nodes, (CUgraphEdgeData *)(uintptr_t)data, count};
    return begin(queue, mode, graph, false, &frontier);
}

/* Everything that the other streams did has to be before what the origin did last. */
static bool joined(const capture *c) {
    size_t depth = 0;
    CUgraphNode *stack = calloc(c->graph->count + 1, sizeof *stack);
    const sg_frontier *f = &member_of(c, c->origin)->frontier;
    if (stack == NULL)
        return false;
    for (CUgraphNode node = c->graph->first; node != NULL; node = node->next)
        node->placed = false;
    for (size_t i = 0; i < f->count; i++) {
        f->nodes[i]->placed = true;
        stack[depth++] = f->nodes[i];
    }
    while (depth > 0) {
        CUgraphNode node = stack[--depth];
        for (size_t i = 0; i < node->in_count; i++)
            if (!node->in[i].node->placed) {
                node->in[i].node->placed = true;
                stack[depth++] = node->in[i].node;
            }
    }
    free(stack);
    for (const member *m = c->members; m != NULL; m = m->next)
        for (size_t i = 0; i < m->frontier.count; i++)
            if (!m->frontier.nodes[i]->placed)
                return false;
    return true;
}

/* *doomed: to be discarded, not under the lock, since that may call functions of the program. */
static CUresult end(sg_queue *queue, CUgraph *graph, CUgraph *doomed) {
    member *m;
    capture *c = capture_of(queue, &m);
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != queue)
        return end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != &mode_of_thread)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = c->invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : !joined(c)  ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                    : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        *graph = c->graph;
    else if (c->own_graph)
        *doomed = c->graph;
    discard(c);
    return result;
}

SG_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
    CUcontext context;
    sg_queue *queue;
    CUgraph made = NULL, doomed = NULL;
    CUresult result = sg_stream_queue(stream, &context, &queue);
    if (result != CUDA_SUCCESS)
        return result;
    if (graph == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result = end(queue, &made, &doomed);
    pthread_mutex_unlock(&lock);
    sg_graph_discard(doomed);
    *graph = made;
    return result;
}

/* ---- questions ---- */

static CUresult look(CUstream stream, int *status, capture **c, member **m) {
    CUcontext context;
    sg_queue *queue;
    CUresult result = sg_stream_queue(stream, &context, &queue);
    *c = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    if (status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *c = capture_of(queue, m);
    result = *c == NULL ? implicit(context, queue) : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    *status = *c == NULL       ? CU_STREAM_CAPTURE_STATUS_NONE
              : (*c)->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return result;
}

SG_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    capture *c;
    member *m;
    return look(stream, status, &c, &m);
}

SG_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                             const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count) {
    static const CUgraphEdgeData plain;
    capture *c;
    member *m;
    CUresult result = look(stream, status, &c, &m);
    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    for (size_t i = 0; nodes != NULL && data == NULL && i < m->frontier.count; i++)
        if (memcmp(&m->frontier.data[i], &plain, sizeof plain) != 0)
            return CUDA_ERROR_LOSSY_QUERY;
    if (id != NULL)
        *id = c->id;
    if (graph != NULL)
        *graph = c->graph;
    if (nodes != NULL)
        *nodes = m->frontier.nodes;
    if (data != NULL)
        *data = m->frontier.data;
    if (count != NULL)
        *count = m->frontier.count;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                             const CUgraphNode **nodes, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, NULL, count);
}

SG_EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, int *status, uint64_t *id) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

SG_EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes,
                                                        const CUgraphEdgeData *data, size_t count, unsigned flags) {
    capture *c;
    member *m;
    int status;
    CUresult result = look(stream, &status, &c, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || !nodes_of(c->graph, nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES ? replace(&m->frontier, nodes, data, count)
                                                         : extend(&m->frontier, nodes, data, count);
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                                     unsigned flags) {
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}

/* ---- ends of streams, events and processes ---- */

void sg_capture_leave(sg_queue *queue) {
    member *m;
    CUgraph doomed = NULL;
    if (atomic_load(&running) == 0)
        return;
    pthread_mutex_lock(&lock);
    capture *c = capture_of(queue, &m);
    if (c != NULL && c->origin == queue) {
        doomed = c->own_graph ? c->graph : NULL;
        discard(c);
    } else if (c != NULL) {
        m->queue = NULL;
    }
    pthread_mutex_unlock(&lock);
    sg_graph_discard(doomed);
}

void sg_capture_drop_event(CUevent event) {
    pthread_mutex_lock(&lock);
    drop_event(event);
    pthread_mutex_unlock(&lock);
}

void sg_capture_forget(void) {
    pthread_mutex_init(&lock, NULL);
}

/* The calls that begin, end and ask about captures. */
#include <stdlib.h>
#include <string.h>

#include "capture_state.h"

static unsigned long long next_id = 1;

SG_EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (mode == NULL || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    int before = sg_capture_mode_of_thread;
    sg_capture_mode_of_thread = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin(sg_queue *queue, int mode, CUgraph graph, bool own, const sg_frontier *frontier) {
    sg_capture_member *m;
    sg_capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (sg_capture){.mode = mode, .graph = graph, .own_graph = own, .origin = queue};
    c->thread = &sg_capture_mode_of_thread;
    pthread_mutex_lock(&sg_capture_lock);
    CUresult result = sg_capture_of(queue, &m) != NULL ? CUDA_ERROR_ILLEGAL_STATE : sg_capture_join(c, queue, frontier);
    if (result == CUDA_SUCCESS) {
        c->id = next_id++;
        graph->capturing = true;
        c->next = sg_captures;
        sg_captures = c;
        atomic_fetch_add(&sg_captures_running, 1);
    }
    pthread_mutex_unlock(&sg_capture_lock);
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
static bool joined(const sg_capture *c) {
    size_t depth = 0;
    CUgraphNode *stack = calloc(c->graph->count + 1, sizeof *stack);
    const sg_frontier *f = &sg_capture_member_of(c, c->origin)->frontier;
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
    for (const sg_capture_member *m = c->members; m != NULL; m = m->next)
        for (size_t i = 0; i < m->frontier.count; i++)
            if (!m->frontier.nodes[i]->placed)
                return false;
    return true;
}

/* *doomed: to be discarded, not under the lock, since that may call functions of the program. */
static CUresult end(sg_queue *queue, CUgraph *graph, CUgraph *doomed) {
    sg_capture_member *m;
    sg_capture *c = sg_capture_of(queue, &m);
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != queue)
        return sg_capture_end_with(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != &sg_capture_mode_of_thread)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = c->invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : !joined(c)  ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                    : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        *graph = c->graph;
    else if (c->own_graph)
        *doomed = c->graph;
    sg_capture_discard(c);
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
    pthread_mutex_lock(&sg_capture_lock);
    result = end(queue, &made, &doomed);
    pthread_mutex_unlock(&sg_capture_lock);
    sg_graph_discard(doomed);
    *graph = made;
    return result;
}

/* ---- questions ---- */

static CUresult look(CUstream stream, int *status, sg_capture **c, sg_capture_member **m) {
    CUcontext context;
    sg_queue *queue;
    CUresult result = sg_stream_queue(stream, &context, &queue);
    *c = NULL;
    if (result != CUDA_SUCCESS)
        return result;
    if (status == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&sg_capture_lock);
    *c = sg_capture_of(queue, m);
    result = *c == NULL ? sg_capture_implicit(context, queue) : CUDA_SUCCESS;
    pthread_mutex_unlock(&sg_capture_lock);
    *status = *c == NULL       ? CU_STREAM_CAPTURE_STATUS_NONE
              : (*c)->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return result;
}

SG_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    sg_capture *c;
    sg_capture_member *m;
    return look(stream, status, &c, &m);
}

SG_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int *status, uint64_t *id, CUgraph *graph,
                                             const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count) {
    static const CUgraphEdgeData plain;
    sg_capture *c;
    sg_capture_member *m;
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
    sg_capture *c;
    sg_capture_member *m;
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
    pthread_mutex_lock(&sg_capture_lock);
    result = flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES ? sg_frontier_replace(&m->frontier, nodes, data, count)
                                                         : sg_frontier_extend(&m->frontier, nodes, data, count);
    pthread_mutex_unlock(&sg_capture_lock);
    return result;
}

SG_EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                                     unsigned flags) {
    return cuStreamUpdateCaptureDependencies_v2(stream, nodes, NULL, count, flags);
}

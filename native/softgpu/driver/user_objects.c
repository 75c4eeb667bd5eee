/* Objects of the program that live as long as a graph needs them: counted, and destroyed by a function of
 * the program when the last holder lets go. */
#include <stdlib.h>

#include "graphs.h"

struct CUuserObject_st {
    void *data;
    CUhostFn destroy;
    _Atomic unsigned references;
};

enum { NO_DESTRUCTOR_SYNC = 1, MOVE = 1 };

static CUresult known(CUuserObject object, unsigned count) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return count == 0 || count > INT32_MAX || !sg_object_is(object, SG_USER_OBJECT) ? CUDA_ERROR_INVALID_VALUE
                                                                                    : CUDA_SUCCESS;
}

void sg_user_object_hold(CUuserObject object, unsigned count) {
    atomic_fetch_add(&object->references, count);
}

/* The function is called as host functions are: it may not call the driver. */
void sg_user_object_release(CUuserObject object, unsigned count) {
    if (atomic_fetch_sub(&object->references, count) > count)
        return;
    sg_object_remove(object);
    sg_host_call(object->destroy, object->data);
    free(object);
}

SG_EXPORT CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (out == NULL || destroy == NULL || count == 0 || count > INT32_MAX || flags != NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject object = calloc(1, sizeof *object);
    if (object == NULL || !sg_object_add(object, SG_USER_OBJECT)) {
        free(object);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    object->data = data;
    object->destroy = destroy;
    atomic_store(&object->references, count);
    *out = object;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
    CUresult result = known(object, count);
    if (result == CUDA_SUCCESS)
        sg_user_object_hold(object, count);
    return result;
}

SG_EXPORT CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
    CUresult result = known(object, count);
    if (result == CUDA_SUCCESS && count > atomic_load(&object->references))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        sg_user_object_release(object, count);
    return result;
}

static sg_held *held_by(CUgraph graph, CUuserObject object) {
    sg_held *held = graph->held;
    while (held != NULL && held->object != object)
        held = held->next;
    return held;
}

SG_EXPORT CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
    CUresult result = known(object, count);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_is_graph(graph) || flags > MOVE || ((flags & MOVE) && count > atomic_load(&object->references)))
        return CUDA_ERROR_INVALID_VALUE;
    sg_held *held = held_by(graph, object);
    if (held == NULL) {
        if ((held = calloc(1, sizeof *held)) == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *held = (sg_held){object, 0, graph->held};
        graph->held = held;
    }
    held->count += count;
    if (!(flags & MOVE))
        sg_user_object_hold(object, count);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
    CUresult result = known(object, count);
    if (result != CUDA_SUCCESS)
        return result;
    sg_held *held = sg_is_graph(graph) ? held_by(graph, object) : NULL;
    if (held == NULL || held->count < count)
        return CUDA_ERROR_INVALID_VALUE;
    held->count -= count;
    for (sg_held **at = &graph->held; held->count == 0 && *at != NULL; at = &(*at)->next)
        if (*at == held) {
            *at = held->next;
            free(held);
            break;
        }
    sg_user_object_release(object, count);
    return CUDA_SUCCESS;
}

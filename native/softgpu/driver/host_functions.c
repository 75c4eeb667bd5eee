/* Host functions run on the thread of their stream: not on the thread that submits them, which may hold
 * a lock that the function needs. */
#include "operation.h"

static _Thread_local bool inside;

bool sg_in_host_function(void) {
    return inside;
}

CUresult sg_host_check(const sg_host_operation *host) {
    return host->function == NULL && host->callback == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

void sg_host_call(CUhostFn function, void *data) {
    bool before = inside;
    inside = true;
    function(data);
    inside = before;
}

CUresult sg_host_perform(CUcontext context, const sg_host_operation *host) {
    CUresult state = (CUresult)atomic_load(&context->sticky);
    inside = true;
    if (host->callback != NULL)
        host->callback(host->handle, state, host->data);
    else if (state == CUDA_SUCCESS)
        host->function(host->data); /* a host function does not run on a failed context */
    inside = false;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    return sg_submit(stream, &(sg_operation){SG_OPERATION_HOST, .host = {.function = function, .data = data}});
}

SG_EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags) {
    if (flags != 0)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    sg_host_operation host = {.callback = callback, .handle = stream, .data = data};
    return sg_submit(stream, &(sg_operation){SG_OPERATION_HOST, .host = host});
}

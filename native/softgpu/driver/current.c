/* Which context is current: a stack of each thread. */
#include "failing.h"
#include "thread_own.h"

enum { STACK_DEPTH = 64 };

struct stack {
    CUcontext contexts[STACK_DEPTH];
    int depth;
};
static _Thread_local void *stack_here;

/* NULL: this thread never had a context. */
static struct stack *stack_of_thread(void) {
    return stack_here;
}

static CUcontext top(void) {
    struct stack *stack = stack_of_thread();
    return stack != NULL && stack->depth > 0 ? stack->contexts[stack->depth - 1] : NULL;
}

CUcontext sg_current_or_null(void) {
    CUcontext context = top();
    return context != NULL && !atomic_load(&context->destroyed) ? context : NULL;
}

CUresult sg_current_alive(CUcontext *context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    CUcontext current = top();
    if (current == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&current->destroyed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = current;
    return CUDA_SUCCESS;
}

CUresult sg_current(CUcontext *context) {
    CUresult result = sg_current_alive(context);
    if (result == CUDA_SUCCESS)
        sg_failing_check(*context);
    return result == CUDA_SUCCESS ? (CUresult)atomic_load(&(*context)->sticky) : result;
}

CUresult sg_context_or_current(CUcontext given, CUcontext *context) {
    if (given == NULL)
        return sg_current_alive(context);
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(given, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&given->destroyed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *context = given;
    return CUDA_SUCCESS;
}

CUresult sg_current_push(CUcontext context) {
    struct stack *stack = sg_thread_own(&stack_here, sizeof *stack);
    if (stack == NULL || stack->depth == STACK_DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack->contexts[stack->depth++] = context;
    return CUDA_SUCCESS;
}

void sg_current_drop(CUcontext context) {
    if (context != NULL && top() == context)
        stack_of_thread()->depth--;
}

SG_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_object_is(context, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (atomic_load(&context->destroyed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return sg_current_push(context);
}
SG_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2);

SG_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    struct stack *stack = stack_of_thread();
    if (stack == NULL || stack->depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext popped = stack->contexts[--stack->depth];
    if (context != NULL)
        *context = popped;
    return CUDA_SUCCESS;
}
SG_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2);

SG_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (context != NULL && !sg_object_is(context, SG_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context != NULL && atomic_load(&context->destroyed))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    struct stack *stack = context != NULL ? sg_thread_own(&stack_here, sizeof *stack) : stack_of_thread();
    if (context == NULL) {
        if (stack != NULL && stack->depth > 0)
            stack->depth--;
        return CUDA_SUCCESS;
    }
    if (stack == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (stack->depth == 0)
        stack->depth = 1;
    stack->contexts[stack->depth - 1] = context;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *context = top();
    return CUDA_SUCCESS;
}

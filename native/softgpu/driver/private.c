/* The device's clock, for a governor and for tests: ../aliquot_softgpu.h. */
#include "../aliquot_softgpu.h"
#include "timeline.h"

SG_EXPORT uint64_t aliquotSoftgpuNow(void) {
    CUcontext context = sg_ready() == CUDA_SUCCESS ? sg_current_or_null() : NULL;
    return context != NULL ? sg_model_now(context->gpu->device) : sg_monotonic_ns();
}

SG_EXPORT int aliquotSoftgpuWaitUntil(uint64_t ns) {
    CUcontext context = sg_ready() == CUDA_SUCCESS ? sg_current_or_null() : NULL;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (int)sg_result_of_errno(sg_model_wait_until(context->gpu->device, ns));
}

SG_EXPORT int aliquotSoftgpuStepAside(void) {
    CUcontext context = sg_ready() == CUDA_SUCCESS ? sg_current_or_null() : NULL;
    if (context == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    sg_model_step_aside(context->gpu->device);
    return CUDA_SUCCESS;
}

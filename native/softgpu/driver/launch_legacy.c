/* How programs of CUDA 3 and before launch: parameters and block shape are set on the function, one
 * call each. */
#include <stdlib.h>
#include <string.h>

#include "launch.h"

enum { PARAMETER_LIMIT = 4096 };

static CUresult known(CUfunction function) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(function, SG_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SG_EXPORT CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
    CUresult result = known(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    function->block[0] = (unsigned)x;
    function->block[1] = (unsigned)y;
    function->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
    CUresult result = known(function);
    if (result == CUDA_SUCCESS)
        function->shared_size = bytes;
    return result;
}

SG_EXPORT CUresult cuParamSetSize(CUfunction function, unsigned bytes) {
    CUresult result = known(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (bytes > PARAMETER_LIMIT)
        return CUDA_ERROR_INVALID_VALUE;
    function->parameter_size = bytes;
    return CUDA_SUCCESS;
}

static CUresult set(CUfunction function, int offset, const void *value, size_t size) {
    CUresult result = known(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL || offset < 0 || offset > PARAMETER_LIMIT || size > PARAMETER_LIMIT - (size_t)offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (function->parameters == NULL && (function->parameters = calloc(1, PARAMETER_LIMIT)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(function->parameters + offset, value, size);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuParamSeti(CUfunction function, int offset, unsigned value) {
    return set(function, offset, &value, sizeof value);
}

SG_EXPORT CUresult cuParamSetf(CUfunction function, int offset, float value) {
    return set(function, offset, &value, sizeof value);
}

SG_EXPORT CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned size) {
    return set(function, offset, value, size);
}

SG_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
    CUresult result = known(function);
    if (result != CUDA_SUCCESS)
        return result;
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (function->info.parameter_bytes > PARAMETER_LIMIT)
        return CUDA_ERROR_NOT_SUPPORTED;
    sg_geometry geometry = {.grid = {(unsigned)width, (unsigned)height, 1},
                            .block = {function->block[0], function->block[1], function->block[2]},
                            .shared_bytes = function->shared_size};
    static const unsigned char none[PARAMETER_LIMIT];
    const unsigned char *parameters = function->parameters != NULL ? function->parameters : none;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_KERNEL, .kernel = {function, geometry, parameters}});
}

SG_EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
    return cuLaunchGridAsync(function, width, height, NULL);
}

SG_EXPORT CUresult cuLaunch(CUfunction function) {
    return cuLaunchGridAsync(function, 1, 1, NULL);
}

/* The module API. */
#include <stdlib.h>

#include "driver.h"

static bool options_given(unsigned count, const int *options, void **values) {
    return count == 0 || (options != NULL && values != NULL);
}

static CUresult load(CUmodule *module, const void *image, size_t size, const sg_jit_options *options) {
    CUcontext context;
    char log[256] = "", *text;
    size_t length;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL || image == NULL || !options_given(options->count, options->options, options->values))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_image_ptx(image, size, &text, &length, log, sizeof log);
    if (result != CUDA_SUCCESS) {
        sg_jit_log(options, true, log);
        return result;
    }
    result = sg_module_load(context, text, length, options, module);
    free(text);
    return result;
}

SG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                      void **values) {
    return load(module, image, 0, &(sg_jit_options){count, options, values});
}

SG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    return load(module, image, 0, &(sg_jit_options){0, NULL, NULL});
}
SG_ALIAS(cuModuleLoadFatBinary, cuModuleLoadData);

SG_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path) {
    CUcontext context;
    char *data = NULL;
    size_t size;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_file_read(path, &data, &size);
    if (result == CUDA_SUCCESS)
        result = load(module, data, size, &(sg_jit_options){0, NULL, NULL});
    free(data);
    return result;
}

static CUresult known(CUmodule module) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(module, SG_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

SG_EXPORT CUresult cuModuleUnload(CUmodule module) {
    CUresult result = known(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (module->library != NULL)
        return CUDA_ERROR_NOT_PERMITTED; /* it goes with its library */
    sg_module_unload(module);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetLoadingMode(int *mode) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = 1; /* eager: code that cannot run is refused when it is loaded */
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CUresult result = known(module);
    if (result != CUDA_SUCCESS)
        return result;
    return function == NULL || name == NULL ? CUDA_ERROR_INVALID_VALUE : sg_module_function(module, name, function);
}

SG_EXPORT CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
    CUresult result = known(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)module->function_count;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module) {
    CUresult result = known(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (functions == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && i < module->function_count; i++)
        functions[i] = &module->functions[i];
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name) {
    CUresult result = known(module);
    if (result != CUDA_SUCCESS)
        return result;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : sg_module_variable_named(module, name, address, bytes);
}

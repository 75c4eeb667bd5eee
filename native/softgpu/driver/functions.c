/* Functions (a kernel in one context) and kernels (of a library): what they are and can be set to. */
#include "driver.h"

CUresult sg_kernel_function(CUkernel kernel, CUcontext context, CUfunction *function) {
    CUmodule module;
    CUresult result = sg_library_module(kernel->library, context, &module);
    if (result == CUDA_SUCCESS)
        result = sg_module_function(module, kernel->info.name, function);
    if (result != CUDA_SUCCESS)
        return result;
    if (kernel->maximum_dynamic_shared >= 0)
        (*function)->maximum_dynamic_shared = kernel->maximum_dynamic_shared;
    return CUDA_SUCCESS;
}

CUresult sg_function_of(CUfunction given, CUfunction *function) {
    CUcontext context;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_object_is(given, SG_FUNCTION)) {
        *function = given;
        return CUDA_SUCCESS;
    }
    if (!sg_object_is(given, SG_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    result = sg_current(&context);
    return result == CUDA_SUCCESS ? sg_kernel_function((CUkernel)given, context, function) : result;
}

static CUresult known_kernel(CUkernel kernel) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(kernel, SG_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult attribute_of(const sg_kernel_info *info, int maximum_dynamic, int carveout, int attribute, int *value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)info->maximum_threads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)info->static_shared_bytes; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)info->constant_bytes; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)info->local_bytes; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)info->registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = info->target; break; /* "the virtual architecture version" */
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = info->target; break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = maximum_dynamic; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = carveout; break;
    default:
        if (attribute < CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET ||
            attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
            return CUDA_ERROR_INVALID_VALUE;
        *value = 0; /* clusters */
    }
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction given) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_of(&function->info, function->maximum_dynamic_shared, function->carveout, attribute, value);
}

SG_EXPORT CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = known_kernel(kernel);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    if (value == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    int maximum = kernel->maximum_dynamic_shared >= 0
                      ? kernel->maximum_dynamic_shared
                      : gpu->device->facts.shared_per_block_bytes - (int)kernel->info.static_shared_bytes;
    return attribute_of(&kernel->info, maximum, kernel->carveout, attribute, value);
}

static CUresult set_attribute(const sg_facts *facts, const sg_kernel_info *info, int attribute, int value,
                              int *maximum_dynamic, int *carveout) {
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || value > facts->shared_per_block_optin_bytes - (int)info->static_shared_bytes)
            return CUDA_ERROR_INVALID_VALUE;
        *maximum_dynamic = value;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        *carveout = value;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

SG_EXPORT CUresult cuFuncSetAttribute(CUfunction given, int attribute, int value) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    return set_attribute(&function->module->context->gpu->device->facts, &function->info, attribute, value,
                         &function->maximum_dynamic_shared, &function->carveout);
}

SG_EXPORT CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = known_kernel(kernel);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(device, &gpu);
    if (result != CUDA_SUCCESS)
        return result;
    return set_attribute(&gpu->device->facts, &kernel->info, attribute, value, &kernel->maximum_dynamic_shared,
                         &kernel->carveout);
}

SG_EXPORT CUresult cuFuncSetCacheConfig(CUfunction given, int config) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (config < 0 || config > 3)
        return CUDA_ERROR_INVALID_VALUE;
    function->cache_config = config;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
    sg_gpu *gpu;
    CUresult result = known_kernel(kernel);
    if (result == CUDA_SUCCESS)
        result = sg_gpu_get(device, &gpu);
    return result == CUDA_SUCCESS && (config < 0 || config > 3) ? CUDA_ERROR_INVALID_VALUE : result;
}

SG_EXPORT CUresult cuFuncSetSharedMemConfig(CUfunction given, int config) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    return result == CUDA_SUCCESS && (config < 0 || config > 2) ? CUDA_ERROR_INVALID_VALUE : result;
}

SG_EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction given) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *module = function->module;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncGetName(const char **name, CUfunction given) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->info.name;
    return CUDA_SUCCESS;
}

static CUresult parameter(const sg_kernel *kernel, size_t index, size_t *offset, size_t *size) {
    size_t its_offset, its_size;
    if (offset == NULL || !sg_kernel_parameter(kernel, index, &its_offset, &its_size))
        return CUDA_ERROR_INVALID_VALUE;
    *offset = its_offset;
    if (size != NULL)
        *size = its_size;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncGetParamInfo(CUfunction given, size_t index, size_t *offset, size_t *size) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    return result == CUDA_SUCCESS ? parameter(function->kernel, index, offset, size) : result;
}

SG_EXPORT CUresult cuFuncGetParamCount(CUfunction given, size_t *count) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = function->info.parameter_count;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncIsLoaded(int *state, CUfunction given) {
    CUfunction function;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (state == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *state = 1;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuFuncLoad(CUfunction given) {
    CUfunction function;
    return sg_function_of(given, &function);
}

SG_EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    CUcontext context;
    CUresult result = known_kernel(kernel);
    if (result == CUDA_SUCCESS)
        result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    return function == NULL ? CUDA_ERROR_INVALID_VALUE : sg_kernel_function(kernel, context, function);
}

SG_EXPORT CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
    CUresult result = known_kernel(kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (library == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *library = kernel->library;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelGetName(const char **name, CUkernel kernel) {
    CUresult result = known_kernel(kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *name = kernel->info.name;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
    CUresult result = known_kernel(kernel);
    return result == CUDA_SUCCESS ? parameter(kernel->kernel, index, offset, size) : result;
}

SG_EXPORT CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
    CUresult result = known_kernel(kernel);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = kernel->info.parameter_count;
    return CUDA_SUCCESS;
}

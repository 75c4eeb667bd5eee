/* Modules: PTX made runnable in one context, its variables in that context's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"

enum { LOG_BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the lists of modules */

CUresult sg_result_of(sg_status status) {
    switch (status) {
    case SG_OK: return CUDA_SUCCESS;
    case SG_BAD_PTX: return CUDA_ERROR_INVALID_PTX;
    case SG_UNSUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
    case SG_NO_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
    case SG_ILLEGAL_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SG_MISALIGNED: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case SG_STACK_OVERFLOW: return CUDA_ERROR_HARDWARE_STACK_ERROR;
    case SG_TRAP: return CUDA_ERROR_LAUNCH_FAILED;
    case SG_TIMEOUT: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case SG_INVALID_LAUNCH: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_ERROR_UNKNOWN;
}

CUresult sg_code_parse(const char *text, size_t length, const sg_jit_options *options, sg_module **code) {
    char log[LOG_BYTES] = "";
    CUresult known = sg_failing_ptx(text, length, options);
    if (known != CUDA_SUCCESS)
        return known;
    sg_status status = sg_module_create(text, length, log, sizeof log, code);
    if (status == SG_UNSUPPORTED)
        sg_log_unsupported("ptx", log);
    if (status != SG_OK)
        sg_jit_log(options, true, log);
    else
        sg_jit_log(options, false, "");
    return sg_result_of(status);
}

/* Code for a newer card does not load on an older one. The sentence is that of ptxas. */
CUresult sg_code_fits(const sg_module *code, const sg_gpu *gpu, const sg_jit_options *options) {
    const sg_facts *facts = &gpu->device->facts;
    if (sg_module_kernel_count(code) == 0)
        return CUDA_SUCCESS;
    if (sg_kernel_describe(sg_module_kernel(code, 0)).target <= facts->compute_major * 10 + facts->compute_minor)
        return CUDA_SUCCESS;
    sg_jit_log(options, true, "SM version specified by .target is higher than default SM version assumed");
    return CUDA_ERROR_INVALID_PTX;
}

/* Two passes: an initialiser may hold the address of a later variable. */
static CUresult place_variables(CUmodule module) {
    size_t count = sg_module_variable_count(module->code);
    sg_allocation made;
    CUresult result = CUDA_SUCCESS;
    if ((module->variables = calloc(count + 1, sizeof *module->variables)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        size_t size = sg_module_variable(module->code, i).size;
        result = sg_memory_allocate(module->context, size ? size : 1, SG_MEMORY_DEVICE, &made);
        if (result != CUDA_SUCCESS)
            return result;
        module->variables[i] = made.address;
        sg_module_bind(module->code, i, made.address);
    }
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        sg_variable variable = sg_module_variable(module->code, i);
        unsigned char *host;
        if (variable.initial == NULL || variable.size == 0)
            continue;
        result = sg_memory_access(module->context, module->variables[i], variable.size, true, &host);
        if (result == CUDA_SUCCESS)
            sg_module_image(module->code, i, host);
    }
    return result;
}

static CUresult make_functions(CUmodule module) {
    const sg_facts *facts = &module->context->gpu->device->facts;
    size_t count = sg_module_kernel_count(module->code);
    if ((module->functions = calloc(count + 1, sizeof *module->functions)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        CUfunction function = &module->functions[i];
        function->module = module;
        function->kernel = sg_module_kernel(module->code, i);
        function->info = sg_kernel_describe(function->kernel);
        function->maximum_dynamic_shared = facts->shared_per_block_bytes - (int)function->info.static_shared_bytes;
        function->carveout = -1;
        if (!sg_object_add(function, SG_FUNCTION))
            return CUDA_ERROR_OUT_OF_MEMORY;
        module->function_count++;
    }
    return CUDA_SUCCESS;
}

static void take_apart(CUmodule module) {
    sg_allocation was;
    for (size_t i = 0; i < module->function_count; i++) {
        sg_object_remove(&module->functions[i]);
        free(module->functions[i].parameters);
    }
    for (size_t i = 0; module->variables != NULL && i < sg_module_variable_count(module->code); i++)
        if (module->variables[i] != 0)
            (void)sg_memory_release(module->variables[i], 1u << SG_MEMORY_DEVICE, &was);
    free(module->functions);
    free(module->variables);
    if (module->charged)
        sg_own_code_gone(module->context, module->code);
    if (module->library == NULL || module->library->code != module->code)
        sg_module_destroy(module->code);
    free(module);
}

CUresult sg_module_of_code(CUcontext context, sg_module *code, CUlibrary library, CUmodule *made) {
    CUmodule module = calloc(1, sizeof *module);
    if (module == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->context = context;
    module->code = code;
    module->library = library;
    CUresult result = sg_own_code(context, code);
    module->charged = result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        result = place_variables(module);
    if (result == CUDA_SUCCESS)
        result = make_functions(module);
    if (result == CUDA_SUCCESS && !sg_object_add(module, SG_MODULE))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        take_apart(module);
        return result;
    }
    pthread_mutex_lock(&lock);
    module->next = context->modules;
    context->modules = module;
    if (library != NULL) {
        module->sibling = library->modules;
        library->modules = module;
    }
    pthread_mutex_unlock(&lock);
    *made = module;
    return CUDA_SUCCESS;
}

CUresult sg_module_load(CUcontext context, const char *text, size_t length, const sg_jit_options *options,
                        CUmodule *module) {
    sg_module *code;
    CUresult result = sg_code_parse(text, length, options, &code);
    if (result != CUDA_SUCCESS)
        return result;
    result = sg_code_fits(code, context->gpu, options);
    if (result != CUDA_SUCCESS)
        sg_module_destroy(code);
    else
        result = sg_module_of_code(context, code, NULL, module); /* takes `code`, also where it fails */
    return result;
}

CUmodule sg_module_of_library(CUcontext context, CUlibrary library) {
    CUmodule found = NULL;
    pthread_mutex_lock(&lock);
    for (CUmodule module = context->modules; module != NULL && found == NULL; module = module->next)
        if (module->library == library)
            found = module;
    pthread_mutex_unlock(&lock);
    return found;
}

CUmodule sg_module_any_of_library(CUlibrary library) {
    pthread_mutex_lock(&lock);
    CUmodule module = library->modules;
    pthread_mutex_unlock(&lock);
    return module;
}

void sg_module_unload(CUmodule module) {
    CUcontext context = module->context;
    sg_context_drain(context); /* a kernel of it may be waiting in a stream */
    sg_object_remove(module);
    pthread_mutex_lock(&lock);
    CUmodule *at = &context->modules;
    while (*at != module)
        at = &(*at)->next;
    *at = module->next;
    if (module->library != NULL) {
        at = &module->library->modules;
        while (*at != module)
            at = &(*at)->sibling;
        *at = module->sibling;
        if (module->library->borrower == module)
            module->library->borrower = NULL;
    }
    pthread_mutex_unlock(&lock);
    /* A kernel of it may still run in another thread. */
    pthread_mutex_lock(&context->gpu->device->launching);
    pthread_mutex_unlock(&context->gpu->device->launching);
    take_apart(module);
}

CUresult sg_module_function(CUmodule module, const char *name, CUfunction *function) {
    for (size_t i = 0; i < module->function_count; i++)
        if (strcmp(module->functions[i].info.name, name) == 0) {
            *function = &module->functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sg_module_variable_named(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes) {
    for (size_t i = 0; i < sg_module_variable_count(module->code); i++) {
        sg_variable variable = sg_module_variable(module->code, i);
        if (strcmp(variable.name, name) != 0)
            continue;
        if (address != NULL)
            *address = module->variables[i];
        if (bytes != NULL)
            *bytes = variable.size;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

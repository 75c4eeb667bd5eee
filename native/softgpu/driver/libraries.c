/* Libraries: code that is loaded once and becomes a module in each context that uses it. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* making modules of libraries */

static CUresult make_kernels(CUlibrary library) {
    size_t count = sg_module_kernel_count(library->code);
    if ((library->kernels = calloc(count + 1, sizeof *library->kernels)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        CUkernel kernel = &library->kernels[i];
        kernel->library = library;
        kernel->kernel = sg_module_kernel(library->code, i);
        kernel->info = sg_kernel_describe(kernel->kernel);
        kernel->maximum_dynamic_shared = kernel->carveout = kernel->cache_config = -1; /* as the function has it */
        if (!sg_object_add(kernel, SG_KERNEL))
            return CUDA_ERROR_OUT_OF_MEMORY;
        library->kernel_count++;
    }
    return CUDA_SUCCESS;
}

static void take_apart(CUlibrary library) {
    for (size_t i = 0; i < library->kernel_count; i++)
        sg_object_remove(&library->kernels[i]);
    if (library->code != NULL)
        sg_module_destroy(library->code);
    free(library->kernels);
    free(library->text);
    free(library);
}

/* The text is kept: a second context needs a module with variables of its own. */
static CUresult load(CUlibrary *made, const void *image, size_t size, const sg_jit_options *options) {
    char log[256] = "";
    CUlibrary library = calloc(1, sizeof *library);
    if (library == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_image_ptx(image, size, &library->text, &library->length, log, sizeof log);
    if (result != CUDA_SUCCESS)
        sg_jit_log(options, true, log);
    else
        result = sg_code_parse(library->text, library->length, options, &library->code);
    if (result == CUDA_SUCCESS)
        result = make_kernels(library);
    CUcontext context = sg_current_or_null();
    if (result == CUDA_SUCCESS && context != NULL)
        result = sg_code_fits(library->code, context->gpu, options);
    if (result == CUDA_SUCCESS && !sg_object_add(library, SG_LIBRARY))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        take_apart(library);
    else
        *made = library;
    return result;
}

SG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, int *options, void **values,
                                     unsigned count, int *library_options, void **library_values,
                                     unsigned library_count) {
    CUresult result = sg_ready();
    (void)library_options; /* where host functions lie; whether `image` stays: we keep a copy */
    (void)library_values;
    (void)library_count;
    if (result != CUDA_SUCCESS)
        return result;
    if (library == NULL || image == NULL || (count > 0 && (options == NULL || values == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    return load(library, image, 0, &(sg_jit_options){count, options, values});
}

SG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *options, void **values,
                                         unsigned count, int *library_options, void **library_values,
                                         unsigned library_count) {
    char *data = NULL;
    size_t size;
    CUresult result = sg_ready();
    (void)library_options;
    (void)library_values;
    (void)library_count;
    if (result != CUDA_SUCCESS)
        return result;
    if (library == NULL || path == NULL || (count > 0 && (options == NULL || values == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_file_read(path, &data, &size);
    if (result == CUDA_SUCCESS)
        result = load(library, data, size, &(sg_jit_options){count, options, values});
    free(data);
    return result;
}

static CUresult known(CUlibrary library) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(library, SG_LIBRARY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The first module borrows the library's own parse; later ones, in other contexts, parse again. */
static CUresult make_module(CUlibrary library, CUcontext context, CUmodule *module) {
    static const sg_jit_options none = {0, NULL, NULL};
    CUresult result = sg_code_fits(library->code, context->gpu, &none);
    if (result != CUDA_SUCCESS)
        return result;
    if (library->borrower == NULL) {
        result = sg_module_of_code(context, library->code, library, module);
        if (result == CUDA_SUCCESS)
            library->borrower = *module;
        return result;
    }
    sg_module *code;
    result = sg_code_parse(library->text, library->length, &none, &code);
    return result == CUDA_SUCCESS ? sg_module_of_code(context, code, library, module) : result;
}

CUresult sg_library_module(CUlibrary library, CUcontext context, CUmodule *module) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    *module = sg_module_of_library(context, library);
    if (*module == NULL)
        result = make_module(library, context, module);
    pthread_mutex_unlock(&lock);
    return result;
}

SG_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
    CUresult result = known(library);
    if (result != CUDA_SUCCESS)
        return result;
    sg_object_remove(library);
    for (CUmodule module; (module = sg_module_any_of_library(library)) != NULL;)
        sg_module_unload(module);
    take_apart(library);
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    CUresult result = known(library);
    if (result != CUDA_SUCCESS)
        return result;
    if (kernel == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < library->kernel_count; i++)
        if (strcmp(library->kernels[i].info.name, name) == 0) {
            *kernel = &library->kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

SG_EXPORT CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
    CUresult result = known(library);
    if (result != CUDA_SUCCESS)
        return result;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (unsigned)library->kernel_count;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
    CUresult result = known(library);
    if (result != CUDA_SUCCESS)
        return result;
    if (kernels == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && i < library->kernel_count; i++)
        kernels[i] = &library->kernels[i];
    return CUDA_SUCCESS;
}

static CUresult module_here(CUlibrary library, CUmodule *module) {
    CUcontext context;
    CUresult result = known(library);
    if (result == CUDA_SUCCESS)
        result = sg_current(&context);
    return result == CUDA_SUCCESS ? sg_library_module(library, context, module) : result;
}

SG_EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
    CUmodule found;
    CUresult result = module_here(library, &found);
    if (result != CUDA_SUCCESS)
        return result;
    if (module == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *module = found;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    CUmodule module;
    CUresult result = module_here(library, &module);
    if (result != CUDA_SUCCESS)
        return result;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : sg_module_variable_named(module, name, address, bytes);
}

/* PTX has no managed variables of its own (.attribute(.managed) is not supported). */
SG_EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
    CUresult result = known(library);
    (void)address;
    (void)bytes;
    if (result != CUDA_SUCCESS)
        return result;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

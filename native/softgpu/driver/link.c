/* cuLink*: several PTX texts become one. What comes out is PTX text again, complete in itself: programs
 * keep it on disk as "the cubin" (numba's cache does) and load it in another process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"

struct CUlinkState_st {
    sg_jit_options options; /* the caller's buffers: they must live until cuLinkDestroy */
    int *option_names;
    void **option_values;
    char **texts;
    size_t *lengths;
    size_t count;
    char *merged;
    unsigned register_limit; /* 0: none */
};

static CUresult keep_options(CUlinkState state, unsigned count, const int *options, void **values) {
    state->option_names = calloc(count + 1, sizeof *state->option_names);
    if (state->option_names == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count > 0)
        memcpy(state->option_names, options, count * sizeof *options);
    /* The values array stays the caller's: the sizes of the logs are written back into it. */
    state->option_values = values;
    state->options = (sg_jit_options){count, state->option_names, state->option_values};
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_MAX_REGISTERS)
            state->register_limit = (unsigned)(uintptr_t)values[i];
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *made) {
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (made == NULL || (count > 0 && (options == NULL || values == NULL)))
        return CUDA_ERROR_INVALID_VALUE;
    CUlinkState state = calloc(1, sizeof *state);
    if (state == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = keep_options(state, count, options, values);
    if (result == CUDA_SUCCESS && !sg_object_add(state, SG_LINK))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(state->option_names);
        free(state);
        return result;
    }
    *made = state;
    return CUDA_SUCCESS;
}
SG_ALIAS(cuLinkCreate, cuLinkCreate_v2);

static CUresult known(CUlinkState state) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    return sg_object_is(state, SG_LINK) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult append(CUlinkState state, char *text, size_t length) {
    char **texts = realloc(state->texts, (state->count + 1) * sizeof *texts);
    if (texts != NULL)
        state->texts = texts;
    size_t *lengths = realloc(state->lengths, (state->count + 1) * sizeof *lengths);
    if (lengths != NULL)
        state->lengths = lengths;
    if (texts == NULL || lengths == NULL) {
        free(text);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    state->texts[state->count] = text;
    state->lengths[state->count++] = length;
    return CUDA_SUCCESS;
}

/* The type is what the caller says; what counts is what the data is: our own linked blobs come back as
 * CUBIN and are PTX. */
static CUresult add(CUlinkState state, int type, const void *data, size_t size) {
    char log[256] = "", *text;
    size_t length;
    if (type < CU_JIT_INPUT_CUBIN || type > CU_JIT_INPUT_NVVM)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_is_device_runtime(data, size))
        return CUDA_SUCCESS;
    CUresult result = sg_image_ptx(data, size, &text, &length, log, sizeof log);
    if (result != CUDA_SUCCESS) {
        sg_jit_log(&state->options, true, log);
        return result;
    }
    result = sg_failing_ptx(text, length, &state->options);
    if (result != CUDA_SUCCESS) {
        free(text);
        return result;
    }
    return append(state, text, length);
}

SG_EXPORT CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
                                    unsigned count, int *options, void **values) {
    CUresult result = known(state);
    (void)name;
    (void)options;
    (void)values;
    (void)count;
    if (result != CUDA_SUCCESS)
        return result;
    return data == NULL || size == 0 ? CUDA_ERROR_INVALID_VALUE : add(state, type, data, size);
}
SG_ALIAS(cuLinkAddData, cuLinkAddData_v2);

SG_EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, int *options,
                                    void **values) {
    char *data = NULL;
    size_t size;
    CUresult result = known(state);
    (void)options;
    (void)values;
    (void)count;
    if (result != CUDA_SUCCESS)
        return result;
    if (path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = sg_file_read(path, &data, &size);
    if (result == CUDA_SUCCESS)
        result = size == 0 ? CUDA_ERROR_INVALID_IMAGE : add(state, type, data, size);
    free(data);
    return result;
}
SG_ALIAS(cuLinkAddFile, cuLinkAddFile_v2);

/* The text itself says it, since it may be loaded in another process. */
static CUresult append_limit(CUlinkState state, size_t *length) {
    char *whole;
    if (state->register_limit == 0)
        return CUDA_SUCCESS;
    int written =
        asprintf(&whole, "%s\n.pragma \"" SG_REGISTER_LIMIT_PRAGMA "=%u\";\n", state->merged, state->register_limit);
    if (written < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    free(state->merged);
    state->merged = whole;
    *length = (size_t)written;
    return CUDA_SUCCESS;
}

/* The merged text must also parse: an error belongs to the link, not to a later load. */
static CUresult merge(CUlinkState state, size_t *length) {
    char log[4096] = "";
    sg_status status = sg_link((const char *const *)state->texts, state->lengths, state->count, log, sizeof log,
                               &state->merged, length);
    if (status == SG_OK) {
        sg_module *code;
        CUresult result = append_limit(state, length);
        if (result == CUDA_SUCCESS)
            result = sg_code_parse(state->merged, *length, &state->options, &code);
        if (result == CUDA_SUCCESS)
            sg_module_destroy(code);
        return result;
    }
    state->merged = NULL;
    if (status == SG_UNSUPPORTED)
        sg_log_unsupported("ptx", log);
    sg_jit_log(&state->options, true, log);
    return sg_result_of(status);
}

/* The size includes a final NUL, so that a copy of the blob is a C string, as loading it wants. */
SG_EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
    size_t length;
    CUresult result = known(state);
    if (result != CUDA_SUCCESS)
        return result;
    if (cubin == NULL || state->count == 0 || state->merged != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = merge(state, &length);
    if (result != CUDA_SUCCESS)
        return result;
    char *terminated = realloc(state->merged, length + 1);
    if (terminated == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    terminated[length] = '\0';
    state->merged = terminated;
    *cubin = terminated;
    if (size != NULL)
        *size = length + 1;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuLinkDestroy(CUlinkState state) {
    CUresult result = known(state);
    if (result != CUDA_SUCCESS)
        return result;
    sg_object_remove(state);
    for (size_t i = 0; i < state->count; i++)
        free(state->texts[i]);
    free(state->texts);
    free(state->lengths);
    free(state->merged);
    free(state->option_names);
    free(state);
    return CUDA_SUCCESS;
}

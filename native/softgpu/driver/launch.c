/* Launches. The kernel runs inside the call, in its turn on the device. A fault is not the launch's
 * result but the context's: it shows at the next call, as on a card. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "fault_log.h"
#include "launch.h"
#include "timeline.h"

static bool shape_possible(const sg_geometry *g) {
    const unsigned grid_limit[3] = {INT32_MAX, 65535, 65535}, block_limit[3] = {1024, 1024, 64};
    for (int i = 0; i < 3; i++)
        if (g->grid[i] == 0 || g->grid[i] > grid_limit[i] || g->block[i] == 0 || g->block[i] > block_limit[i])
            return false;
    return (uint64_t)g->block[0] * g->block[1] * g->block[2] <= 1024;
}

static CUresult check_shape(CUfunction function, const sg_geometry *g) {
    const sg_facts *facts = &function->module->context->gpu->device->facts;
    const sg_kernel_info *info = &function->info;
    if (!shape_possible(g))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned threads = g->block[0] * g->block[1] * g->block[2];
    if (threads > info->maximum_threads) /* .maxntid; what a card answers, by numba-cuda's own tests */
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 3; i++)
        if (info->required_threads[i] != 0 && info->required_threads[i] != g->block[i])
            return CUDA_ERROR_INVALID_VALUE;
    if (g->shared_bytes > INT32_MAX || (int)g->shared_bytes > function->maximum_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t blocks = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2];
    if (g->cooperative &&
        blocks > (uint64_t)sg_resident_blocks(facts, info, threads, g->shared_bytes) * (unsigned)facts->multiprocessors)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

/* printf of a kernel: to the program's standard output, as a card's driver does it. */
static void print_to_stdout(void *context, const char *text, size_t length) {
    (void)context;
    fwrite(text, 1, length, stdout);
}

/* The XID that NVIDIA's catalogue has for a fault: 31 of the memory management unit, 13 of the multiprocessors, 8
 * where the card stopped answering. */
static unsigned xid_of(sg_status fault) {
    return fault == SG_ILLEGAL_ADDRESS ? 31 : fault == SG_TIMEOUT ? 8 : 13;
}

static void log_unsupported(const sg_result *result) {
    char text[sizeof result->message + 32];
    snprintf(text, sizeof text, "line %d: %s", result->line, result->message);
    sg_log_unsupported("ptx", text);
}

static CUresult conclude(CUcontext context, CUfunction function, const sg_result *result) {
    CUresult error = sg_result_of(result->status);
    switch (result->status) {
    case SG_OK: return CUDA_SUCCESS;
    case SG_ILLEGAL_ADDRESS:
    case SG_MISALIGNED:
    case SG_STACK_OVERFLOW:
    case SG_TRAP:
    case SG_TIMEOUT:
        sg_fault_log(context, function, result);
        sg_incident_report(context->gpu->device, SG_INCIDENT_XID, xid_of(result->status));
        sg_context_poison(context, error);
        return CUDA_SUCCESS;
    case SG_UNSUPPORTED: log_unsupported(result); return error;
    default: return error;
    }
}

CUresult sg_kernel_check(CUcontext context, const sg_kernel_operation *kernel) {
    if (!sg_object_is(kernel->function, SG_FUNCTION) || kernel->function->module->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    return check_shape(kernel->function, &kernel->shape);
}

static uint64_t cost_of(const sg_device *device, const sg_kernel_operation *kernel, const sg_result *result) {
    const sg_geometry *g = &kernel->shape;
    unsigned threads = g->block[0] * g->block[1] * g->block[2];
    uint64_t fit = sg_resident_blocks(&device->facts, &kernel->function->info, threads, g->shared_bytes);
    sg_kernel_cost work = {
        .instructions = result->instructions,
        .bytes = result->bytes,
        .blocks = (uint64_t)g->grid[0] * g->grid[1] * g->grid[2],
        .resident_blocks = fit * (uint64_t)device->facts.multiprocessors,
        .longest_block_ns = result->longest_block_ns,
        .all_blocks_ns = result->all_blocks_ns,
    };
    return sg_cost_of_kernel(&device->facts, &work);
}

static bool is_due(void *device) {
    return sg_turn_due(device);
}

static void give_way(void *device) {
    sg_turn_give_way(device);
}

static uint64_t held_ns(void *device) {
    return sg_turn_held_ns(device);
}

/* The model gives its own slices, after the kernel was computed. */
static sg_preemption preemption_of(sg_device *device) {
    return sg_model_used(device) ? (sg_preemption){0} : (sg_preemption){device, is_due, give_way, held_ns};
}

CUresult sg_kernel_perform(CUcontext context, const sg_kernel_operation *kernel) {
    const sg_geometry *g = &kernel->shape;
    sg_device *device = context->gpu->device;
    sg_memory memory;
    sg_memory_view(context, &memory);
    sg_launch launch = {
        .grid = {g->grid[0], g->grid[1], g->grid[2]},
        .block = {g->block[0], g->block[1], g->block[2]},
        .dynamic_shared_bytes = g->shared_bytes,
        .parameters = kernel->parameters,
        .memory = &memory,
        .cooperative = g->cooperative,
        .multiprocessors = (uint32_t)device->facts.multiprocessors,
        .clock_hz = (uint64_t)device->facts.clock_khz * 1000,
        .stack_bytes = context->limits[CU_LIMIT_STACK_SIZE] < UINT32_MAX ? (uint32_t)context->limits[CU_LIMIT_STACK_SIZE]
                                                                          : UINT32_MAX,
        .timeout_ns = (uint64_t)device->facts.kernel_timeout_ms * 1000000,
        .worker_threads = sg_worker_count(),
        .preemption = preemption_of(device),
        .modelled = sg_model_used(device),
        .model_ns = sg_model_now(device),
        .print = print_to_stdout,
        .heap_allocate = sg_heap_allocate,
        .heap_release = sg_heap_release,
        .heap_context = context,
    };
    sg_result result = {.status = SG_OK};
    CUresult taken = sg_own_local(context, kernel->function->info.local_bytes);
    if (taken != CUDA_SUCCESS)
        return taken;
    if (sg_turn_begin(device) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    sg_status status = sg_run(kernel->function->kernel, &launch, &result);
    sg_failing_linger(device);
    sg_turn_end(device, result.instructions);
    sg_timeline_cost(SG_ENGINE_COMPUTE, sg_failing_duration(device, cost_of(device, kernel, &result)), result.bytes);
    result.status = status;
    return conclude(context, kernel->function, &result);
}

/* The `extra` form: a list of tags and values that names one packed buffer. */
static CUresult buffer_of(void **extra, const unsigned char **buffer, size_t *size) {
    enum { END = 0, POINTER = 1, SIZE = 2 };
    *buffer = NULL;
    *size = 0;
    for (; *extra != (void *)END; extra += 2) {
        if (extra[1] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        if (*extra == (void *)POINTER)
            *buffer = extra[1];
        else if (*extra == (void *)SIZE)
            *size = *(size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return *buffer == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sg_kernel_pack(CUfunction function, void **pointers, void **extra, unsigned char *packed) {
    const unsigned char *buffer;
    size_t size;
    if (function->info.parameter_count == 0)
        return CUDA_SUCCESS;
    if ((pointers == NULL) == (extra == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (extra != NULL) {
        CUresult result = buffer_of(extra, &buffer, &size);
        if (result != CUDA_SUCCESS)
            return result;
        if (size < function->info.parameter_bytes)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(packed, buffer, function->info.parameter_bytes);
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < function->info.parameter_count; i++) {
        size_t offset, length;
        if (!sg_kernel_parameter(function->kernel, i, &offset, &length) || pointers[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(packed + offset, pointers[i], length);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction given, const sg_geometry *geometry, CUstream stream, void **pointers, void **extra) {
    CUfunction function;
    unsigned char small[4096] = {0}, *packed = small;
    CUresult result = sg_function_of(given, &function);
    if (result != CUDA_SUCCESS)
        return result;
    if (function->info.parameter_bytes > sizeof small && (packed = calloc(1, function->info.parameter_bytes)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = sg_kernel_pack(function, pointers, extra, packed);
    if (result == CUDA_SUCCESS)
        result = sg_submit(stream, &(sg_operation){SG_OPERATION_KERNEL, .kernel = {function, *geometry, packed}});
    if (packed != small)
        free(packed);
    return result;
}

SG_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                  CUstream stream, void **parameters, void **extra) {
    sg_geometry geometry = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, false};
    return launch(function, &geometry, stream, parameters, extra);
}

SG_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                             unsigned block_x, unsigned block_y, unsigned block_z,
                                             unsigned shared_bytes, CUstream stream, void **parameters) {
    sg_geometry geometry = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true};
    return launch(function, &geometry, stream, parameters, NULL);
}

CUresult sg_launch_attribute(const CUlaunchAttribute *attribute, sg_geometry *geometry) {
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        geometry->cooperative = attribute->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if ((uint64_t)attribute->value.clusterDim.x * attribute->value.clusterDim.y * attribute->value.clusterDim.z <= 1)
            return CUDA_SUCCESS;
        sg_log_unsupported("launch", "clusters of blocks");
        return CUDA_ERROR_NOT_SUPPORTED;
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return CUDA_SUCCESS;
    default: {
        char name[32];
        snprintf(name, sizeof name, "attribute %d", attribute->id);
        sg_log_unsupported("launch", name);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    }
}

SG_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    sg_geometry geometry = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                            {config->blockDimX, config->blockDimY, config->blockDimZ},
                            config->sharedMemBytes,
                            false};
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++)
        result = sg_launch_attribute(&config->attrs[i], &geometry);
    return result == CUDA_SUCCESS ? launch(function, &geometry, config->hStream, parameters, extra) : result;
}

/* What the driver takes of a device by itself for a context, beside `context_bytes`: code of its modules, local
 * memory of threads, the buffer of printf. Nothing of it is ever touched; it is taken so that a program finds as
 * much less memory as it would on a card, and NVML says so.
 *
 * What a context starts with (a stack of 1 KiB for every thread that the device holds, 1 MiB of printf) is part
 * of `context_bytes`. A device whose file does not say how much code and how many threads to count takes none.
 * The heap of malloc is not here: it is real memory, device_heap.c. */
#include <stdlib.h>

#include "driver.h"

enum { INSTRUCTION_BYTES = 16 }; /* of every card since Volta */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Under the lock: hold as many chunks as `bytes` need. What is held stays where there are not as many. */
static CUresult resize(CUcontext context, sg_own_part *part, uint64_t bytes) {
    sg_device *device = context->gpu->device;
    uint64_t wanted = bytes / SG_CHUNK_BYTES + (bytes % SG_CHUNK_BYTES != 0);
    if (wanted > device->chunk_count)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (wanted > part->count) {
        uint32_t *more = realloc(part->chunks, (size_t)wanted * sizeof *more);
        if (more == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        part->chunks = more;
        int error = sg_chunks_take(device, more + part->count, (size_t)wanted - part->count);
        if (error != 0)
            return sg_result_of_errno(error);
    } else if (wanted < part->count) {
        sg_chunks_give(device, part->chunks + wanted, part->count - (size_t)wanted);
    }
    part->count = (size_t)wanted;
    return CUDA_SUCCESS;
}

/* Code comes in pieces, and small modules share one. */
static CUresult count_code(CUcontext context, uint64_t bytes) {
    uint64_t piece = context->gpu->device->facts.module_bytes;
    if (piece == 0)
        return CUDA_SUCCESS;
    CUresult result = resize(context, &context->own.code, (bytes + piece - 1) / piece * piece);
    if (result == CUDA_SUCCESS)
        context->own.code_bytes = bytes;
    return result;
}

CUresult sg_own_code(CUcontext context, const sg_module *code) {
    pthread_mutex_lock(&lock);
    uint64_t more = (uint64_t)sg_module_instruction_count(code) * INSTRUCTION_BYTES;
    CUresult result = count_code(context, context->own.code_bytes + more);
    pthread_mutex_unlock(&lock);
    return result;
}

void sg_own_code_gone(CUcontext context, const sg_module *code) {
    pthread_mutex_lock(&lock);
    uint64_t less = (uint64_t)sg_module_instruction_count(code) * INSTRUCTION_BYTES;
    if (context->own.code_bytes >= less)
        (void)count_code(context, context->own.code_bytes - less);
    pthread_mutex_unlock(&lock);
}

/* For all threads that the device holds at once, as a card has it: any launch may use all of them. */
static CUresult set_local(CUcontext context, uint64_t each) {
    uint64_t threads = (uint64_t)context->gpu->device->facts.local_threads, bytes;
    uint64_t beyond = each > SG_CONTEXT_STACK_BYTES ? each - SG_CONTEXT_STACK_BYTES : 0;
    if (__builtin_mul_overflow(beyond, threads, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = resize(context, &context->own.local, bytes);
    if (result == CUDA_SUCCESS)
        atomic_store(&context->own.local_each, each);
    return result;
}

CUresult sg_own_local(CUcontext context, uint64_t each) {
    if (each <= SG_CONTEXT_STACK_BYTES || each <= atomic_load(&context->own.local_each))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    CUresult result = each > atomic_load(&context->own.local_each) ? set_local(context, each) : CUDA_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult sg_own_limit(CUcontext context, int limit, size_t value) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (limit == CU_LIMIT_STACK_SIZE)
        result = set_local(context, value);
    else if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && context->gpu->device->facts.local_threads != 0)
        result = resize(context, &context->own.print,
                        value > SG_CONTEXT_PRINT_BYTES ? value - SG_CONTEXT_PRINT_BYTES : 0);
    pthread_mutex_unlock(&lock);
    return result;
}

static void give_up(CUcontext context, sg_own_part *part) {
    (void)resize(context, part, 0);
    free(part->chunks);
    *part = (sg_own_part){.chunks = NULL};
}

void sg_own_release(CUcontext context) {
    pthread_mutex_lock(&lock);
    give_up(context, &context->own.code);
    give_up(context, &context->own.local);
    give_up(context, &context->own.print);
    context->own.code_bytes = 0;
    atomic_store(&context->own.local_each, 0);
    pthread_mutex_unlock(&lock);
}

/* Values in memory that a stream waits for or writes. Whoever writes what a stream waits for may be this
 * program, a kernel or another process, so the wait looks again and again, ever less often. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queues.h"

enum { LIMIT = 256, FIRST_PAUSE_NS = 20 * 1000, LONGEST_PAUSE_NS = 1000 * 1000 };

static bool is_wait(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static size_t size_of(const CUstreamBatchMemOpParams *p) {
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

static CUresult check_one(CUcontext context, const CUstreamBatchMemOpParams *p) {
    unsigned char *place;
    if (p->operation == CU_STREAM_MEM_OP_BARRIER)
        return p->memoryBarrier.flags > 1 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (p->operation == CU_STREAM_MEM_OP_ATOMIC_REDUCTION || p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES) {
        sg_log_unsupported("call", p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES
                                       ? "CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES"
                                       : "CU_STREAM_MEM_OP_ATOMIC_REDUCTION");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!is_wait(p) && !is_write(p))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_wait(p) && p->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED; /* the device says so: CAN_FLUSH_REMOTE_WRITES is 0 */
    if (p->waitValue.flags > (is_wait(p) ? 3u : 1u) || p->waitValue.address % size_of(p) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_memory_access(context, p->waitValue.address, size_of(p), false, &place);
}

CUresult sg_values_check(CUcontext context, const sg_values_operation *values) {
    if (values->count > LIMIT || (values->count > 0 && values->list == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < values->count; i++) {
        CUresult result = check_one(context, &values->list[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

static bool met(const CUstreamBatchMemOpParams *p, const unsigned char *place) {
    bool wide = size_of(p) == 8;
    uint64_t mask = wide ? UINT64_MAX : UINT32_MAX, wanted = wide ? p->waitValue.value64 : p->waitValue.value;
    uint64_t found = wide ? __atomic_load_n((const uint64_t *)(const void *)place, __ATOMIC_ACQUIRE)
                          : __atomic_load_n((const uint32_t *)(const void *)place, __ATOMIC_ACQUIRE);
    switch (p->waitValue.flags) {
    case CU_STREAM_WAIT_VALUE_EQ: return found == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (found & wanted) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return (~(found | wanted) & mask) != 0;
    default: return ((found - wanted) >> (wide ? 63 : 31) & 1) == 0; /* cyclic */
    }
}

/* NULL context: wherever it is. */
static CUresult look(CUcontext context, const CUstreamBatchMemOpParams *p, bool *is) {
    unsigned char *place;
    CUresult result = sg_memory_access(context, p->waitValue.address, size_of(p), false, &place);
    *is = result == CUDA_SUCCESS && met(p, place);
    return result;
}

bool sg_values_met(const sg_values_operation *values) {
    bool is = true;
    for (unsigned i = 0; i < values->count && is; i++)
        if (is_wait(&values->list[i]))
            (void)look(NULL, &values->list[i], &is);
    return is;
}

bool sg_values_wait(const sg_values_operation *values) {
    for (unsigned i = 0; i < values->count; i++)
        if (is_wait(&values->list[i]))
            return true;
    return false;
}

/* A context that closes or has failed does not wait: nothing behind the wait is done there. */
static CUresult wait(CUcontext context, const CUstreamBatchMemOpParams *p) {
    struct timespec pause = {0, FIRST_PAUSE_NS};
    for (bool is;;) {
        CUresult result = look(context, p, &is);
        if (result != CUDA_SUCCESS || is)
            return result;
        if (atomic_load(&context->closing) || atomic_load(&context->sticky) != CUDA_SUCCESS)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < LONGEST_PAUSE_NS)
            pause.tv_nsec *= 2;
    }
}

static CUresult write_value(CUcontext context, const CUstreamBatchMemOpParams *p) {
    unsigned char *place;
    CUresult result = sg_memory_access(context, p->writeValue.address, size_of(p), true, &place);
    if (result != CUDA_SUCCESS)
        return result;
    if (size_of(p) == 8)
        __atomic_store_n((uint64_t *)(void *)place, p->writeValue.value64, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)(void *)place, p->writeValue.value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult sg_values_perform(CUcontext context, const sg_values_operation *values) {
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < values->count && result == CUDA_SUCCESS; i++) {
        const CUstreamBatchMemOpParams *p = &values->list[i];
        if (is_wait(p))
            result = wait(context, p);
        else if (is_write(p))
            result = write_value(context, p);
        else
            atomic_thread_fence(memory_order_seq_cst);
    }
    return result;
}

SG_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams *list,
                                         unsigned flags) {
    if (flags != 0)
        return sg_ready() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return sg_submit(stream, &(sg_operation){SG_OPERATION_VALUES, .values = {list, count}});
}
SG_ALIAS(cuStreamBatchMemOp, cuStreamBatchMemOp_v2);

static CUresult single(CUstream stream, int operation, CUdeviceptr address, uint64_t value, unsigned flags) {
    CUstreamBatchMemOpParams one = {.waitValue = {operation, address, {.value64 = value}, flags, 0}};
    return cuStreamBatchMemOp_v2(stream, 1, &one, 0);
}

SG_EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
    return single(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}
SG_ALIAS(cuStreamWaitValue32, cuStreamWaitValue32_v2);

SG_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
    return single(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
SG_ALIAS(cuStreamWaitValue64, cuStreamWaitValue64_v2);

SG_EXPORT CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags) {
    return single(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}
SG_ALIAS(cuStreamWriteValue32, cuStreamWriteValue32_v2);

SG_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags) {
    return single(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}
SG_ALIAS(cuStreamWriteValue64, cuStreamWriteValue64_v2);

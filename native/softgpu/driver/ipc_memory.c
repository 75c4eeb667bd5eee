/* Device memory of another process, by a handle of 64 bytes.
 *
 * A handle names a share (device/shares.c) and holds nothing: memory whose last holder went before it was
 * opened is gone. Who has opened it holds it, so that an exporter may be killed. */
#include <string.h>

#include "memory.h"

#define HANDLE_MAGIC UINT64_C(0x314d454d43504951) /* "QIPCMEM1" */

typedef struct {
    uint64_t magic;
    unsigned char uuid[16];
    uint64_t share, secret;
    uint64_t offset, size; /* of the allocation, within the share */
} handle_content;

_Static_assert(sizeof(handle_content) <= sizeof(CUipcMemHandle), "the handle is too small for what it says");

bool sg_gpu_by_uuid(const unsigned char *uuid, sg_gpu **gpu) {
    for (int i = 0; i < sg_gpu_count(); i++)
        if (sg_gpu_get(i, gpu) == CUDA_SUCCESS && memcmp((*gpu)->device->facts.uuid_bytes, uuid, 16) == 0)
            return true;
    return false;
}

CUresult sg_shared_by_descriptor(int type, const char *otherwise) {
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_SUCCESS;
    sg_log_unsupported("call", otherwise);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sg_shared_describe(CUdeviceptr address, bool pooled, sg_shared_memory *described) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sg_space_lock();
    sg_allocation *found = sg_space_find(address);
    if (found != NULL && found->kind == SG_MEMORY_DEVICE && (found->pool != NULL) == pooled) {
        sg_physical *physical = found->view->physical;
        result = sg_physical_share(physical);
        *described = (sg_shared_memory){(unsigned)physical->share, physical->secret,
                                        found->address - found->view->address, found->size, found->pool, {0}};
        memcpy(described->uuid, physical->gpu->device->facts.uuid_bytes, sizeof described->uuid);
    }
    sg_space_unlock();
    return result;
}

SG_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    sg_shared_memory memory;
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (handle == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if ((result = sg_shared_describe(address, false, &memory)) != CUDA_SUCCESS)
        return result;
    handle_content content = {HANDLE_MAGIC, {0}, memory.share, memory.secret, memory.offset, memory.size};
    memcpy(content.uuid, memory.uuid, sizeof content.uuid);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &content, sizeof content);
    return CUDA_SUCCESS;
}

/* Of the allocations that this process has of the share already; NULL none. Under the space's lock. */
static sg_allocation *known_of(const sg_gpu *gpu, const sg_shared_memory *memory, sg_memory_kind kind) {
    for (sg_allocation *a = sg_space_next(0); a != NULL; a = sg_space_next(a->address + 1))
        if (a->kind == kind && a->gpu == gpu && a->view->physical->share == (int)memory->share &&
            a->view->physical->secret == memory->secret && a->address - a->view->address == memory->offset)
            return a;
    return NULL;
}

/* Under the space's lock; the process has entered the device, and the physical memory takes that over. */
static CUresult open_anew(CUcontext context, sg_gpu *gpu, const sg_shared_memory *memory, sg_allocation *made) {
    sg_physical *physical;
    sg_span *span;
    CUresult result = sg_physical_join(gpu, memory->share, &memory->secret, &physical);
    if (result != CUDA_SUCCESS) {
        sg_gpu_leave(gpu);
        return result;
    }
    physical->entered = true;
    if (memory->size == 0 || memory->size > physical->count << SG_CHUNK_SHIFT ||
        memory->offset > (physical->count << SG_CHUNK_SHIFT) - memory->size) {
        sg_physical_release(physical);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if ((result = sg_span_of(physical, false, &span)) != CUDA_SUCCESS)
        return result;
    sg_view *view = sg_span_view(span);
    *made = (sg_allocation){.address = view->address + memory->offset, .size = memory->size,
                            .host = view->host + memory->offset, .kind = SG_MEMORY_IMPORTED, .context = context,
                            .gpu = gpu, .view = view, .span = span, .pool = memory->pool, .opened = 1};
    if (sg_space_insert(made))
        return CUDA_SUCCESS;
    sg_span_destroy(span);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sg_shared_open(CUcontext context, const sg_shared_memory *memory, CUdeviceptr *address) {
    sg_gpu *gpu;
    sg_allocation made;
    if (!sg_gpu_by_uuid(memory->uuid, &gpu))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!sg_peers_possible(context->gpu, gpu))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    CUresult result = sg_gpu_enter(gpu);
    if (result != CUDA_SUCCESS)
        return result;
    sg_space_lock();
    sg_allocation *known = known_of(gpu, memory, SG_MEMORY_IMPORTED);
    if (known != NULL && known->context == context) {
        known->opened++;
        *address = known->address;
    } else if (known_of(gpu, memory, SG_MEMORY_DEVICE) != NULL) {
        result = CUDA_ERROR_INVALID_CONTEXT; /* who exported it cannot import it */
    } else {
        result = open_anew(context, gpu, memory, &made);
        *address = made.address;
        sg_space_unlock();
        return result;
    }
    sg_space_unlock();
    sg_gpu_leave(gpu);
    return result;
}

SG_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags) {
    enum { LAZY_ENABLE_PEER_ACCESS = 1 };
    handle_content content;
    CUdeviceptr opened;
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(&content, &handle, sizeof content);
    if (address == NULL || flags != LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (content.magic != HANDLE_MAGIC || content.share >= SG_MAXIMUM_SHARES)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_shared_memory memory = {(unsigned)content.share, content.secret, content.offset, content.size, NULL, {0}};
    memcpy(memory.uuid, content.uuid, sizeof memory.uuid);
    result = sg_shared_open(context, &memory, &opened);
    if (result == CUDA_SUCCESS)
        *address = opened;
    return result;
}

static bool closed_once(CUdeviceptr address) {
    sg_space_lock();
    sg_allocation *found = sg_space_find(address);
    bool more = found != NULL && found->kind == SG_MEMORY_IMPORTED && found->pool == NULL &&
                found->address == address && found->opened > 1;
    if (more)
        found->opened--;
    sg_space_unlock();
    return more;
}

SG_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    sg_allocation found;
    CUcontext context;
    CUresult result = sg_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sg_memory_lookup(address, &found) || found.kind != SG_MEMORY_IMPORTED || found.pool != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return closed_once(address) ? CUDA_SUCCESS : sg_memory_free(address, 1u << SG_MEMORY_IMPORTED, &found);
}

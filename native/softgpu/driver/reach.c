/* Who may reach which memory: copies, memsets and kernels. */
#include "memory.h"

/* Device memory belongs to its context, and to those that enabled access to that context as a peer; mapped
 * memory to the devices that cuMemSetAccess named; managed and host memory to all. */
bool sg_memory_reachable(const sg_allocation *allocation, CUcontext context, bool write) {
    switch (allocation->kind) {
    case SG_MEMORY_DEVICE:
    case SG_MEMORY_HEAP:
    case SG_MEMORY_IMPORTED: return allocation->context == context || sg_peer_enabled(context, allocation->context);
    case SG_MEMORY_MAPPED:
        return ((write ? allocation->writable : allocation->readable) >> context->gpu->ordinal & 1) != 0;
    default: return true;
    }
}

/* A copy that is not bound to a context: some device must have access. */
static bool reachable_at_all(const sg_allocation *allocation, bool write) {
    return allocation->kind != SG_MEMORY_MAPPED || (write ? allocation->writable : allocation->readable) != 0;
}

static CUresult reach(CUcontext context, const sg_allocation *found, uint64_t address, size_t size, bool write,
                      bool commit) {
    if (context != NULL ? !sg_memory_reachable(found, context, write) : !reachable_at_all(found, write))
        return CUDA_ERROR_INVALID_VALUE;
    if (commit && size > 0 && found->view != NULL && !sg_view_commit(found->view, address, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

static CUresult reach_all(CUcontext context, uint64_t address, size_t size, bool write, bool commit,
                          unsigned char **host) {
    const void *within = NULL;
    *host = NULL;
    do {
        sg_allocation found;
        if (!sg_memory_lookup(address, &found))
            return CUDA_ERROR_INVALID_VALUE;
        size_t rest = found.size - (address - found.address), piece = size < rest ? size : rest;
        if ((piece < size && found.within == NULL) || (*host != NULL && found.within != within))
            return CUDA_ERROR_INVALID_VALUE; /* only mappings side by side in one reservation are one piece */
        CUresult result = reach(context, &found, address, piece, write, commit);
        if (result != CUDA_SUCCESS)
            return result;
        if (*host == NULL)
            *host = found.host + (address - found.address);
        within = found.within;
        address += piece;
        size -= piece;
    } while (size > 0);
    return CUDA_SUCCESS;
}

CUresult sg_memory_access(CUcontext context, uint64_t address, size_t size, bool write, unsigned char **host) {
    return reach_all(context, address, size, write, write, host);
}

CUresult sg_memory_check(CUcontext context, uint64_t address, size_t size, bool write) {
    unsigned char *host;
    return reach_all(context, address, size, write, false, &host);
}

static bool find_for_kernel(void *context, uint64_t address, sg_range *range) {
    sg_allocation found;
    if (!sg_memory_lookup(address, &found) || !sg_memory_reachable(&found, context, false))
        return false;
    *range = (sg_range){found.address, found.address + found.size, found.host};
    return true;
}

/* Also where a kernel is told that it may read a chunk, but not write to it. */
static sg_status commit_for_kernel(void *context, uint64_t address) {
    sg_allocation found;
    if (!sg_memory_lookup(address, &found) || !sg_memory_reachable(&found, context, true))
        return SG_ILLEGAL_ADDRESS;
    return found.view == NULL || sg_view_commit(found.view, address, 1) ? SG_OK : SG_NO_MEMORY;
}

void sg_memory_view(CUcontext context, sg_memory *view) {
    *view = (sg_memory){context, find_for_kernel, commit_for_kernel, sg_texture_for_kernel};
}

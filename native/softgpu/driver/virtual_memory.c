/* Virtual memory: reserved addresses, and physical memory mapped into them. */
#include <stdlib.h>

#include "memory.h"

typedef struct reservation {
    sg_place place;
    size_t size;
    struct reservation *next;
} reservation;

static reservation *reservations; /* under the space's lock */

static bool is_granular(uint64_t value) {
    return value % SG_CHUNK_BYTES == 0;
}

static reservation *reservation_of(uint64_t address, size_t size) {
    for (reservation *r = reservations; r != NULL; r = r->next)
        if (address >= r->place.address && address - r->place.address < r->size &&
            size <= r->size - (address - r->place.address))
            return r;
    return NULL;
}

/* Is any of [address, address + size) mapped? */
static bool any_mapped(uint64_t address, size_t size) {
    const sg_allocation *next = sg_space_next(address);
    return sg_space_find(address) != NULL || (next != NULL && next->address - address < size);
}

/* Mappings, and nothing else, from `address` on, that end at `size`: cuMemUnmap and cuMemSetAccess take whole
 * ones only. */
static bool wholly_mapped(uint64_t address, size_t size) {
    while (size > 0) {
        const sg_allocation *found = sg_space_find(address);
        if (found == NULL || found->kind != SG_MEMORY_MAPPED || found->address != address || found->size > size)
            return false;
        address += found->size;
        size -= found->size;
    }
    return true;
}

SG_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
                                       unsigned long long flags) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (address == NULL || size == 0 || !is_granular(size) || (alignment & (alignment - 1)) != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    reservation *made = calloc(1, sizeof *made);
    if (made == NULL || !sg_place_reserve(&made->place, size, alignment, wanted, false)) {
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->size = size;
    sg_space_lock();
    made->next = reservations;
    reservations = made;
    sg_space_unlock();
    *address = made->place.address;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    result = CUDA_ERROR_INVALID_VALUE;
    sg_space_lock();
    for (reservation **at = &reservations; *at != NULL; at = &(*at)->next) {
        reservation *found = *at;
        if (found->place.address != address || found->size != size || any_mapped(address, size))
            continue;
        *at = found->next;
        sg_place_free(&found->place);
        free(found);
        result = CUDA_SUCCESS;
        break;
    }
    sg_space_unlock();
    return result;
}

/* Under the space's lock. */
static CUresult map(const reservation *within, uint64_t address, size_t size, sg_physical *physical) {
    sg_view *view = calloc(1, sizeof *view);
    if (view == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *view = (sg_view){.physical = physical, .address = address, .count = size >> SG_CHUNK_SHIFT,
                      .host = within->place.host + (address - within->place.address)};
    sg_allocation made = {.address = address, .size = size, .host = view->host, .kind = SG_MEMORY_MAPPED,
                          .gpu = physical->gpu, .view = view, .within = within};
    if (!sg_view_open(view) || !sg_space_insert(&made)) {
        sg_view_close(view);
        free(view);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->references++;
    return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                            unsigned long long flags) {
    sg_physical *physical = (sg_physical *)(uintptr_t)handle;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    /* cuda.h: the offset "currently must be zero". */
    if (size == 0 || !is_granular(size) || !is_granular(address) || offset != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    sg_space_lock();
    const reservation *within = reservation_of(address, size);
    if (within == NULL || !sg_object_is(physical, SG_PHYSICAL) || physical->handles == 0 ||
        size >> SG_CHUNK_SHIFT > physical->count || any_mapped(address, size))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = map(within, address, size, physical);
    sg_space_unlock();
    return result;
}

static void unmap(sg_allocation *found) {
    sg_view *view = found->view;
    sg_physical *physical = view->physical;
    sg_space_remove(found);
    sg_view_close(view);
    free(view);
    if (physical->references == 1)
        sg_object_remove(physical);
    sg_physical_release(physical);
}

/* Work that waits in streams may be for the memory: as on a card, it is done first. */
static void drain_contexts(void) {
    CUcontext current = sg_current_or_null();
    sg_gpu *gpu;
    if (current != NULL)
        sg_context_drain(current);
    for (int i = 0; i < sg_gpu_count(); i++)
        if (sg_gpu_get(i, &gpu) == CUDA_SUCCESS && gpu->primary != NULL && gpu->primary != current &&
            !atomic_load(&gpu->primary->destroyed))
            sg_context_drain(gpu->primary);
}

SG_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (size == 0 || !is_granular(size) || !is_granular(address))
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    drain_contexts();
    sg_kernels_stop();
    sg_space_lock();
    if (wholly_mapped(address, size)) {
        for (uint64_t at = address; at < address + size;) {
            sg_allocation *found = sg_space_find(at);
            at += found->size;
            unmap(found);
        }
    } else {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    sg_space_unlock();
    sg_kernels_go_on();
    return result;
}

static CUresult check_access(const CUmemAccessDesc *wanted) {
    sg_gpu *gpu;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        sg_log_unsupported("call", "access to virtual memory from the host");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_gpu_get(wanted->location.id, &gpu);
}

static void allow(sg_allocation *mapping, const CUmemAccessDesc *wanted) {
    uint64_t bit = UINT64_C(1) << wanted->location.id;
    mapping->readable = wanted->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE ? mapping->readable | bit : mapping->readable & ~bit;
    mapping->writable =
        wanted->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? mapping->writable | bit : mapping->writable & ~bit;
}

static bool peers_suffice(uint64_t address, size_t size, const CUmemAccessDesc *wanted) {
    for (uint64_t at = address; at < address + size;) {
        const sg_allocation *found = sg_space_find(at);
        sg_gpu *gpu;
        if (sg_gpu_get(wanted->location.id, &gpu) != CUDA_SUCCESS || !sg_peers_possible(found->gpu, gpu))
            return false;
        at += found->size;
    }
    return true;
}

SG_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *wanted, size_t count) {
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (size == 0 || wanted == NULL || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = check_access(&wanted[i]);
    if (result != CUDA_SUCCESS)
        return result;
    sg_kernels_stop();
    sg_space_lock();
    if (!wholly_mapped(address, size))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!peers_suffice(address, size, &wanted[i]))
            result = CUDA_ERROR_INVALID_DEVICE;
    for (uint64_t at = address; result == CUDA_SUCCESS && at < address + size;) {
        sg_allocation *found = sg_space_find(at);
        for (size_t i = 0; i < count; i++)
            allow(found, &wanted[i]);
        at += found->size;
    }
    sg_space_unlock();
    sg_kernels_go_on();
    return result;
}

SG_EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address) {
    sg_allocation found;
    sg_gpu *gpu;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (flags == NULL || location == NULL || !sg_memory_lookup(address, &found) || found.kind != SG_MEMORY_MAPPED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_SUCCESS;
    if ((result = sg_gpu_get(location->id, &gpu)) != CUDA_SUCCESS)
        return result;
    if (found.writable >> location->id & 1)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    else if (found.readable >> location->id & 1)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    return CUDA_SUCCESS;
}

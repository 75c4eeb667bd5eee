/* Everything that is allocated, by address. One sorted array for all devices: addresses are unique in
 * the process. */
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "fault_log.h"

/* Up to this size, allocations share chunks; above, each has its own. */
#define SMALL_BYTES ((size_t)1 << 20)

typedef struct shared_span {
    CUcontext context;
    sg_span *span;
    struct shared_span *next;
} shared_span;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sg_allocation *allocations;
static size_t count, capacity;
static shared_span *shared_spans;
static unsigned long long next_id = 1;

/* The first index whose allocation begins behind `address`. */
static size_t upper_bound(uint64_t address) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (allocations[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static sg_allocation *holding(uint64_t address) {
    size_t i = upper_bound(address);
    if (i == 0 || address - allocations[i - 1].address >= allocations[i - 1].size)
        return NULL;
    return &allocations[i - 1];
}

static bool make_room(void) {
    if (count < capacity)
        return true;
    size_t wanted = capacity ? capacity * 2 : 64;
    sg_allocation *grown = realloc(allocations, wanted * sizeof *grown);
    if (grown == NULL)
        return false;
    allocations = grown;
    capacity = wanted;
    return true;
}

/* After make_room. */
static void insert(sg_allocation *allocation) {
    size_t at = upper_bound(allocation->address);
    allocation->id = next_id++;
    memmove(&allocations[at + 1], &allocations[at], (count - at) * sizeof *allocations);
    allocations[at] = *allocation;
    count++;
}

static CUresult carve(CUcontext context, sg_allocation *made) {
    for (shared_span *shared = shared_spans; shared != NULL; shared = shared->next)
        if (shared->context == context && sg_span_carve(shared->span, made->size, &made->address)) {
            made->span = shared->span;
            return CUDA_SUCCESS;
        }
    shared_span *fresh = malloc(sizeof *fresh);
    if (fresh == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = sg_span_make(context->gpu, SG_CHUNK_BYTES, false, &fresh->span);
    if (result != CUDA_SUCCESS) {
        free(fresh);
        return result;
    }
    (void)sg_span_carve(fresh->span, made->size, &made->address);
    made->span = fresh->span;
    fresh->context = context;
    fresh->next = shared_spans;
    shared_spans = fresh;
    return CUDA_SUCCESS;
}

static CUresult place(CUcontext context, sg_allocation *made) {
    if (made->kind == SG_MEMORY_DEVICE && made->size <= SMALL_BYTES)
        return carve(context, made);
    CUresult result = sg_span_make(context->gpu, made->size, made->kind == SG_MEMORY_MANAGED, &made->span);
    if (result == CUDA_SUCCESS)
        made->address = sg_span_view(made->span)->address;
    return result;
}

CUresult sg_memory_allocate(CUcontext context, size_t size, sg_memory_kind kind, sg_allocation *made) {
    *made = (sg_allocation){.size = size, .kind = kind, .context = context, .gpu = context->gpu};
    pthread_rwlock_wrlock(&lock);
    CUresult result = make_room() ? place(context, made) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        made->view = sg_span_view(made->span);
        made->host = made->view->host + (made->address - made->view->address);
        insert(made);
    }
    pthread_rwlock_unlock(&lock);
    return result;
}

CUresult sg_memory_adopt(CUcontext context, void *host, size_t size, sg_memory_kind kind, unsigned flags) {
    sg_allocation made = {.address = (uintptr_t)host, .size = size, .host = host, .kind = kind,
                          .context = context, .gpu = context->gpu, .flags = flags};
    CUresult result = CUDA_SUCCESS;
    pthread_rwlock_wrlock(&lock);
    size_t next = upper_bound(made.address);
    if (holding(made.address) != NULL || (next < count && allocations[next].address - made.address < size))
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else if (!make_room())
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        insert(&made);
    pthread_rwlock_unlock(&lock);
    return result;
}

static void drop_shared(sg_span *span) {
    for (shared_span **at = &shared_spans; *at != NULL; at = &(*at)->next)
        if ((*at)->span == span) {
            shared_span *gone = *at;
            *at = gone->next;
            free(gone);
            sg_span_destroy(span);
            return;
        }
}

/* Under the write lock. Host memory is the caller's to free. */
static void remove_at(size_t index) {
    sg_allocation gone = allocations[index];
    sg_space_remove(&allocations[index]);
    if (gone.span == NULL)
        return;
    if (gone.kind == SG_MEMORY_DEVICE && gone.size <= SMALL_BYTES) {
        if (sg_span_uncarve(gone.span, gone.address, gone.size))
            drop_shared(gone.span);
    } else {
        sg_span_destroy(gone.span);
    }
}

/* An address says which context it is of, so freeing needs none to be current, as on a card (numba
 * frees after it has left its context). */
CUresult sg_memory_free(uint64_t address, unsigned kinds, sg_allocation *was) {
    sg_allocation found;
    CUresult result = sg_ready();
    if (result != CUDA_SUCCESS)
        return result;
    if (sg_in_host_function())
        return CUDA_ERROR_NOT_PERMITTED;
    if (!sg_memory_lookup(address, &found) || found.address != address || !(kinds >> found.kind & 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&found.context->sticky) != CUDA_SUCCESS)
        return (CUresult)atomic_load(&found.context->sticky);
    result = sg_capture_forbids_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    sg_context_drain(found.context);
    return sg_memory_release(address, kinds, was);
}

/* Freeing waits until no kernel of this process runs that could reach the memory, as cuMemFree does on a
 * card; the engine could otherwise be reading what we unmap. */
CUresult sg_memory_release(uint64_t address, unsigned kinds, sg_allocation *was) {
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sg_kernels_stop();
    pthread_rwlock_wrlock(&lock);
    sg_allocation *allocation = holding(address);
    if (allocation != NULL && allocation->address == address && (kinds >> allocation->kind & 1)) {
        *was = *allocation;
        remove_at((size_t)(allocation - allocations));
        result = CUDA_SUCCESS;
    }
    pthread_rwlock_unlock(&lock);
    sg_kernels_go_on();
    return result;
}

/* Host memory that the program registered, or got from cuMemAllocHost, outlives the context. */
void sg_memory_release_all(CUcontext context) {
    sg_kernels_stop();
    pthread_rwlock_wrlock(&lock);
    for (size_t i = count; i-- > 0;)
        if (allocations[i].context == context && allocations[i].span != NULL)
            remove_at(i);
    pthread_rwlock_unlock(&lock);
    sg_kernels_go_on();
}

void sg_kernels_stop(void) {
    sg_gpu *gpu;
    for (int i = 0; i < sg_gpu_count(); i++)
        if (sg_gpu_get(i, &gpu) == CUDA_SUCCESS)
            pthread_mutex_lock(&gpu->device->launching);
}

void sg_kernels_go_on(void) {
    sg_gpu *gpu;
    for (int i = sg_gpu_count(); i-- > 0;)
        if (sg_gpu_get(i, &gpu) == CUDA_SUCCESS)
            pthread_mutex_unlock(&gpu->device->launching);
}

void sg_space_lock(void) {
    pthread_rwlock_wrlock(&lock);
}

void sg_space_unlock(void) {
    pthread_rwlock_unlock(&lock);
}

sg_allocation *sg_space_find(uint64_t address) {
    return holding(address);
}

sg_allocation *sg_space_next(uint64_t address) {
    size_t i = address == 0 ? 0 : upper_bound(address - 1);
    return i < count ? &allocations[i] : NULL;
}

sg_allocation *sg_space_before(uint64_t address) {
    size_t i = upper_bound(address);
    return i == 0 ? NULL : &allocations[i - 1];
}

bool sg_space_insert(sg_allocation *allocation) {
    if (!make_room())
        return false;
    insert(allocation);
    return true;
}

void sg_space_remove(sg_allocation *allocation) {
    size_t index = (size_t)(allocation - allocations);
    sg_fault_note_freed(allocation);
    count--;
    memmove(&allocations[index], &allocations[index + 1], (count - index) * sizeof *allocations);
}

bool sg_memory_lookup(uint64_t address, sg_allocation *found) {
    pthread_rwlock_rdlock(&lock);
    sg_allocation *allocation = holding(address);
    if (allocation != NULL)
        *found = *allocation;
    pthread_rwlock_unlock(&lock);
    return allocation != NULL;
}

void sg_memory_tag(uint64_t address, CUmemoryPool pool) {
    pthread_rwlock_wrlock(&lock);
    sg_allocation *allocation = holding(address);
    if (allocation != NULL)
        allocation->pool = pool;
    pthread_rwlock_unlock(&lock);
}

size_t sg_memory_pool_bytes(CUmemoryPool pool) {
    size_t bytes = 0;
    pthread_rwlock_rdlock(&lock);
    for (size_t i = 0; i < count; i++)
        if (allocations[i].pool == pool)
            bytes += allocations[i].size;
    pthread_rwlock_unlock(&lock);
    return bytes;
}

void sg_memory_forget(void) {
    pthread_rwlock_init(&lock, NULL);
}

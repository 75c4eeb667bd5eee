/* Physical memory: chunks of a device, and the views through which this process sees them.
 *
 * A view is where a run of the chunks lies in this process. It reads as zeros until a chunk is first written;
 * only then the chunk gets blocks on disk, and its place in the arena is mapped, in every view of it at
 * once: another view would otherwise go on reading zeros. Mapping the sparse file at once would be simpler,
 * but a store into a hole raises SIGBUS on a full disk, and on tmpfs even a load allocates.
 *
 * Memory that other processes hold as well (a share) is backed and mapped whole: nobody tells us when they
 * first write. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

sg_physical *sg_physical_blank(sg_gpu *gpu, size_t count) {
    sg_physical *physical = calloc(1, sizeof *physical);
    if (physical == NULL)
        return NULL;
    physical->gpu = gpu;
    physical->count = count;
    physical->share = SG_NO_SHARE;
    physical->references = 1;
    physical->committed = calloc(count + 1, sizeof *physical->committed);
    pthread_mutex_init(&physical->committing, NULL);
    return physical;
}

static void discard(sg_physical *physical) {
    pthread_mutex_destroy(&physical->committing);
    free(physical->chunks);
    free((void *)physical->committed);
    free(physical);
}

CUresult sg_physical_make(sg_gpu *gpu, size_t bytes, sg_physical **made) {
    if (bytes > sg_capacity_bytes(&gpu->device->facts))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_physical *physical = sg_physical_blank(gpu, (bytes + SG_CHUNK_BYTES - 1) >> SG_CHUNK_SHIFT);
    if (physical == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    physical->chunks = calloc(physical->count + 1, sizeof *physical->chunks);
    if (physical->chunks == NULL || physical->committed == NULL) {
        discard(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int error = sg_chunks_take(gpu->device, physical->chunks, physical->count);
    if (error != 0) {
        discard(physical);
        return sg_result_of_errno(error);
    }
    *made = physical;
    return CUDA_SUCCESS;
}

CUresult sg_physical_join(sg_gpu *gpu, unsigned share, const uint64_t *secret, sg_physical **made) {
    uint32_t *chunks;
    size_t count;
    int error = sg_share_join(gpu->device, share, secret, &chunks, &count);
    if (error == -ENOENT)
        return CUDA_ERROR_INVALID_HANDLE;
    if (error != 0)
        return sg_result_of_errno(error);
    sg_physical *physical = sg_physical_blank(gpu, count);
    if (physical == NULL || physical->committed == NULL) {
        if (physical != NULL)
            discard(physical);
        free(chunks);
        sg_share_leave(gpu->device, share);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->chunks = chunks;
    physical->share = (int)share;
    physical->secret = secret != NULL ? *secret : 0;
    for (size_t i = 0; i < count; i++)
        atomic_store(&physical->committed[i], 1);
    *made = physical;
    return CUDA_SUCCESS;
}

CUresult sg_physical_share(sg_physical *physical) {
    unsigned share;
    if (physical->share != SG_NO_SHARE)
        return CUDA_SUCCESS;
    for (size_t i = 0; i < physical->count; i++)
        if (!sg_physical_commit(physical, i))
            return CUDA_ERROR_OUT_OF_MEMORY;
    int error = sg_share_make(physical->gpu->device, physical->chunks, physical->count, &share, &physical->secret);
    if (error == 0)
        physical->share = (int)share;
    return sg_result_of_errno(error);
}

void sg_physical_release(sg_physical *physical) {
    if (--physical->references > 0)
        return;
    sg_gpu *gpu = physical->gpu;
    if (physical->share != SG_NO_SHARE)
        sg_share_leave(gpu->device, (unsigned)physical->share);
    else
        sg_chunks_give(gpu->device, physical->chunks, physical->count);
    bool entered = physical->entered;
    discard(physical);
    if (entered)
        sg_gpu_leave(gpu);
}

/* Chunk `index` at its place in `view`; `run` chunks that follow each other in the arena as well. */
static bool show(const sg_view *view, size_t index, size_t run) {
    const sg_physical *physical = view->physical;
    unsigned char *place = view->host + ((index - view->first) << SG_CHUNK_SHIFT);
    return mmap(place, run << SG_CHUNK_SHIFT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                sg_arena_file(physical->gpu->device), (off_t)physical->chunks[index] << SG_CHUNK_SHIFT) == (void *)place;
}

static bool within(const sg_view *view, size_t index) {
    return index >= view->first && index - view->first < view->count;
}

/* Under `committing`. */
static bool commit(sg_physical *physical, size_t index) {
    if (sg_chunk_commit(physical->gpu->device, physical->chunks[index]) != 0)
        return false;
    for (sg_view *view = physical->views; view != NULL; view = view->next)
        if (within(view, index) && !show(view, index, 1))
            return false;
    atomic_store_explicit(&physical->committed[index], 1, memory_order_release);
    return true;
}

bool sg_physical_commit(sg_physical *physical, size_t index) {
    if (atomic_load_explicit(&physical->committed[index], memory_order_acquire))
        return true;
    pthread_mutex_lock(&physical->committing);
    bool done = atomic_load(&physical->committed[index]) || commit(physical, index);
    pthread_mutex_unlock(&physical->committing);
    return done;
}

/* Chunks already committed are mapped in runs: an imported gigabyte is a few calls. */
static bool show_committed(const sg_view *view) {
    const sg_physical *physical = view->physical;
    size_t end = view->first + view->count;
    for (size_t i = view->first; i < end;) {
        size_t run = 0;
        while (i + run < end && atomic_load(&physical->committed[i + run]) &&
               physical->chunks[i + run] == physical->chunks[i] + run)
            run++;
        if (run > 0 && !show(view, i, run))
            return false;
        i += run > 0 ? run : 1;
    }
    return true;
}

bool sg_view_open(sg_view *view) {
    sg_physical *physical = view->physical;
    if (mprotect(view->host, view->count << SG_CHUNK_SHIFT, PROT_READ) != 0)
        return false;
    pthread_mutex_lock(&physical->committing);
    bool shown = show_committed(view);
    if (shown) {
        view->next = physical->views;
        physical->views = view;
    }
    pthread_mutex_unlock(&physical->committing);
    return shown;
}

/* The place becomes reserved and inaccessible again. */
void sg_view_close(sg_view *view) {
    sg_physical *physical = view->physical;
    pthread_mutex_lock(&physical->committing);
    for (sg_view **at = &physical->views; *at != NULL; at = &(*at)->next)
        if (*at == view) {
            *at = view->next;
            break;
        }
    pthread_mutex_unlock(&physical->committing);
    (void)mmap(view->host, view->count << SG_CHUNK_SHIFT, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool sg_view_commit(sg_view *view, uint64_t address, size_t size) {
    size_t first = view->first + ((size_t)(address - view->address) >> SG_CHUNK_SHIFT);
    size_t last = view->first + ((size_t)(address + size - 1 - view->address) >> SG_CHUNK_SHIFT);
    for (size_t i = first; i <= last; i++)
        if (!sg_physical_commit(view->physical, i))
            return false;
    return true;
}

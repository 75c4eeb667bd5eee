/* Spans: chunks of a device mapped into this process in one piece.
 *
 * Device addresses are reserved in the process's own address space and never accessible there, so
 * that a device pointer is unlike every host pointer (cuPointerGetAttribute, cuMemcpy need that) and
 * a host that follows one crashes as it would on a card. The bytes lie in a second mapping behind:
 *
 *     address ....... address + bytes ....... address + 2 x bytes
 *     | no access    | the bytes, for the engine and for copies  |
 *
 * The second half reads as zeros until a chunk is first written. Only then the chunk gets blocks on
 * disk and its place in the arena is mapped. Mapping the sparse file at once would be simpler, but a
 * store into a hole raises SIGBUS on a full disk, and on tmpfs even a load allocates.
 *
 * Managed memory is one mapping that host and device see at the same address; it is committed when it
 * is allocated because the host writes to it without asking. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

enum { UNIT_SHIFT = 9, UNITS = 1 << (SG_CHUNK_SHIFT - UNIT_SHIFT), WORDS = UNITS / 64 };

struct sg_span {
    sg_gpu *gpu;
    unsigned char *map;
    size_t map_bytes;
    uint64_t address;
    unsigned char *host;
    size_t bytes;
    uint32_t *chunks;
    _Atomic uint8_t *committed;
    pthread_mutex_t committing;
    uint64_t units[WORDS]; /* 512-byte units in use, in a span that small allocations share */
    size_t units_used;
};

uint64_t sg_span_address(const sg_span *span) {
    return span->address;
}

unsigned char *sg_span_host(const sg_span *span) {
    return span->host;
}

static size_t chunk_count(const sg_span *span) {
    return span->bytes >> SG_CHUNK_SHIFT;
}

static bool reserve(sg_span *span, bool managed) {
    span->map_bytes = (managed ? 1 : 2) * span->bytes + SG_CHUNK_BYTES;
    void *map = mmap(NULL, span->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        return false;
    span->map = map;
    uintptr_t aligned = ((uintptr_t)map + SG_CHUNK_BYTES - 1) & ~(uintptr_t)(SG_CHUNK_BYTES - 1);
    span->address = aligned;
    span->host = (unsigned char *)aligned + (managed ? 0 : span->bytes);
    return mprotect(span->host, span->bytes, PROT_READ) == 0;
}

static sg_span *blank(sg_gpu *gpu, size_t bytes) {
    sg_span *span = calloc(1, sizeof *span);
    if (span == NULL)
        return NULL;
    span->gpu = gpu;
    span->bytes = (bytes + SG_CHUNK_BYTES - 1) & ~(size_t)(SG_CHUNK_BYTES - 1);
    span->chunks = calloc(chunk_count(span), sizeof *span->chunks);
    span->committed = calloc(chunk_count(span), sizeof *span->committed);
    pthread_mutex_init(&span->committing, NULL);
    return span;
}

static void discard(sg_span *span) {
    if (span->map != NULL)
        munmap(span->map, span->map_bytes);
    pthread_mutex_destroy(&span->committing);
    free(span->chunks);
    free((void *)span->committed);
    free(span);
}

CUresult sg_span_make(sg_gpu *gpu, size_t bytes, bool managed, sg_span **made) {
    if (bytes > sg_capacity_bytes(&gpu->device->facts))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_span *span = blank(gpu, bytes);
    if (span == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (span->chunks == NULL || span->committed == NULL || !reserve(span, managed)) {
        discard(span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int error = sg_chunks_take(gpu->device, span->chunks, chunk_count(span));
    if (error != 0) {
        discard(span);
        return sg_result_of_errno(error);
    }
    if (managed && !sg_span_commit(span, span->address, span->bytes)) {
        sg_span_destroy(span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = span;
    return CUDA_SUCCESS;
}

void sg_span_destroy(sg_span *span) {
    munmap(span->map, span->map_bytes);
    span->map = NULL;
    sg_chunks_give(span->gpu->device, span->chunks, chunk_count(span));
    discard(span);
}

static bool commit_chunk(sg_span *span, size_t index) {
    sg_device *device = span->gpu->device;
    uint32_t chunk = span->chunks[index];
    bool done = true;
    pthread_mutex_lock(&span->committing);
    if (!atomic_load(&span->committed[index])) {
        unsigned char *place = span->host + (index << SG_CHUNK_SHIFT);
        done = sg_chunk_commit(device, chunk) == 0 &&
               mmap(place, SG_CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, sg_arena_file(device),
                    (off_t)chunk << SG_CHUNK_SHIFT) == (void *)place;
        if (done)
            atomic_store(&span->committed[index], 1);
    }
    pthread_mutex_unlock(&span->committing);
    return done;
}

bool sg_span_commit(sg_span *span, uint64_t address, size_t size) {
    size_t first = (size_t)(address - span->address) >> SG_CHUNK_SHIFT;
    size_t last = (size_t)(address + size - 1 - span->address) >> SG_CHUNK_SHIFT;
    for (size_t i = first; i <= last; i++)
        if (!atomic_load_explicit(&span->committed[i], memory_order_acquire) && !commit_chunk(span, i))
            return false;
    return true;
}

static size_t units_of(size_t size) {
    return (size + (1u << UNIT_SHIFT) - 1) >> UNIT_SHIFT;
}

static void mark(sg_span *span, size_t first, size_t count, bool used) {
    for (size_t i = first; i < first + count; i++)
        if (used)
            span->units[i / 64] |= UINT64_C(1) << i % 64;
        else
            span->units[i / 64] &= ~(UINT64_C(1) << i % 64);
    span->units_used = used ? span->units_used + count : span->units_used - count;
}

bool sg_span_carve(sg_span *span, size_t size, uint64_t *address) {
    size_t wanted = units_of(size), run = 0;
    if (span->units_used + wanted > UNITS)
        return false;
    for (size_t i = 0; i < UNITS; i++) {
        if (span->units[i / 64] == UINT64_MAX) {
            run = 0;
            i |= 63;
            continue;
        }
        run = span->units[i / 64] >> i % 64 & 1 ? 0 : run + 1;
        if (run == wanted) {
            mark(span, i + 1 - wanted, wanted, true);
            *address = span->address + ((uint64_t)(i + 1 - wanted) << UNIT_SHIFT);
            return true;
        }
    }
    return false;
}

bool sg_span_uncarve(sg_span *span, uint64_t address, size_t size) {
    mark(span, (size_t)(address - span->address) >> UNIT_SHIFT, units_of(size), false);
    return span->units_used == 0;
}

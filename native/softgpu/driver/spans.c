/* Spans: physical memory of a device in a place of this process's address space.
 *
 * Device addresses are reserved in the process's own address space and never accessible there, so
 * that a device pointer is unlike every host pointer (cuPointerGetAttribute, cuMemcpy need that) and
 * a host that follows one crashes as it would on a card. The bytes lie in a second mapping behind:
 *
 *     address ....... address + bytes ....... address + 2 x bytes
 *     | no access    | the bytes, for the engine and for copies  |
 *
 * Managed memory is one mapping that host and device see at the same address; it is committed when it
 * is allocated because the host writes to it without asking. */
#include <stdlib.h>
#include <sys/mman.h>

#include "memory.h"

enum { UNIT_SHIFT = 9, UNITS = 1 << (SG_CHUNK_SHIFT - UNIT_SHIFT), WORDS = UNITS / 64 };

struct sg_span {
    sg_place place;
    sg_view view;
    uint64_t units[WORDS]; /* 512-byte units in use, in a span that small allocations share */
    size_t units_used;
};

bool sg_place_reserve(sg_place *place, size_t bytes, size_t alignment, uint64_t wanted, bool managed) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (alignment < SG_CHUNK_BYTES)
        alignment = SG_CHUNK_BYTES;
    if (__builtin_mul_overflow(managed ? 1 : 2, bytes, &place->map_bytes) ||
        __builtin_add_overflow(place->map_bytes, alignment, &place->map_bytes))
        return false;
    void *map = mmap((void *)(uintptr_t)wanted, place->map_bytes, PROT_NONE, flags, -1, 0);
    if (map == MAP_FAILED)
        return false;
    place->map = map;
    place->address = ((uintptr_t)map + alignment - 1) & ~(uint64_t)(alignment - 1);
    place->host = (unsigned char *)(uintptr_t)place->address + (managed ? 0 : bytes);
    return true;
}

void sg_place_free(sg_place *place) {
    munmap(place->map, place->map_bytes);
}

CUresult sg_span_of(sg_physical *physical, bool managed, sg_span **made) {
    sg_span *span = calloc(1, sizeof *span);
    if (span == NULL || !sg_place_reserve(&span->place, physical->count << SG_CHUNK_SHIFT, 0, 0, managed)) {
        free(span);
        sg_physical_release(physical);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    span->view = (sg_view){physical, span->place.address, span->place.host, 0, physical->count, NULL};
    if (!sg_view_open(&span->view) ||
        (managed && !sg_view_commit(&span->view, span->view.address, physical->count << SG_CHUNK_SHIFT))) {
        sg_span_destroy(span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = span;
    return CUDA_SUCCESS;
}

CUresult sg_span_make(sg_gpu *gpu, size_t bytes, bool managed, sg_span **made) {
    sg_physical *physical;
    CUresult result = sg_physical_make(gpu, bytes, &physical);
    return result == CUDA_SUCCESS ? sg_span_of(physical, managed, made) : result;
}

void sg_span_destroy(sg_span *span) {
    sg_view_close(&span->view);
    sg_place_free(&span->place);
    sg_physical_release(span->view.physical);
    free(span);
}

sg_view *sg_span_view(sg_span *span) {
    return &span->view;
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
            *address = span->view.address + ((uint64_t)(i + 1 - wanted) << UNIT_SHIFT);
            return true;
        }
    }
    return false;
}

bool sg_span_uncarve(sg_span *span, uint64_t address, size_t size) {
    mark(span, (size_t)(address - span->view.address) >> UNIT_SHIFT, units_of(size), false);
    return span->units_used == 0;
}

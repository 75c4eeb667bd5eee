/* What the files about memory share among themselves. See spans.c and physical.c. */
#ifndef SG_MEMORY_H
#define SG_MEMORY_H

#include <errno.h>

#include "driver.h"

enum { SG_NO_SHARE = -1 };

typedef struct sg_physical sg_physical;

/* Chunks [first, first + count) of `physical`, at `host` in this process and at `address` for kernels. */
struct sg_view {
    sg_physical *physical;
    uint64_t address;
    unsigned char *host;
    size_t first, count;
    struct sg_view *next; /* of the same physical memory */
};

struct sg_physical {
    sg_gpu *gpu;
    uint32_t *chunks; /* ascending */
    size_t count;
    _Atomic uint8_t *committed;
    pthread_mutex_t committing; /* of `committed` and `views` */
    sg_view *views;
    unsigned references; /* under the space's lock: views, and handles of the program's */
    int share;           /* SG_NO_SHARE: ours alone */
    uint64_t secret;
    /* of memory made by cuMemCreate, or imported like it */
    unsigned handles; /* of `references`, those that the program holds */
    unsigned handle_types;
    bool entered; /* it keeps this process a process of the device: no context may do so */
};

/* All under the space's lock, but for sg_physical_commit and sg_view_commit. */
CUresult sg_physical_make(sg_gpu *gpu, size_t bytes, sg_physical **made);
/* Memory of another process; INVALID_HANDLE where there is no such share any more. */
CUresult sg_physical_join(sg_gpu *gpu, unsigned share, const uint64_t *secret, sg_physical **made);
/* From now on other processes may hold it as well. */
CUresult sg_physical_share(sg_physical *physical);
void sg_physical_release(sg_physical *physical);
bool sg_physical_commit(sg_physical *physical, size_t index);
/* The place at view->host is reserved already. */
bool sg_view_open(sg_view *view);
void sg_view_close(sg_view *view);
bool sg_view_commit(sg_view *view, uint64_t address, size_t size);

/* ---- spans.c: places in the address space ---- */

/* Device addresses and, behind, where their bytes are: see spans.c. */
typedef struct {
    unsigned char *map;
    size_t map_bytes;
    uint64_t address;
    unsigned char *host;
} sg_place;

/* `bytes` a multiple of the chunk. `wanted`: an address to try first, or 0. */
bool sg_place_reserve(sg_place *place, size_t bytes, size_t alignment, uint64_t wanted, bool managed);
void sg_place_free(sg_place *place);

/* A physical of its own, or `physical`, whose reference it takes. */
CUresult sg_span_make(sg_gpu *gpu, size_t bytes, bool managed, sg_span **span);
CUresult sg_span_of(sg_physical *physical, bool managed, sg_span **span);
void sg_span_destroy(sg_span *span);
sg_view *sg_span_view(sg_span *span);
/* Small allocations share a span of one chunk. */
bool sg_span_carve(sg_span *span, size_t size, uint64_t *address);
/* True when nothing is left in it. */
bool sg_span_uncarve(sg_span *span, uint64_t address, size_t size);

/* ---- address_space.c: the table of allocations, and its lock ---- */

/* Nothing is found, put in or taken out between these. */
void sg_space_lock(void);
void sg_space_unlock(void);
/* Under the lock. */
sg_allocation *sg_space_find(uint64_t address);
sg_allocation *sg_space_next(uint64_t address); /* the first that begins at or behind it */
sg_allocation *sg_space_before(uint64_t address); /* the last that begins at or before it */
bool sg_space_insert(sg_allocation *allocation); /* false: no host memory */
void sg_space_remove(sg_allocation *allocation); /* just the entry */

/* reach.c: may kernels of the context read it, or write to it? */
bool sg_memory_reachable(const sg_allocation *allocation, CUcontext context, bool write);

/* ---- ipc_memory.c: allocations of other processes ---- */

typedef struct {
    unsigned share;
    uint64_t secret;
    uint64_t offset, size; /* of the allocation, within the share */
    CUmemoryPool pool;     /* of which it is, or will be */
    unsigned char uuid[16];
} sg_shared_memory;

/* Make the allocation that holds `address` one that other processes may open. INVALID_VALUE where there is
 * none, or it is of a pool and should not be, or the other way round. */
/* A handle of `type` can be made; else NOT_SUPPORTED, and the log has `otherwise`. */
CUresult sg_shared_by_descriptor(int type, const char *otherwise);
CUresult sg_shared_describe(CUdeviceptr address, bool pooled, sg_shared_memory *memory);
CUresult sg_shared_open(CUcontext context, const sg_shared_memory *memory, CUdeviceptr *address);
bool sg_gpu_by_uuid(const unsigned char *uuid, sg_gpu **gpu);

/* Wait until no kernel of this process runs on any device, and let none begin: what is about to be
 * unmapped may be in the reach of each of them. */
void sg_kernels_stop(void);
void sg_kernels_go_on(void);

#endif

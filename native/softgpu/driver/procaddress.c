/* cuGetProcAddress: the newest variant of a function that the asked-for version knows. Exact versions
 * matter: a caller of 12.0 that got the variant of 13.0 would call it with other arguments. */
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "driver.h"
#include "symbols.h"

enum { LEGACY_STREAM = 1, PER_THREAD_STREAM = 2 };
enum { FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

static int by_base(const void *name, const void *symbol) {
    return strcmp(name, ((const sg_symbol *)symbol)->base);
}

/* sg_symbols is sorted by base name. */
static const sg_symbol *first_of(const char *name) {
    const sg_symbol *found = bsearch(name, sg_symbols, sg_symbol_count, sizeof *sg_symbols, by_base);
    while (found != NULL && found > sg_symbols && strcmp(found[-1].base, name) == 0)
        found--;
    return found;
}

static void *choose(const char *name, int version, bool per_thread, int *status) {
    const sg_symbol *end = sg_symbols + sg_symbol_count, *best = NULL;
    const int newest = sg_driver_cuda_version(false);
    *status = SYMBOL_NOT_FOUND;
    for (const sg_symbol *s = first_of(name); s != NULL && s < end && strcmp(s->base, name) == 0; s++) {
        if (s->version > newest)
            continue; /* of a driver newer than the one we say we are */
        if (*status == SYMBOL_NOT_FOUND)
            *status = VERSION_NOT_SUFFICIENT;
        if (s->version > version || (s->per_thread && !per_thread))
            continue;
        if (best == NULL || s->per_thread > best->per_thread ||
            (s->per_thread == best->per_thread && s->version > best->version))
            best = s;
    }
    if (best == NULL)
        return NULL;
    *status = FOUND;
    return (void *)(uintptr_t)best->address;
}

SG_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags, int *status) {
    int outcome;
    if (name == NULL || address == NULL || (flags & ~(uint64_t)3) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *address = choose(name, version, (flags & PER_THREAD_STREAM) != 0, &outcome);
    if (status != NULL)
        *status = outcome;
    /* Without a place for the status, the result has to say it. */
    return outcome == FOUND || status != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SG_EXPORT CUresult cuGetProcAddress_v2_ptsz(const char *name, void **address, int version, uint64_t flags,
                                            int *status) {
    return cuGetProcAddress_v2(name, address, version, flags == 0 ? PER_THREAD_STREAM : flags, status);
}

SG_EXPORT CUresult cuGetProcAddress(const char *name, void **address, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, address, version, flags, NULL);
}

/* The table that NVIDIA's CUDA runtime, 12 and 13, wants before anything else. Known here by its name only, to
 * say in the log what it means that there is none: the runtime itself says "named symbol not found". */
static const unsigned char RUNTIME_TABLE[16] = {0x6B, 0xD5, 0xFB, 0x6C, 0x5B, 0xF4, 0xE7, 0x4A,
                                                0x89, 0x87, 0xD9, 0x39, 0x12, 0xFD, 0x9D, 0xF9};

/* Tables of undocumented functions that NVIDIA's own libraries use, NVRTC among them, which does without. A
 * software GPU is not NVIDIA's driver and has none. */
SG_EXPORT CUresult cuGetExportTable(const void **table, const void *id) {
    if (table == NULL || id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(id, RUNTIME_TABLE, sizeof RUNTIME_TABLE) == 0)
        sg_log_unsupported("program", "built on NVIDIA's CUDA runtime: it runs on NVIDIA's driver only");
    return CUDA_ERROR_NOT_FOUND;
}

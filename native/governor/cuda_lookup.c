/* cuGetProcAddress: the driver decides whether and which version it gives; we put our function in
 * the place of exactly that one.
 *
 * The driver's pointer tells which symbol it chose where it equals one of its exported ones. Where
 * it does not, the table's own rule (newest version that is not newer than asked) does. A pass
 * symbol is answered with the driver's own pointer, so that its calls cost nothing at all.
 */
#include <string.h>

#include "cuda_api.h"
#include "governor.h"
#include "share.h"
#include "surface.h"
#include "unknowns.h"

enum { PER_THREAD = 1 << 1, STREAM_FLAGS = 3, NEWEST = GOVERNOR_NEWEST_VERSION, NONE = -1 };
enum { FOUND = 0, NOT_FOUND = 1 };

/* First symbol whose name is not less; the table is sorted by name, and a name by its base. */
static unsigned lower_bound(const char *name)
{
    unsigned low = 0, high = SURFACE_COUNT;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (strcmp(surface_symbols[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* All versions of a base name begin with it, so they lie in one run. */
static bool in_run(unsigned symbol, const char *base)
{
    return symbol < SURFACE_COUNT && strncmp(surface_symbols[symbol].name, base, strlen(base)) == 0;
}

static int by_pointer(const char *base, const void *pointer)
{
    for (unsigned symbol = lower_bound(base); in_run(symbol, base); symbol++)
        if (strcmp(surface_symbols[symbol].base, base) == 0 && surface_real[symbol] == pointer)
            return (int)symbol;
    return NONE;
}

static int by_version(const char *base, int version, bool per_thread)
{
    int best = NONE;
    for (unsigned symbol = lower_bound(base); in_run(symbol, base); symbol++) {
        const struct surface_symbol *row = &surface_symbols[symbol];
        if (strcmp(row->base, base) != 0 || row->version > version || (row->per_thread != stream_none && !per_thread))
            continue;
        const struct surface_symbol *sofar = best == NONE ? NULL : &surface_symbols[best];
        /* The number in the name orders versions; the per-thread form of one beats its plain form. */
        size_t length = strcspn(row->name + strlen(base), "p");
        size_t known = sofar == NULL ? 0 : strcspn(sofar->name + strlen(base), "p");
        bool same = sofar != NULL && length == known && strncmp(row->name, sofar->name, strlen(base) + length) == 0;
        if (sofar == NULL || (same ? row->per_thread != stream_none : row->version >= sofar->version))
            best = (int)symbol;
    }
    return best;
}

static bool is_known(const char *name)
{
    for (unsigned symbol = lower_bound(name); in_run(symbol, name); symbol++)
        if (strcmp(surface_symbols[symbol].base, name) == 0 || strcmp(surface_symbols[symbol].name, name) == 0)
            return true;
    return false;
}

/* What the caller gets for `pointer`, which the driver gave for `name`. */
static void *own_for(const char *name, void *pointer, int version, bool per_thread)
{
    int symbol = by_pointer(name, pointer);
    if (symbol == NONE)
        symbol = by_version(name, version, per_thread);
    if (symbol == NONE) { /* asked by its exported name, which some drivers answer */
        unsigned exact = lower_bound(name);
        symbol = exact < SURFACE_COUNT && strcmp(surface_symbols[exact].name, name) == 0 ? (int)exact : NONE;
    }
    if (symbol == NONE)
        return is_known(name) || !share_unknown_passes() ? NULL : pointer;
    return surface_symbols[symbol].class == class_pass ? pointer : surface_symbols[symbol].own;
}

typedef CUresult look_up_v1(const char *, void **, int, uint64_t);
typedef CUresult look_up_v2(const char *, void **, int, uint64_t, int *);

/* As an older driver answers: by asking it for a function that no driver has. */
#define NO_SUCH_FUNCTION "cuNoSuchFunction"

/* A name that the table lacks, where the driver would have given something, is one to tell of. */
static const char *name_to_ask(const char *symbol, int version, uint64_t flags)
{
    void *theirs = NULL;
    if (symbol == NULL || is_known(symbol))
        return symbol;
    if (REAL(cuGetProcAddress_v2, look_up_v2 *)(symbol, &theirs, version, flags, NULL) == CUDA_SUCCESS && theirs != NULL)
        unknowns_note(symbol);
    return share_unknown_passes() ? symbol : NO_SUCH_FUNCTION;
}

EXPORTED CUresult cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (version > NEWEST)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = REAL(cuGetProcAddress, look_up_v1 *)(name_to_ask(symbol, version, flags), out, version, flags);
    if (result == CUDA_SUCCESS && symbol != NULL && out != NULL && *out != NULL)
        *out = own_for(symbol, *out, version, (flags & PER_THREAD) != 0);
    return result;
}

EXPORTED CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    if (version > NEWEST)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = REAL(cuGetProcAddress_v2, look_up_v2 *)(name_to_ask(symbol, version, flags), out, version, flags, status);
    if (result != CUDA_SUCCESS || symbol == NULL || out == NULL || *out == NULL)
        return result;
    *out = own_for(symbol, *out, version, (flags & PER_THREAD) != 0);
    if (status != NULL)
        *status = *out != NULL ? FOUND : NOT_FOUND;
    return result;
}

/* The face for programs built with per-thread default streams: no flag means theirs. */
EXPORTED CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **out, int version, uint64_t flags, int *status)
{
    return cuGetProcAddress_v2(symbol, out, version, (flags & STREAM_FLAGS) == 0 ? flags | PER_THREAD : flags, status);
}

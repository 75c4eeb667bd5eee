/* Contexts: each charges its device's context_bytes, for the driver takes memory for it before
 * the program has allocated a byte. */
#include "account.h"
#include "context_memory.h"
#include "cuda_devices.h"
#include "governor.h"
#include "share.h"
#include "surface.h"

/* ---- made by the program ---- */

static CUresult begin_context(struct entry *entry, enum kind kind, CUdevice device)
{
    int index;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    index = devices_share_index(device);
    return account_begin_on(entry, kind, index < 0 ? 0 : share_context_bytes((unsigned)index), device);
}

/* A device the share does not have, or a driver that has not started, is for the driver to name. */
#define NEW_CONTEXT(name, kind, type, parameters, arguments)                                       \
    EXPORTED CUresult name parameters                                                              \
    {                                                                                              \
        struct entry entry;                                                                        \
        type got = NULL, *place = out != NULL ? &got : NULL;                                       \
        if (governor_start() && devices_share_index(device) < 0)                                   \
            return REAL(name, CUresult(*) parameters) arguments;                                   \
        CUresult result = begin_context(&entry, kind, device);                                     \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        result = REAL(name, CUresult(*) parameters) arguments;                                     \
        result = account_end(&entry, result, (uint64_t)got);                                       \
        if (result == CUDA_SUCCESS && out != NULL)                                                 \
            *out = got;                                                                            \
        return result;                                                                             \
    }

NEW_CONTEXT(cuCtxCreate, KIND_CONTEXT, CUcontext, (CUcontext *out, unsigned flags, CUdevice device),
            (place, flags, device))
NEW_CONTEXT(cuCtxCreate_v2, KIND_CONTEXT, CUcontext, (CUcontext *out, unsigned flags, CUdevice device),
            (place, flags, device))
NEW_CONTEXT(cuCtxCreate_v3, KIND_CONTEXT, CUcontext,
            (CUcontext *out, void *affinity, int count, unsigned flags, CUdevice device),
            (place, affinity, count, flags, device))
NEW_CONTEXT(cuCtxCreate_v4, KIND_CONTEXT, CUcontext,
            (CUcontext *out, void *parameters, unsigned flags, CUdevice device),
            (place, parameters, flags, device))
NEW_CONTEXT(cuGreenCtxCreate, KIND_GREEN_CONTEXT, CUgreenCtx,
            (CUgreenCtx *out, void *description, CUdevice device, unsigned flags),
            (place, description, device, flags))

#define END_CONTEXT(name)                                                                          \
    EXPORTED CUresult name(CUcontext context)                                                      \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = REAL(name, CUresult (*)(CUcontext))(context);                            \
        if (result == CUDA_SUCCESS)                                                                \
            account_drop_context((uint64_t)context, false);                                        \
        return result;                                                                             \
    }

END_CONTEXT(cuCtxDestroy)
END_CONTEXT(cuCtxDestroy_v2)

EXPORTED CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    struct entry entry;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    bool known = account_take(KIND_GREEN_CONTEXT, (uint64_t)context, &entry);
    return account_gave(known, &entry, REAL(cuGreenCtxDestroy, CUresult (*)(CUgreenCtx))(context));
}

/* The plain face of a green context is no second one: known, and charged nothing more. */
EXPORTED CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx green)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuCtxFromGreenCtx, CUresult (*)(CUcontext *, CUgreenCtx))(out, green);
    if (result != CUDA_SUCCESS || out == NULL || !book_has_room())
        return result;
    struct entry face = {.kind = KIND_CONTEXT, .key = (uint64_t)*out, .references = 1};
    book_lock();
    struct entry *owner = book_find(KIND_GREEN_CONTEXT, (uint64_t)green);
    face.device = owner != NULL ? owner->device : 0;
    bool put = book_find(KIND_CONTEXT, face.key) == NULL;
    if (put)
        book_put(&face);
    book_unlock();
    return result;
}

/* ---- the old reference count ---- */

EXPORTED CUresult cuCtxAttach(CUcontext *out, unsigned flags)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuCtxAttach, CUresult (*)(CUcontext *, unsigned))(out, flags);
    if (result != CUDA_SUCCESS || out == NULL)
        return result;
    book_lock();
    struct entry *entry = book_find(KIND_CONTEXT, (uint64_t)*out);
    if (entry != NULL)
        entry->references++;
    book_unlock();
    return result;
}

EXPORTED CUresult cuCtxDetach(CUcontext context)
{
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = REAL(cuCtxDetach, CUresult (*)(CUcontext))(context);
    if (result != CUDA_SUCCESS)
        return result;
    book_lock();
    struct entry *entry = book_find(KIND_CONTEXT, (uint64_t)context);
    bool last = entry != NULL && !entry->primary && --entry->references == 0;
    book_unlock();
    if (last)
        account_drop_context((uint64_t)context, false);
    return result;
}

/* ---- the primary context of each device ---- */

/* The book's primary context of `device`; 0 where it has none. */
static uint64_t primary_of(CUdevice device)
{
    int index = devices_share_index(device);
    uint64_t at = 0, found = 0;
    struct entry *entry;
    book_lock();
    while (found == 0 && (entry = book_next(&at)) != NULL)
        if (entry->kind == KIND_CONTEXT && entry->primary && entry->device == index)
            found = entry->key;
    book_unlock();
    return found;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    typedef CUresult retain(CUcontext *, CUdevice);
    struct entry entry;
    CUcontext got = NULL;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    retain *real = REAL(cuDevicePrimaryCtxRetain, retain *);
    if (primary_of(device) != 0 || devices_share_index(device) < 0)
        return real(out, device);
    CUresult result = begin_context(&entry, KIND_CONTEXT, device);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && primary_of(device) != 0)
        return real(out, device); /* another thread was faster, and what it charged is what lacked */
    if (result != CUDA_SUCCESS)
        return result;
    entry.primary = true;
    result = real(out != NULL ? &got : NULL, device);
    book_lock();
    struct entry *known = result == CUDA_SUCCESS ? book_find(KIND_CONTEXT, (uint64_t)got) : NULL;
    if (known != NULL)
        known->primary = true; /* seen before, or another thread was faster: charged already */
    book_unlock();
    if (known != NULL) {
        account_release(entry.device, entry.bytes);
    } else {
        account_end(&entry, result, (uint64_t)got);
    }
    if (result == CUDA_SUCCESS && out != NULL)
        *out = got;
    return result;
}

/* Whether the driver still has the primary context: export tables retain it behind our back, so
 * only the driver's own count is true. */
static bool is_active(CUdevice device)
{
    unsigned flags;
    int active = 0;
    return REAL(cuDevicePrimaryCtxGetState, CUresult (*)(CUdevice, unsigned *, int *))(device, &flags, &active) ==
               CUDA_SUCCESS && active != 0;
}

#define END_PRIMARY(name, always)                                                                  \
    EXPORTED CUresult name(CUdevice device)                                                        \
    {                                                                                              \
        if (!governor_start())                                                                     \
            return CUDA_ERROR_SYSTEM_NOT_READY;                                                    \
        CUresult result = REAL(name, CUresult (*)(CUdevice))(device);                              \
        uint64_t context = result == CUDA_SUCCESS ? primary_of(device) : 0;                        \
        bool active = context != 0 && is_active(device);                                           \
        if (context != 0 && ((always) || !active))                                                 \
            account_drop_context(context, active);                                                 \
        if (context != 0 && ((always) || !active))                                                 \
            context_memory_reset(context);                                                         \
        return result;                                                                             \
    }

END_PRIMARY(cuDevicePrimaryCtxRelease, false)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
END_PRIMARY(cuDevicePrimaryCtxReset, true)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, true)

/* ---- what a context's limits take ---- */

static uint64_t resident_threads(void)
{
    typedef CUresult get_attribute(int *, int, CUdevice);
    CUdevice device;
    int processors = 0, threads = 0;
    if (REAL(cuCtxGetDevice, CUresult (*)(CUdevice *))(&device) != CUDA_SUCCESS)
        return 0;
    get_attribute *get = REAL(cuDeviceGetAttribute, get_attribute *);
    get(&processors, ATTRIBUTE_MULTIPROCESSORS, device);
    get(&threads, ATTRIBUTE_THREADS_PER_MULTIPROCESSOR, device);
    return account_product((uint64_t)processors, (uint64_t)threads);
}

/* Device memory behind a limit's value. What a context starts with is in context_bytes. */
static uint64_t limit_bytes(int limit, size_t value)
{
    switch (limit) {
    case LIMIT_PRINTF_FIFO_SIZE:
    case LIMIT_MALLOC_HEAP_SIZE:
        return value;
    case LIMIT_STACK_SIZE:
        return account_product(value, resident_threads());
    default:
        return 0;
    }
}

EXPORTED CUresult cuCtxSetLimit(int limit, size_t value)
{
    typedef CUresult get_limit(size_t *, int);
    size_t before = 0, after = 0;
    struct overhead seen;
    uint64_t context;
    unsigned device;
    if (!governor_start())
        return CUDA_ERROR_SYSTEM_NOT_READY;
    CUresult result = account_place(&context, &device);
    if (result != CUDA_SUCCESS)
        return result;
    get_limit *get = REAL(cuCtxGetLimit, get_limit *);
    get(&before, limit);
    uint64_t old = limit_bytes(limit, before), asked = limit_bytes(limit, value);
    uint64_t more = asked > old ? asked - old : 0;
    if (limit == LIMIT_STACK_SIZE)
        more = context_memory_beyond_launches(context, more);
    overhead_begin(&seen);
    result = account_charge(device, more);
    if (result != CUDA_SUCCESS)
        return result;
    result = REAL(cuCtxSetLimit, CUresult (*)(int, size_t))(limit, value);
    if (result != CUDA_SUCCESS) {
        account_release(device, more);
        return result;
    }
    get(&after, limit);
    uint64_t now = limit_bytes(limit, after);
    seen.context = context;
    seen.device = device;
    context_memory_limited(&seen, more, old > now ? old - now : 0);
    return result;
}
